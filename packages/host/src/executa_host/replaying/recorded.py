"""What a host was asked to do when it was recorded: the calls that its client made."""

from typing import Any, Final, cast

import msgspec
from msgspec import Raw, Struct, UnsetType

from executa_host.transcripts.reading import Part
from executa_protocol import codec, transcript

_OPEN: Final = 1 << 62


class Asked(Struct):
    """One call of a client. Rows are lines of the transcript.

    `ended` is beyond every row if it never did. `seconds` is how long it took if it was given
    up, 0 otherwise; `reason` why it was cancelled.
    """

    plugin: str
    tool: str
    user_id: str
    invoke_id: str
    began: int
    launch: int
    ended: int = _OPEN
    arguments: dict[str, Any] | None = None
    seconds: float = 0.0
    reason: str = ""

    @property
    def open(self) -> bool:
        """Whether its end is not recorded."""
        return self.ended == _OPEN


class _Invoke(Struct):
    arguments: dict[str, Raw] = {}


class _Line(Struct):
    params: _Invoke


_INVOKE: Final = msgspec.json.Decoder(_Line)


def calls_of(part: Part) -> list[Asked]:
    """The calls of a part, in the order in which they began; nested ones are the host's own."""
    calls: dict[str, Asked] = {}
    for line in part.lines:
        event = line.event
        if isinstance(event, transcript.InvokeStarted) and not event.parent:
            calls[event.invoke_id] = Asked(
                event.plugin, event.tool, event.user_id, event.invoke_id, line.row,
                line.stamp.launch,
            )  # fmt: skip
        call = calls.get(getattr(event, "invoke_id", ""))
        if call is None:
            continue
        if isinstance(event, transcript.InvokeEnded):
            call.ended = line.row
            call.seconds = event.ms / 1000 if event.outcome == "InvokeTimeout" else 0.0
        elif isinstance(event, transcript.CancelEnded):
            call.reason = event.reason
        elif isinstance(event, transcript.Frame) and _asks(event):
            call.launch = line.stamp.launch
            members = codec.decode(cast("Raw", event.line), _INVOKE).params.arguments
            call.arguments = {name: msgspec.Raw(bytes(value)) for name, value in members.items()}
    return _with_arguments(list(calls.values()))


def _asks(event: transcript.Frame) -> bool:
    known = not isinstance(event.line, UnsetType)
    return known and event.kind == "request" and event.method == "invoke"


def _with_arguments(calls: list[Asked]) -> list[Asked]:
    """A call that never reached its plugin was tried again with the same arguments, if at all."""
    for index, call in enumerate(calls):
        if call.arguments is None:
            again = (
                later.arguments
                for later in calls[index + 1 :]
                if (later.plugin, later.tool) == (call.plugin, call.tool) and later.arguments
            )
            call.arguments = next(again, dict[str, Any]())
    return calls
