"""The checks of a host, by chapter. Each module is imported when the checks are asked for."""
