"""Response files: a private directory for each plugin, and their safe loading (R-12).

Owns the file system side. The rules that a file must pass, and those of its content,
are the protocol's.
"""

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

from executa_protocol.envelope import Message
from executa_protocol.filetransport import (
    OPEN_FLAGS,
    FileTransportFault,
    check_content,
    check_opened,
    check_pointer,
    check_size,
)
from executa_protocol.limits import MAX_FILE_TRANSPORT
from executa_protocol.readings import Reader


class PrivateDir:
    """A plugin's ``TMPDIR``: mode 0700, swept when the plugin stops."""

    def __init__(self, path: Path, cap: int = MAX_FILE_TRANSPORT) -> None:
        self.path = path
        self._cap = cap

    @classmethod
    def create(cls, name: str) -> "PrivateDir":
        """Make one in the system's temporary directory. Raises `OSError`."""
        safe = "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:40]
        return cls(Path(tempfile.mkdtemp(prefix=f"executa-{safe}-")).resolve())

    async def load(self, pointer: Message, reader: Reader, *, cwd: str | None) -> Message:
        """The response in the file that `pointer` names, which is deleted once it was valid.

        `cwd` is the plugin's working directory, the third place where a file may lie. Raises
        `FileTransportFault`.
        """
        return await asyncio.to_thread(self._load, pointer, reader, cwd)

    def _load(self, pointer: Message, reader: Reader, cwd: str | None) -> Message:
        path = check_pointer(pointer)
        places = (str(self.path), tempfile.gettempdir(), cwd or str(Path.cwd()))
        allowed = [os.path.realpath(place) for place in places]
        try:
            fd = os.open(path, OPEN_FLAGS)
        except OSError as fault:
            msg = f"the response file cannot be opened: {fault.strerror}"
            raise FileTransportFault(msg) from None
        try:
            real = _real_path(fd, path)
            check_opened(os.fstat(fd), real, allowed, os.getuid(), self._cap)
            # Not before the check: of a folder no file object can be made.
            with os.fdopen(fd, "rb", closefd=False) as file:
                # One byte more than allowed tells a file that grew meanwhile.
                content = file.read(self._cap + 1)
        finally:
            os.close(fd)
        check_size(len(content), self._cap)
        message = check_content(content, pointer.id, reader)
        Path(real).unlink(missing_ok=True)
        return message

    def sweep(self) -> None:
        """Remove the directory and what the plugin left there, however much that is."""
        shutil.rmtree(self.path, ignore_errors=True)


def _real_path(fd: int, path: str) -> str:
    """Where the opened file really lies."""
    link = f"/proc/self/fd/{fd}"
    return str(Path(link).readlink()) if Path(link).is_symlink() else os.path.realpath(path)
