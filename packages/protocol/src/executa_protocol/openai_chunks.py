"""OpenAI's chat-completion chunks, read as pieces of text and whole tool calls.

Some nexus streams pass a provider's chunks on as they are (R-31). A tool call
arrives there in fragments, its arguments as pieces of JSON text; it is given once
it is whole. Only the first choice counts. This module knows nothing of frames
around the chunks; `dialects` does.
"""

from typing import Any, Final, cast

from msgspec import Struct

from executa_protocol import codec
from executa_protocol.errors import DecodeFailure
from executa_protocol.frames import ToolCall, check_depth
from executa_protocol.limits import MAX_LINE

Object = dict[str, Any]

_CALL_COST: Final = 64
"""What an unfinished call counts beside its text, so that many empty ones are bounded too."""


class _Partial(Struct):
    """A tool call of which more may come."""

    call_id: str
    name: str
    arguments: list[str]


class ChunkReader:
    """Reads the chunks of one answer, in order.

    `finished` is true once a finish reason came; `usage` is the last one seen. What
    waits to become whole is bounded by `max_bytes`.
    """

    __slots__ = ("_calls", "_held", "finished", "max_bytes", "usage")

    def __init__(self, *, max_bytes: int = MAX_LINE) -> None:
        self.max_bytes = max_bytes
        self.finished = False
        self.usage: Object | None = None
        self._calls: dict[int, _Partial] = {}
        self._held = 0

    def read(self, chunk: Object) -> list[str | ToolCall]:
        """Read one chunk; give its text and the calls that it completes. Raises `DecodeFailure`."""
        usage = chunk.get("usage")
        if isinstance(usage, dict):
            self.usage = cast("Object", usage)
        choices = _list(chunk.get("choices"), "choices")
        if not choices:  # the chunk that only carries the usage
            return []
        choice = _object(choices[0], "choices[0]")
        message = _object(choice.get("delta") or choice.get("message") or {}, "choices[0].delta")
        given: list[str | ToolCall] = []
        content = message.get("content")
        if content is not None:
            text = text_of(content)
            if text is None:
                msg = "choices[0].delta.content: expected text"
                raise DecodeFailure(msg, path="choices[0].delta.content")
            if text:
                given.append(text)
        calls = _list(message.get("tool_calls") or [], "choices[0].delta.tool_calls")
        for position, item in enumerate(calls):
            self._fragment(_object(item, "choices[0].delta.tool_calls"), position)
        if isinstance(choice.get("finish_reason"), str):
            self.finished = True
            given += self.flush()
        return given

    def flush(self) -> list[ToolCall]:
        """Give the calls that wait, because nothing more of them can come.

        One whose arguments are no JSON object was cut off, or the model wrote nonsense:
        nobody could execute it, and it is left out.
        """
        calls, self._calls, self._held = self._calls, {}, 0
        whole = (_whole(calls[index]) for index in sorted(calls))
        return [call for call in whole if call is not None]

    def _fragment(self, item: Object, position: int) -> None:
        index = item.get("index", position)
        function = _object(item.get("function") or {}, "choices[0].delta.tool_calls.function")
        call_id, name = item.get("id") or "", function.get("name") or ""
        arguments = function.get("arguments") or ""
        if isinstance(arguments, dict):  # some providers send them decoded
            arguments = codec.encode(cast("Object", arguments)).decode()
        if not (
            type(index) is int
            and isinstance(call_id, str)
            and isinstance(name, str)
            and isinstance(arguments, str)
        ):
            msg = "choices[0].delta.tool_calls: a member has the wrong type"
            raise DecodeFailure(msg, path="choices[0].delta.tool_calls")
        call = self._calls.get(index)
        if call is None:
            call = self._calls[index] = _Partial("", "", [])
            self._held += _CALL_COST
        call.call_id = call.call_id or call_id
        call.name = call.name or name
        if arguments:
            call.arguments.append(arguments)
        self._held += len(call_id) + len(name) + len(arguments)
        if self._held > self.max_bytes:
            self._calls, self._held = {}, 0
            msg = f"the tool calls of one answer are over {self.max_bytes:,} bytes"
            raise DecodeFailure(msg, path="choices[0].delta.tool_calls")


def text_of(content: object) -> str | None:
    """The text of a message's content: a string, one text part, or a list of them; else None."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        text = cast("Object", content).get("text")
        return text if isinstance(text, str) else None
    if isinstance(content, list):
        texts = [text_of(part) for part in cast("list[object]", content)]
        return "".join(text for text in texts if text is not None)
    return None


def _whole(call: _Partial) -> ToolCall | None:
    text = "".join(call.arguments).encode()
    try:
        check_depth(text)
        arguments: object = codec.decode_any(text) if text else {}
    except DecodeFailure:
        return None
    if not isinstance(arguments, dict):
        return None
    return ToolCall(call.name, call.call_id, cast("Object", arguments))


def _object(value: object, path: str) -> Object:
    if not isinstance(value, dict):
        msg = f"{path}: expected an object"
        raise DecodeFailure(msg, path=path)
    return cast("Object", value)


def _list(value: object, path: str) -> list[object]:
    if not isinstance(value, list):
        msg = f"{path}: expected an array"
        raise DecodeFailure(msg, path=path)
    return cast("list[object]", value)
