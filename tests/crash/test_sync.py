"""A kill cannot tell whether a sync happened; the system calls can.

A child accepts actions under `strace` and says so on a pipe. Between two such words there must be
a sync of the write-ahead log that has come back, with nothing written to the log after it. The
same child with a laxer setting must be caught, or the test would show nothing.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COUNT = 12
CHILD = """
import asyncio, os, sys
from pathlib import Path
from executa_host.actions.sqlite import SqliteStore
from tests.actions.samples import accept

async def main() -> None:
    async with await SqliteStore.open(Path(sys.argv[1]), synchronous=sys.argv[2]) as store:
        for _ in range(int(sys.argv[3])):
            answer = await store.apply(accept())
            os.write(1, f"answered {answer.action_id}\\n".encode())

asyncio.run(main())
"""
CALL = re.compile(r"^\d+ +(?P<name>\w+)\((?P<fd>\d+)<(?P<path>[^>]*)>(?P<rest>.*)$")
RESUMED = re.compile(r"^(?P<pid>\d+) +<\.\.\. (?P<name>\w+) resumed>.* = (?P<result>-?\d+)")


def _tracer() -> str | None:
    """Why there is no tracer; None if there is one."""
    strace = shutil.which("strace")
    if strace is None:
        return "strace is not installed (apt-get install strace)"
    probe = subprocess.run([strace, "-f", "true"], capture_output=True, check=False)
    return None if probe.returncode == 0 else f"strace may not trace here: {probe.stderr[-200:]!r}"


WHY_NOT = _tracer()
traced = pytest.mark.skipif(WHY_NOT is not None, reason=f"no system call tracer: {WHY_NOT}")


def _trace(folder: Path, synchronous: str) -> list[str]:
    """The lines of a trace of the child."""
    log = folder / f"trace-{synchronous}"
    command = ["strace", "-f", "-y", "-s", "16", "-e", "trace=pwrite64,write,fdatasync,fsync"]
    child = [sys.executable, "-c", CHILD, str(folder / f"{synchronous}.db"), synchronous]
    done = subprocess.run(
        [*command, "-o", str(log), *child, str(COUNT)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("answered") == COUNT
    return log.read_text(errors="replace").splitlines()


def answers_before_their_sync(lines: list[str]) -> tuple[int, int]:
    """How many answers a trace has, and how many of them came before their log was on disk."""
    answers = early = 0
    synced, dirty = False, False
    syncing: dict[str, bool] = {}
    for line in lines:
        pid = line.split(maxsplit=1)[0]
        resumed = RESUMED.match(line)
        if resumed and resumed["name"] in ("fdatasync", "fsync") and syncing.pop(pid, False):
            synced, dirty = resumed["result"] == "0", dirty and resumed["result"] != "0"
        call = CALL.match(line)
        if call is None:
            continue
        of_log = call["path"].endswith("-wal")
        if call["name"] in ("fdatasync", "fsync") and of_log:
            if call["rest"].endswith("<unfinished ...>"):
                syncing[pid] = True
            elif call["rest"].endswith("= 0"):
                synced, dirty = True, False
        elif call["name"] in ("pwrite64", "write") and of_log:
            dirty = True
        elif call["name"] == "write" and call["fd"] == "1" and "answered" in call["rest"]:
            answers += 1
            early += dirty or not synced
            synced = False
    return answers, early


@traced
def test_an_acceptance_is_answered_after_its_log_is_on_disk(tmp_path: Path) -> None:
    assert answers_before_their_sync(_trace(tmp_path, "FULL")) == (COUNT, 0)


@traced
def test_the_laxer_setting_answers_earlier_and_is_caught(tmp_path: Path) -> None:
    answers, early = answers_before_their_sync(_trace(tmp_path, "NORMAL"))
    assert answers == COUNT
    assert early >= COUNT - 1


def test_the_reading_of_a_trace_tells_early_from_late() -> None:
    write = '7 pwrite64(5</x/a.db-wal>, "\\0", 24, 0) = 24'
    sync = "7 fdatasync(5</x/a.db-wal>) = 0"
    answer = '6 write(1</dev/null>, "answered act_"..., 30) = 30'
    begun = "7 fdatasync(5</x/a.db-wal> <unfinished ...>"
    ended = "7 <... fdatasync resumed>)     = 0"
    failed = "7 <... fdatasync resumed>)     = -1 EIO (Input/output error)"
    other = "7 fdatasync(9</x/other>) = 0"

    assert answers_before_their_sync([write, sync, answer]) == (1, 0)
    assert answers_before_their_sync([write, begun, ended, answer]) == (1, 0)
    assert answers_before_their_sync([write, begun, answer, ended]) == (1, 1)
    assert answers_before_their_sync([write, begun, failed, answer]) == (1, 1)
    assert answers_before_their_sync([sync, write, answer]) == (1, 1)
    assert answers_before_their_sync([write, other, answer]) == (1, 1)
    assert answers_before_their_sync([write, sync, answer, answer]) == (2, 1)
