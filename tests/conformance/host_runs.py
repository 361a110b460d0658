"""Runs checks of a host for the tests: all that were asked for on one host, each by itself."""

import asyncio
from collections.abc import Sequence

import pytest

from executa_conformance.host.target import HostTarget, open_host
from executa_conformance.model import Check, Result
from executa_conformance.patience import Patience
from executa_conformance.runner import run_check

PACE = {
    "initialize": 2.0,
    "describe": 1.0,
    "health": 0.4,
    "stop": 0.4,
    "cancel": 0.4,
    "restart": 0.1,
}
"""Time-outs that the host is asked to keep, so that nobody waits for the protocol's own."""


def asked_for(request: pytest.FixtureRequest) -> list[Check]:
    """The checks of the tests of this module that are to run."""
    found: dict[str, Check] = {}
    for item in request.session.items:
        spec = getattr(item, "callspec", None)
        if item.path == request.path and spec is not None and "check" in spec.params:
            found[spec.params["check"].name] = spec.params["check"]
    return list(found.values())


def run_all(
    checks: Sequence[Check], command: Sequence[str], patience: Patience
) -> dict[str, Result]:
    """The results by the checks' names. No check sees what another one saw."""

    async def whole() -> dict[str, Result]:
        results: dict[str, Result] = {}
        turns = asyncio.Semaphore(4)

        async with open_host(command, patience, PACE) as target:

            async def one(check: Check) -> None:
                async with turns:
                    alone = HostTarget(target.around)
                    results[check.name] = await run_check(check, alone, patience)

            async with asyncio.TaskGroup() as group:
                for check in checks:
                    group.create_task(one(check))
        return results

    return asyncio.run(whole())
