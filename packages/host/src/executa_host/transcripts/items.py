"""What viewers show: items in time, nested. Owns their shape and no meaning."""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct, field

Kind = Literal[
    "process", "action", "invoke", "reverse", "frame", "run", "tool", "stderr", "noise",
    "state", "cancel", "other",
]  # fmt: skip
Status = Literal["ok", "refused", "failed", "open", ""]
"""How it ended: well, turned down, with an error, not at all, or it says nothing of that."""

BAD: frozenset[Status] = frozenset({"refused", "failed"})


class Item(Struct, kw_only=True, eq=False):
    """One thing that happened. Times are seconds since the transcript began.

    `start` and `end` are the same for an instant; `detail` is a few words beside the label,
    `lines` are the rows of the file that tell of it, `arrow` is the way of a frame.
    """

    kind: Kind
    label: str
    start: float
    end: float
    plugin: str = ""
    user_id: str = ""
    launch: int = 0
    part: int = 0
    status: Status = ""
    detail: str = ""
    invoke_id: str = ""
    arrow: Literal["→", "←", ""] = ""
    rows: list[int] = field(default_factory=list[int])
    children: "list[Item]" = field(default_factory=list["Item"])

    @property
    def ms(self) -> float:
        """How long it took, in milliseconds."""
        return (self.end - self.start) * 1000

    def walk(self) -> "Iterator[Item]":
        """This item and all below it, from top to bottom."""
        waiting: list[Item] = [self]
        while waiting:
            item = waiting.pop()
            yield item
            waiting += reversed(item.children)
