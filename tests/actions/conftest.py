"""A store and an engine for each test of this folder, on a file of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from executa_host.actions.sqlite import SqliteStore
from tests.actions.rig import Rig
from tests.support.leaks import LeakCheck


@pytest.fixture
async def store(tmp_path: Path, leak_check: LeakCheck) -> AsyncIterator[SqliteStore]:
    """An empty store. After the test every invariant must hold."""
    async with await SqliteStore.open(tmp_path / "a.db", synchronous="NORMAL") as store:
        leak_check.watch(store, "store")
        yield store
        assert await store.check() == []


@pytest.fixture
async def rig(tmp_path: Path, leak_check: LeakCheck) -> AsyncIterator[Rig]:
    """An engine on an empty store. After the test every invariant must hold."""
    async with Rig(tmp_path / "a.db") as rig:
        yield rig
        await rig.check()
    leak_check.watch(rig.engine, "engine")
    leak_check.watch(rig.store, "store")
