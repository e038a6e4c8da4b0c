"""Public corpora: their addresses, download and assembly."""
