"""Runs checks against one target: several at a time, each in bounded time, none lost.

A check that cannot run fails. Checks that judge what crossed during the others (`passive`)
run after them.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol

from executa_conformance.catalogue import requirements
from executa_conformance.evidence import Evidence
from executa_conformance.model import (
    Check,
    NotApplicable,
    NotMet,
    NotStrict,
    Remark,
    Result,
    Word,
)
from executa_conformance.patience import Patience


class Target(Protocol):
    """What is checked, as the runner sees it."""

    def scene(self, check: Check, evidence: Evidence) -> Any:
        """What the check function gets. What it starts it must be able to end."""
        ...

    async def applies(self, check: Check) -> None:
        """Raise `NotApplicable` if the check does not concern this target."""
        ...

    async def close(self, scene: Any) -> None:
        """End whatever the check has left running in its scene."""
        ...


Told = Callable[[Result], None]


async def run_checks(
    found: Iterable[Check],
    target: Target,
    *,
    patience: Patience,
    jobs: int = 4,
    told: Told | None = None,
) -> list[Result]:
    """Run the checks, at most `jobs` at a time; the results are in the order of the checks.

    `told` gets each result as it comes.
    """
    ordered = list(found)
    results: dict[str, Result] = {}
    gate = asyncio.Semaphore(jobs)

    async def one(check: Check) -> None:
        async with gate:
            result = await run_check(check, target, patience)
        results[check.name] = result
        if told is not None:
            told(result)

    for passive in (False, True):
        await _together(one(check) for check in ordered if check.passive is passive)
    return [results[check.name] for check in ordered]


async def _together(works: Iterable[Awaitable[None]]) -> None:
    async with asyncio.TaskGroup() as group:
        for work in works:
            group.create_task(_run(work))


async def _run(work: Awaitable[None]) -> None:
    await work


async def run_check(check: Check, target: Target, patience: Patience) -> Result:
    """Run one check to its verdict."""
    evidence = Evidence()
    began = time.monotonic()
    word, message = await _verdict(check, target, evidence, patience.check * check.patience)
    return Result(
        check=check.name,
        requirement=requirements()[check.requirement],
        level=check.level,
        word=word,
        message=message,
        seconds=round(time.monotonic() - began, 4),
        evidence=evidence.events(),
    )


async def _verdict(
    check: Check, target: Target, evidence: Evidence, bound: float
) -> tuple[Word, str]:
    scene: Any = None
    try:
        async with asyncio.timeout(bound):
            await target.applies(check)
            scene = target.scene(check, evidence)
            await check.function(scene)
    except NotMet as fault:
        return "fail", str(fault)
    except NotStrict as fault:
        return "non-strict", str(fault)
    except NotApplicable as reason:
        return "not-applicable", str(reason)
    except Remark as remark:
        return "info", str(remark)
    except TimeoutError:
        return "fail", f"the check did not end within {bound:g} s"
    except Exception as fault:  # noqa: BLE001 - whatever stops a check, it has not passed
        return "fail", f"the check cannot run: {type(fault).__name__}: {fault}"
    finally:
        if scene is not None:
            await target.close(scene)
    return "pass", ""
