"""The checks of durable work, by chapter. Each module is imported when the checks are asked for."""
