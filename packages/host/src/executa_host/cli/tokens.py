"""Resume tokens in files: a credential that no terminal shows and no shell remembers (R-50).

Owns the file, which only its owner can read and which is replaced as a whole, and the id of a
resume attempt. That id follows from the token, so that a command whose answer was lost may
simply be given again.
"""

import hashlib
import os
import secrets
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from executa_protocol.errors import UsageError

TokenFile = Annotated[
    Path | None,
    Parameter(help="File for the resume token, which the next one replaces; only you can read it."),
]

_LONGEST: Final = 512


def read_token(path: Path) -> str:
    """The token of a file. Raises `UsageError`."""
    try:
        with path.open(encoding="ascii") as file:
            token = file.read(_LONGEST + 1).strip()
    except (OSError, UnicodeDecodeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "it holds no token"
        raise UsageError(f"{path} cannot be read: {reason}") from None
    if not token or len(token) > _LONGEST:
        raise UsageError(f"{path} holds no resume token")
    return token


def keep_token(path: Path, token: str) -> None:
    """Put a token into a file, in place of the one before. Raises `UsageError`."""
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(new, flags, 0o600), "w", encoding="ascii") as file:
            file.write(f"{token}\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as fault:
        new.unlink(missing_ok=True)
        raise UsageError(f"the resume token cannot be kept in {path}: {fault.strerror}") from None


def attempt_of(token: str) -> str:
    """The attempt of whoever resumes with this token, however often."""
    return hashlib.sha256(b"executa resume attempt\x00" + token.encode()).hexdigest()[:32]
