"""The HTTP door: the same core, over aiohttp. Only this package imports it."""
