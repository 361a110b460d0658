"""One check a golden line."""
