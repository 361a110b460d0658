"""The plugin under test, as the runner sees it, and the whole of a run."""

import tempfile
from collections.abc import Sequence

from executa_conformance.child import CannotStart
from executa_conformance.cli.running import Ran, Work
from executa_conformance.evidence import Evidence
from executa_conformance.model import Check
from executa_conformance.patience import Patience
from executa_conformance.plugin.facts import Facts, tour
from executa_conformance.plugin.scene import Scene, World
from executa_conformance.plugin.tools import Cases
from executa_conformance.runner import Told, run_checks
from executa_protocol.errors import UsageError


class PluginTarget:
    """Gives each check its scene. Levels that the plugin does not claim do not apply."""

    def __init__(self, world: World) -> None:
        self._world = world

    def scene(self, check: Check, evidence: Evidence) -> Scene:
        """See `runner.Target`."""
        return Scene(self._world, evidence)

    async def applies(self, check: Check) -> None:
        """See `runner.Target`."""
        self._world.facts.applies(check.level)

    async def close(self, scene: Scene) -> None:
        """See `runner.Target`."""
        await scene.close()


def check_plugin(command: Sequence[str], cases: Cases) -> Work:
    """What runs checks against the plugin that `command` starts."""

    async def work(
        found: tuple[Check, ...], patience: Patience, jobs: int, told: Told | None
    ) -> Ran:
        with tempfile.TemporaryDirectory(prefix="executa-check-") as folder:
            world = World(command, patience, folder)
            await world.blobs.start()
            try:
                evidence = Evidence()
                world.facts = await _toured(world, cases, evidence)
                if world.facts.fault or world.facts.silent:
                    world.patience = patience.hurried()
                results = await run_checks(
                    found, PluginTarget(world), patience=patience, jobs=jobs, told=told
                )
            finally:
                await world.blobs.stop()
        manifest, notes = world.facts.manifest, world.facts.notes()
        ran = Ran(results, notes=notes, tour=evidence.events())
        if manifest is not None:
            ran.name, ran.version = manifest.name, manifest.version
        return ran

    return work


async def _toured(world: World, cases: Cases, evidence: Evidence) -> Facts:
    try:
        async with Scene(world, evidence).start() as session:
            return await tour(session, cases)
    except CannotStart as fault:
        raise UsageError(str(fault)) from None
