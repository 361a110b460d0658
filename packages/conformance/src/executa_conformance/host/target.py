"""The host under test, as the runner sees it: one process of it for all checks."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from executa_conformance.cli.running import Ran, Work
from executa_conformance.evidence import Evidence
from executa_conformance.host.adapter import HIDDEN, Adapter
from executa_conformance.host.nexus import KEY, ScriptedNexus
from executa_conformance.host.scene import HostScene, Surroundings
from executa_conformance.host.stage import Stage
from executa_conformance.model import Check, NotApplicable
from executa_conformance.patience import Patience
from executa_conformance.runner import Told, run_checks
from executa_conformance.sightings import Sighting

HURRIED: Final = {
    "initialize": 2.0,
    "describe": 2.0,
    "health": 1.0,
    "stop": 0.5,
    "cancel": 0.5,
    "restart": 0.1,
}
"""Time-outs of a host in a hurry. Those of a start stay long enough for a busy machine."""

_NEEDS: Final = {
    "core": "",
    "v2": "v2",
    "sampling": "sampling",
    "agent": "agent",
    "nested": "nested",
    "storage": "storage",
    "files": "files",
}
"""What an adapter lists, by the level of the checks that need it."""


class HostTarget:
    """A host under test. `sightings` are the rules that its lines broke, check by check."""

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.sightings: list[Sighting] = []

    def scene(self, check: Check, evidence: Evidence) -> HostScene:
        """What a check gets."""
        return HostScene(check, evidence, self.around, self.sightings)

    async def applies(self, check: Check) -> None:
        """Raise `NotApplicable` for a level that the host does not serve."""
        word = _NEEDS[check.level]
        if word and not self.around.serves(word):
            msg = f"the adapter does not list {word!r} among what the host serves"
            raise NotApplicable(msg)

    async def close(self, scene: HostScene) -> None:
        """Stop what the check has left."""
        await scene.close()


@asynccontextmanager
async def open_host(
    command: Sequence[str], patience: Patience, pace: dict[str, float] | None = None
) -> AsyncGenerator[HostTarget]:
    """A host behind its adapter's command. Raises `UsageError` for one that is no adapter.

    `pace` are the time-outs that the kit asks the host to keep.
    """
    async with Stage() as stage, ScriptedNexus() as nexus, Adapter(command) as adapter:
        told = await adapter.hello(
            patience.start,
            nexus={"url": nexus.url, "key": KEY},
            pace=pace or {},
            hide_env=[HIDDEN],
        )
        yield HostTarget(Surroundings(adapter, stage, nexus, told, patience))


def check_host(command: Sequence[str], *, hurry: bool = False) -> Work:
    """The work of ``executa check host``.

    With `hurry` the host is asked to keep shorter time-outs.
    """
    pace = HURRIED if hurry else None

    async def work(
        found: tuple[Check, ...], patience: Patience, jobs: int, told: Told | None
    ) -> Ran:
        async with open_host(command, patience, pace) as target:
            results = await run_checks(found, target, patience=patience, jobs=jobs, told=told)
            about = target.around.told
            return Ran(results, about.name, about.version)

    return work
