"""One engine per file (R-47): a lock beside it that ends with the process that holds it."""

import fcntl
import os
from pathlib import Path

from executa_host.actions.store import StoreError, StoreLocked


class FileLock:
    """An exclusive lock on ``FILE.lock``. The file stays; the lock is what counts."""

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(path.name + ".lock")
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock, or raise `StoreLocked` with the process that has it."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode(errors="replace").strip()
            os.close(descriptor)
            who = f"process {holder}" if holder else "another process"
            msg = f"{self.path.with_suffix('')} is in use by {who}; one engine per file"
            raise StoreLocked(msg) from None
        except OSError as fault:
            os.close(descriptor)
            msg = f"{self.path} cannot be locked: {fault}"
            raise StoreError(msg) from fault
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        self._descriptor = descriptor

    def release(self) -> None:
        """Let go. Harmless when it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
