"""Resident memory of processes, as the system counts it. Linux; elsewhere nothing is known."""

import os
from collections import Counter
from pathlib import Path

_PROC = Path("/proc")


def resident_by_group() -> Counter[int]:
    """Bytes of resident memory by process group.

    By group, because a plugin behind a wrapper (`uv run`, `npx`) is not the process that
    was started. One walk through all processes: ask once for many plugins.
    """
    resident: Counter[int] = Counter()
    if not (_PROC / "self" / "stat").exists():
        return resident
    page = os.sysconf("SC_PAGE_SIZE")
    for entry in _PROC.iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            # The command stands in parentheses and may itself hold any character.
            after_command = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # ended while being read
        group, pages = int(after_command[2]), int(after_command[21])
        resident[group] += pages * page
    return resident
