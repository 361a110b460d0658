"""The machine and its processes: what they are, use and hold, as the kernel tells it.

Without ``/proc`` CPU time and memory of other processes read as zero. Nothing here
names the host or a person.
"""

import os
import platform
import resource
import sqlite3
import sys
import time
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

MIB: Final = 1024 * 1024

_ALL_THREADS: Final = 2
"""Which of a process's CPU clocks `clock_getcpuclockid` numbers: that of everything it runs."""

OURS: Final = ("executa-protocol", "executa-sdk", "executa-host", "executa-nexus-stub")
LIBRARIES: Final = ("msgspec", "uvloop", "aiosqlite", "aiohttp")
CONTENDERS: Final = (
    "mcp",
    "fastmcp",
    "anna-app-runtime-local",
    "a2a-sdk",
    "dbos",
    "httpx-sse",
    "sqlalchemy",
    "pydantic",
)


def environment() -> dict[str, Any]:
    """What the figures belong to: machine, interpreter, versions. No host name."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "release": platform.release().partition("-")[0],
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "usable_cores": len(usable_cores()),
        "memory_mib": _memory() // MIB,
        "load_average": round(os.getloadavg()[0], 2),
        "sqlite": sqlite3.sqlite_version,
        "versions": {name: _version(name) for name in (*OURS, *LIBRARIES, *CONTENDERS)},
    }


def usable_cores() -> list[int]:
    """The cores that this process may use; empty where that cannot be asked."""
    if sys.platform == "linux":
        return sorted(os.sched_getaffinity(0))
    return []


def pin(pids: Iterable[int], core: int) -> None:
    """Keep processes, all their threads, and what they start on one core."""
    if sys.platform == "linux":
        for pid in pids:
            for task in Path(f"/proc/{pid}/task").iterdir():
                os.sched_setaffinity(int(task.name), {core})


def cpu(pid: int) -> float:
    """CPU seconds that a process has used up to now, all its threads together; 0 once it ended."""
    if sys.platform != "linux":
        return 0.0
    try:
        return time.clock_gettime(~pid << 3 | _ALL_THREADS)
    except OSError:
        return 0.0


def resident(pid: int) -> float:
    """Mebibytes of memory that a process holds now."""
    return _status(pid, "VmRSS:") / 1024


def peak_resident(pid: int) -> float:
    """The most mebibytes of memory that a process has held."""
    return _status(pid, "VmHWM:") / 1024


def private(pid: int) -> float:
    """Mebibytes that a process shares with no other one: what one more of it costs."""
    total = 0.0
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return total
    for line in text.splitlines():
        if line.startswith(("Private_Clean:", "Private_Dirty:")):
            total += float(line.split()[1]) / 1024
    return total


def children(pid: int | None = None) -> list[int]:
    """Processes that one has started and that live; in the order of their ids."""
    found: list[int] = []
    try:
        for task in Path(f"/proc/{pid or 'self'}/task").iterdir():
            found += map(int, (task / "children").read_text(encoding="ascii").split())
    except OSError:
        pass  # it ended, or there is no /proc
    return sorted(found)


def descendants(pid: int) -> list[int]:
    """Children, and theirs."""
    found: list[int] = []
    for child in children(pid):
        found += (child, *descendants(child))
    return found


def own_peak() -> float:
    """The most mebibytes that this process has held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MIB


def _status(pid: int, name: str) -> float:
    try:
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith(name):
                return float(line.split()[1])
    except OSError:
        pass  # it ended, or there is no /proc
    return 0.0


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # no /proc
    return platform.processor() or "unknown"


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"
