"""A response that came by file: loaded as a host loads it (R-12)."""

import os
import stat
import tempfile
from pathlib import Path

from msgspec import UNSET

from executa_conformance.evidence import Evidence
from executa_conformance.lookout import Lookout
from executa_conformance.model import NotMet
from executa_conformance.plugin.answer import Answer
from executa_protocol.codec import decode_any
from executa_protocol.envelope import Message
from executa_protocol.filetransport import (
    OPEN_FLAGS,
    FileTransportFault,
    check_content,
    check_opened,
    check_pointer,
)
from executa_protocol.limits import MAX_FILE_TRANSPORT


def load(pointer: Message, folder: Path, evidence: Evidence, lookout: Lookout) -> Answer:
    """The answer in the file that `pointer` names; the file is deleted once it was valid.

    `folder` is the plugin's TMPDIR. Raises `NotMet` for what a host must refuse.
    """
    places = (str(folder), tempfile.gettempdir(), str(Path.cwd()))
    try:
        path = check_pointer(pointer)
        descriptor = os.open(path, OPEN_FLAGS)
        try:
            status = os.fstat(descriptor)
            allowed = [os.path.realpath(place) for place in places]
            check_opened(status, os.path.realpath(path), allowed, os.getuid())
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                content = file.read(MAX_FILE_TRANSPORT + 1)
        finally:
            os.close(descriptor)
        message = check_content(content, pointer.id)
        Path(path).unlink()
    except FileTransportFault as fault:
        raise NotMet(str(fault)) from None
    except OSError as fault:
        msg = f"the response file cannot be read: {fault.strerror}"
        raise NotMet(msg) from None
    evidence.add("*", content, f"the content of {path}")
    error = None if message.error is UNSET else decode_any(message.error)
    result = None
    if message.result is not UNSET:
        lookout.by_file("invoke", message.result)
        result = decode_any(message.result)
    identity = None if message.id is UNSET else message.id
    mode = stat.S_IMODE(status.st_mode)
    return Answer(identity, result, error, len(content), path, mode)
