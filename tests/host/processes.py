"""Looks at processes from outside, and waits within bounds until they have gone."""

import asyncio
from pathlib import Path


def lives(pid: int) -> bool:
    """Whether a process runs; one that only waits to be collected does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


async def gone(pid: int, within: float = 5.0) -> bool:
    """Whether the process goes within some seconds. A kill takes effect a moment later."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while lives(pid):
        if loop.time() > deadline:
            return False
        await asyncio.sleep(0.01)
    return True
