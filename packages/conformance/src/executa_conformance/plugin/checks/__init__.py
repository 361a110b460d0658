"""The checks of a plugin, by chapter. Each module is imported when the checks are asked for."""
