"""The checks of a nexus, by chapter. Each module is imported when the checks are asked for."""
