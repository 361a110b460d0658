"""Results too large for a line: through a file, or refused (R-11, R-12)."""

import os
from typing import Final

from executa_protocol.codes import ErrorObject, wire_error
from executa_protocol.envelope import Id, result_frame
from executa_protocol.limits import MAX_FILE_TRANSPORT, MAX_INLINE_RESULT

PREFIX: Final = "executa-resp-"


def write(identity: Id, result: bytes) -> str:
    """Write the response of `result` into a private file in TMPDIR and return its path.

    Raises OSError, leaving no file behind.
    """
    import tempfile  # noqa: PLC0415 - large results are rare

    fd, path = tempfile.mkstemp(prefix=PREFIX, suffix=".json")  # mode 0600
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(result_frame(identity, result))
    except BaseException:
        os.unlink(path)  # noqa: PTH108 - a plain path
        raise
    return path


def too_large(size: int, *, by_file: bool) -> ErrorObject | None:
    """Why a result of `size` bytes cannot be sent; None if it can."""
    limit = MAX_FILE_TRANSPORT if by_file else MAX_INLINE_RESULT
    if size <= limit:
        return None
    text = f"the result has {size:,} bytes and the most that can be sent is {limit:,}"
    return wire_error("RESULT_TOO_LARGE", text, result_size_bytes=size, max_payload_bytes=limit)
