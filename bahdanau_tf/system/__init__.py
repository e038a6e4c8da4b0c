"""Files, lines of text, the terminal and devices."""
