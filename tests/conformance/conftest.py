"""The stranger and its faults, and what the kit finds out about the one without."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from executa_conformance.evidence import Evidence
from executa_conformance.model import Check, Result
from executa_conformance.patience import Patience
from executa_conformance.plugin.facts import Facts, tour
from executa_conformance.plugin.scene import Scene, World
from executa_conformance.plugin.target import PluginTarget
from executa_conformance.runner import run_check

PEERS = Path(__file__).parent / "peers"
STRANGER = (sys.executable, "-I", "-S", str(PEERS))
"""The plugin that keeps every rule; ``--fault NAME`` breaks one, ``--v1`` speaks 1.1."""


LONG = Patience(quiet=0.05)
"""For a peer that answers at once, however slow the machine is: nothing is waited out."""

SHORT = Patience(
    start=3.0,
    initialize=1.0,
    describe=1.0,
    answer=0.7,
    invoke=0.7,
    quiet=0.5,
    grace=0.7,
    check=15.0,
)
"""For a peer that does wrong: what does not come must not be waited for long."""


@asynccontextmanager
async def world_of(
    command: tuple[str, ...], folder: Path, patience: Patience = LONG
) -> AsyncGenerator[World]:
    """A world to run checks in."""
    world = World(command, patience, str(folder))
    await world.blobs.start()
    try:
        yield world
    finally:
        await world.blobs.stop()


async def toured(world: World) -> Facts:
    """One session through all that the plugin offers."""
    async with Scene(world, Evidence()).start() as session:
        return await tour(session, {})


async def judge(
    check: Check, command: tuple[str, ...], folder: Path, facts: Facts, patience: Patience = LONG
) -> Result:
    """Run one check. What it knows of the plugin is `facts`; a passive one sees one session."""
    async with world_of(command, folder, LONG if check.passive else patience) as world:
        if check.passive:
            await toured(world)
        world.facts = facts
        return await run_check(check, PluginTarget(world), world.patience)


@pytest.fixture(scope="session")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    """What the kit knows of the stranger."""

    async def find_out() -> Facts:
        async with world_of(STRANGER, tmp_path_factory.mktemp("facts")) as world:
            return await toured(world)

    return asyncio.run(find_out())
