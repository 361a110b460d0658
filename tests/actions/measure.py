"""``python -m tests.actions.measure [--seconds N]``: what the embedded store does in a second.

Accepted actions, whole lifecycles (accept and three moves, with receipts and keys), and events
(chunks, one an operation) at 1, 64 and 512 callers, with full and normal synchronous settings.
Every answer is checked. A warm-up comes first: a write-ahead log that still grows costs several
times as much to sync as one that is used again.
"""

import argparse
import asyncio
import itertools
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from msgspec import Raw

from executa_host.actions.endings import move
from executa_host.actions.limits import WAL_PAGES
from executa_host.actions.operations import Piece, Stored
from executa_host.actions.records import ActionRecord, Effect, Mode
from executa_host.actions.settings import Synchronous
from executa_host.actions.sqlite import SqliteStore
from executa_protocol.actions import ActionState as S
from executa_protocol.chunks import ChunkKind
from tests.actions.samples import AT, accept, accepted, go, to

CALLERS: Final = (1, 64, 512)
SETTINGS: Final[tuple[Synchronous, ...]] = ("FULL", "NORMAL")
GIVEN: Final = Raw(b'{"text":"' + b"x" * 200 + b'"}')
_keys = itertools.count()


async def one_acceptance(store: SqliteStore, _: Stored) -> int:
    """Accept an action."""
    made = accept(GIVEN, idempotency_key=str(next(_keys)))
    answer = await store.apply(made)
    assert answer.action_id == made.action_id
    return 1


async def one_lifecycle(store: SqliteStore, _: Stored) -> int:
    """Accept an action and take it through three moves to its end."""
    made = accept(GIVEN, idempotency_key=str(next(_keys)))
    assert not (await store.apply(made)).replayed
    found = Stored(record=_record(made.action_id), fence=0, terms=made.terms)
    for state in (S.QUEUED, S.RUNNING, S.COMPLETED):
        answer = await store.apply(to(found, state))
        assert answer.won
        found = Stored(_record(made.action_id, state), answer.fence, made.terms)
    return 1


async def one_event(store: SqliteStore, own: Stored) -> int:
    """Append a chunk to the caller's own action."""
    answer = await store.apply(move(own, "chunk", AT, Piece(ChunkKind.DATA, GIVEN)))
    assert answer.won
    return 1


def _record(action_id: str, state: S = S.ACCEPTED) -> ActionRecord:
    return ActionRecord(
        action_id=action_id,
        capability="p.read",
        state=state,
        mode=Mode.ASYNC,
        tenant="default",
        principal="ana",
        subject="ana",
        effect=Effect.READ,
        accepted_at_ms=AT,
        updated_at_ms=AT,
        cursor="a1",
    )


Work = Callable[[SqliteStore, Stored], Awaitable[int]]
WORKS: Final[dict[str, Work]] = {
    "accepted": one_acceptance,
    "lifecycles": one_lifecycle,
    "events": one_event,
}


async def rate(store: SqliteStore, work: Work, callers: int, seconds: float) -> tuple[float, float]:
    """How often a second, and the CPU microseconds of one."""
    done = 0
    end = time.monotonic() + seconds

    async def caller() -> None:
        nonlocal done
        action_id = (await accepted(store)).record.action_id
        own = await go(store, action_id, S.QUEUED, S.RUNNING)
        while time.monotonic() < end:
            made = await work(store, own)  # `done += await` would count by what it was before
            done += made

    began, cpu = time.monotonic(), time.process_time()
    await asyncio.gather(*(caller() for _ in range(callers)))
    took = time.monotonic() - began
    return done / took, (time.process_time() - cpu) / max(done, 1) * 1e6


async def measure(synchronous: Synchronous, seconds: float) -> None:
    """One line for each kind of work and number of callers."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        async with await SqliteStore.open(path, synchronous=synchronous) as store:
            while _log_pages(path) < WAL_PAGES:
                await rate(store, one_lifecycle, 64, 0.5)
            for name, work in WORKS.items():
                for callers in CALLERS:
                    per_second, cpu = await rate(store, work, callers, seconds)
                    sys.stdout.write(
                        f"{synchronous:7} {name:11} {callers:4} callers"
                        f" {per_second:9,.0f} a second {cpu:7,.0f} us of CPU each\n"
                    )
                    sys.stdout.flush()


def _log_pages(path: Path) -> int:
    return path.with_name(path.name + "-wal").stat().st_size // 4096


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser(prog="python -m tests.actions.measure", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each figure")
    options = parser.parse_args()
    for synchronous in SETTINGS:
        if sys.platform == "win32":
            asyncio.run(measure(synchronous, options.seconds))
        else:
            import uvloop  # noqa: PLC0415 - as the host runs

            uvloop.run(measure(synchronous, options.seconds))


if __name__ == "__main__":
    main()
