"""The plugin under test, as the runner sees it, and the whole of a run."""

import tempfile
from collections.abc import Sequence

from executa_conformance.cli.running import Ran, Work
from executa_conformance.evidence import Evidence
from executa_conformance.model import Check
from executa_conformance.patience import Patience
from executa_conformance.plugin.facts import tour
from executa_conformance.plugin.scene import Scene, World
from executa_conformance.plugin.tools import Cases
from executa_conformance.runner import Told, run_checks


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
                async with Scene(world, Evidence()).start() as session:
                    world.facts = await tour(session, cases)
                results = await run_checks(
                    found, PluginTarget(world), patience=patience, jobs=jobs, told=told
                )
            finally:
                await world.blobs.stop()
        manifest = world.facts.manifest
        if manifest is None:
            return Ran(results)
        return Ran(results, manifest.name, manifest.version)

    return work
