"""What kind of thing a file descriptor is, and what else the system says of this process.

A loop can wait for pipes and sockets. Of regular files epoll wants nothing to
know, and a loop's own pipe calls abort the process on them, so the answer decides
who may touch the descriptor. The loops of Windows wait for no descriptor at all.
"""

import os
import stat
import sys


def is_pollable(fd: int) -> bool:
    """Whether an event loop can wait for `fd`: a pipe or a socket.

    A terminal could be waited for too, but making it non-blocking would do so to
    every process that shares it, the user's shell among them.
    """
    if sys.platform == "win32":
        return False
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def has_cores() -> bool:
    """Whether this process may run on more than one core, and another beside it therefore."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0)) > 1
    return (os.cpu_count() or 1) > 1
