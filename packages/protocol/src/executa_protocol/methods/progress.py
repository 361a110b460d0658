"""`executa/progress`: a plugin tells how far an invoke has come.

Owns the notification's struct. Rates and rings belong to the host; a notification
is never answered, so what is wrong with one can only be reported.
"""

from typing import Final, Literal

from msgspec import UNSET, Raw, Struct, UnsetType

from executa_protocol.limits import PROGRESS_MAX_BYTES
from executa_protocol.methods.common import CallContext
from executa_protocol.methods.reading import InvalidParams, Members, Shape, raw, text_of
from executa_protocol.readings import TOLERANT, Reader

METHOD: Final = "executa/progress"
SHORT_NAME: Final = "progress"
"""How some plugins spell the method."""

_TYPES: Final = ("progress", "tool_update")


class ProgressParams(Struct, omit_defaults=True, kw_only=True):
    """One event of an invoke. `data` is raw JSON, at most 8 KiB as encoded."""

    type: Literal["progress", "tool_update"]
    data: Raw | UnsetType = UNSET
    context: CallContext | UnsetType = UNSET


def check_progress(params: ProgressParams) -> None:
    """Raise `InvalidParams` for an event over 8 KiB."""
    if params.data is UNSET:
        return
    size = len(bytes(params.data))
    if size > PROGRESS_MAX_BYTES:
        message = f"data: {size:,} bytes, at most {PROGRESS_MAX_BYTES:,}"
        raise InvalidParams("INVALID_PARAMS", message, path="data")


def _fold(members: Members, reader: Reader) -> None:
    word = text_of(members["type"]) if "type" in members else None
    if word not in _TYPES:
        reader.tolerate("CORE-007", f"type {word!r} is read as progress")
        members["type"] = raw("progress")


_PROGRESS: Final = Shape(ProgressParams, "INVALID_PARAMS", check=check_progress, fold=_fold)


def read_progress(data: bytes | Raw | UnsetType, reader: Reader = TOLERANT) -> ProgressParams:
    """Read the params of `executa/progress`; unknown types become ``progress``.

    Raises `InvalidParams`.
    """
    return _PROGRESS.read(data, reader)
