"""Training of several systems for comparison."""
