"""Fixtures for pytest, found by it wherever the SDK is installed."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from executa_sdk.testing.process import PluginProcess


@pytest.fixture
def executa_process() -> "Iterator[Callable[..., PluginProcess]]":
    """Start plugins as processes: ``executa_process("plugin.py")``, ready to be invoked.

    Takes what `PluginProcess` takes. Each has shaken hands and is ended after the test.
    """
    from executa_sdk.testing.process import PluginProcess  # noqa: PLC0415 - if used

    started: list[PluginProcess] = []

    def start(command: Any, **options: Any) -> PluginProcess:
        process = PluginProcess(command, **options)
        started.append(process)
        process.initialize()
        process.describe()
        return process

    yield start
    for process in reversed(started):
        process.close()
