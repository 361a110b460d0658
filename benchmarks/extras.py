"""Modules of the extra `bench`, which need not be installed."""

from importlib import import_module
from typing import Any


def extra(module: str) -> Any:
    """A module by its name, untyped: type checks have to pass where it is not installed."""
    return import_module(module)
