"""Frames of one process: what kind each is, and which request and invoke it belongs to.

Owns the requests that are open in both directions. It reads redacted lines, and believes
nothing that is not there.
"""

from collections import OrderedDict
from typing import Any, Final, Literal, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from executa_protocol import codec
from executa_protocol.errors import DecodeFailure
from executa_protocol.transcript import Frame

Kind = Literal["request", "response", "error", "notification", "other"]

_OPEN_KEPT: Final = 10_000
"""Requests that wait for an answer; of a peer that never answers the oldest is forgotten."""


class _Head(Struct):
    id: Raw | UnsetType = UNSET
    method: Any = UNSET
    params: Any = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
    pointer: Raw | UnsetType = msgspec.field(default=UNSET, name="__file_transport")
    old_pointer: Raw | UnsetType = msgspec.field(default=UNSET, name="__trans_file__")


_HEAD: Final = msgspec.json.Decoder(_Head)


class Correlation:
    """Knows what is open on the connection of one process."""

    def __init__(self) -> None:
        # By the side that asked and the id as JSON text: the method, and the invoke.
        self._open: OrderedDict[tuple[str, bytes], tuple[str, str]] = OrderedDict()
        self._pointed: dict[bytes, tuple[str, str]] = {}  # answers that stand in a file
        self._running: dict[str, None] = {}  # invokes that are not answered yet

    def take(self, frame: Frame) -> None:
        """Fill in what `frame`, which has a `line`, is and belongs to."""
        try:
            head = codec.decode(cast("Raw", frame.line), _HEAD)
        except DecodeFailure:  # JSON, and no object
            return
        frame.id = UNSET if head.id is UNSET else Raw(bytes(head.id))
        if isinstance(head.method, str):
            self._asked(frame, head.method, head.params)
        elif head.id is not UNSET:
            self._answered(frame, head)

    def _asked(self, frame: Frame, method: str, params: Any) -> None:
        frame.method = method
        frame.kind = "notification" if isinstance(frame.id, UnsetType) else "request"
        frame.invoke_id = invoke_named(params)
        if not frame.invoke_id and frame.direction == "out" and len(self._running) == 1:
            frame.invoke_id = next(iter(self._running))
        if isinstance(frame.id, Raw):
            self._open[frame.direction, bytes(frame.id)] = (method, frame.invoke_id)
            if len(self._open) > _OPEN_KEPT:
                self._open.popitem(last=False)
            if frame.direction == "in" and method == "invoke":
                self._running[frame.invoke_id] = None

    def _answered(self, frame: Frame, head: _Head) -> None:
        frame.kind = "response" if isinstance(head.error, UnsetType) else "error"
        asker = "out" if frame.direction == "in" else "in"
        number = bytes(cast("Raw", frame.id))
        if frame.file:  # its pointer has come just before, and closed the request
            asked = self._pointed.pop(number, None)
        else:
            asked = self._open.pop((asker, number), None)
            if asked is not None and (head.pointer is not UNSET or head.old_pointer is not UNSET):
                self._pointed[number] = asked
        if asked is not None:
            frame.method, frame.invoke_id = asked
            if frame.direction == "out" and frame.method == "invoke":
                self._running.pop(frame.invoke_id, None)


def invoke_named(params: Any) -> str:
    """The invoke that params name, empty if none: R-23's places, and the host's own."""
    if not isinstance(params, dict):
        return ""
    members = cast("dict[str, Any]", params)
    context, metadata = members.get("context"), members.get("metadata")
    for holder, name in (
        (context, "invoke_id"),
        (members, "invoke_id"),
        (metadata, "executa_invoke_id"),
    ):
        found = cast("dict[str, Any]", holder).get(name) if isinstance(holder, dict) else None
        if isinstance(found, str):
            return found
    return ""
