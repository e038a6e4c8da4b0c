"""What several commands have in common."""
