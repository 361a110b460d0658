"""What a request to the plugin came to."""

from typing import Any

from msgspec import Struct

from executa_protocol.envelope import Id
from executa_protocol.faults import as_object

Object = dict[str, Any]


class Answer(Struct, frozen=True):
    """Exactly one of `result` and `error` is meant.

    `size` is the length of the response in bytes, its LF included. `pointer` is the path of
    the file that it came by, empty if it came inline, and `mode` that file's permissions.
    """

    id: Id
    result: Any = None
    error: Object | None = None
    size: int = 0
    pointer: str = ""
    mode: int = 0

    @property
    def failed(self) -> bool:
        """Whether an invoke failed, in either of its two ways."""
        return self.error is not None or self.members.get("success") is not True

    @property
    def members(self) -> Object:
        """The members of the result; empty if it is no object."""
        return as_object(self.result) or {}

    @property
    def code(self) -> Any:
        """The code of an error answer; None if it is none."""
        return None if self.error is None else self.error.get("code")

    def __str__(self) -> str:
        """What it says, short enough for a sentence."""
        said = f"error {self.error!r}" if self.error is not None else f"result {self.result!r}"
        return said if len(said) <= 200 else f"{said[:200]}..."
