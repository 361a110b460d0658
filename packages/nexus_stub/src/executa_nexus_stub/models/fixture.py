"""A model that answers from a file, in the mock format of the field (*observed*).

One JSON object a line, ``#`` begins a comment: ``{ns, method, match?, result}``, where
``ns`` and ``method`` are the wire name in two parts, and ``events`` (``[{payload}]``)
stand for a run. The first entry that matches answers; without one the answer is a text
that says so. Owns the format, its matching and its replay; `recording` writes it.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec import Raw, Struct

from executa_nexus_stub.models.base import (
    Completion,
    ModelInfo,
    ModelRequest,
    RawFrame,
    Stop,
    TextPiece,
    TokenUsage,
    ToolSpec,
    ToolUse,
    TurnEnd,
    TurnEvent,
)
from executa_nexus_stub.models.estimate import count_request, count_tokens
from executa_nexus_stub.models.prompt import last_user_text
from executa_protocol import codec
from executa_protocol.errors import DecodeFailure, UsageError

_COMPLETIONS: Final = (("sampling", "createMessage"), ("agent", "complete"))
_RUN: Final = ("agent", "session.run")
_STOPS: Final = ("endTurn", "stopSequence", "maxTokens")


class FixtureMatch(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """When an entry answers: every member that is given must hold.

    `content_includes` looks at all messages, `prompt_includes` at the last of the user's,
    both with respect to case. `mode_equals` is the response format, or a run's submode.
    """

    content_includes: str = ""
    prompt_includes: str = ""
    mode_equals: str = ""
    tool_id: str = msgspec.field(default="", name="tool_id")
    method: str = ""


class FixtureEvent(Struct):
    """One recorded event of a run; its `payload` is a frame in any dialect."""

    payload: Raw


class FixtureEntry(Struct):
    """One line of a fixture file."""

    ns: str
    method: str
    match: FixtureMatch = FixtureMatch()
    result: Raw = Raw(b"null")
    events: list[FixtureEvent] = msgspec.field(default_factory=list[FixtureEvent])


class _RunResult(Struct):
    events: list[FixtureEvent] = msgspec.field(default_factory=list[FixtureEvent])


DEFAULT: Final = ModelInfo(name="fixture", provider="fixture")
_RUN_RESULT: Final = msgspec.json.Decoder(_RunResult)
_ENTRY: Final = msgspec.json.Decoder(FixtureEntry)


def read_fixtures(lines: Iterable[str], source: str = "fixture") -> list[FixtureEntry]:
    """The entries of a file's lines. Raises `UsageError` that names the line."""
    entries: list[FixtureEntry] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            entry = codec.decode(text.encode(), _ENTRY)
            if not entry.events and (entry.ns, entry.method) == _RUN:
                entry.events = codec.decode(entry.result, _RUN_RESULT).events
        except DecodeFailure as fault:
            msg = f"{source}, line {number}: {fault}"
            raise UsageError(msg) from None
        entries.append(entry)
    return entries


class FixtureModel:
    """Replays entries. A run's recorded tool calls go to the host if it offers the tool."""

    def __init__(self, entries: Sequence[FixtureEntry], info: ModelInfo = DEFAULT) -> None:
        self._entries = list(entries)
        self._info = info

    @classmethod
    def from_file(cls, path: str | Path, info: ModelInfo) -> "FixtureModel":
        """The entries of a file. Raises `UsageError` if it cannot be read."""
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as fault:
            msg = f"fixture {path}: {fault}"
            raise UsageError(msg) from None
        return cls(read_fixtures(lines, str(path)), info)

    @property
    def info(self) -> ModelInfo:
        """Its entry in the catalogue."""
        return self._info

    async def complete(self, request: ModelRequest) -> Completion:
        """The first entry of `sampling/createMessage` or `agent/complete` that matches."""
        entry = next(filter(None, (self._find(name, request) for name in _COMPLETIONS)), None)
        if entry is None:
            return _estimated(_unmatched(request), "endTurn", request)
        return _completion(codec.decode_any(entry.result), request)

    async def turn(
        self, request: ModelRequest, tools: Sequence[ToolSpec]
    ) -> AsyncIterator[TurnEvent]:
        """The part of the matching run that comes after the tool results so far."""
        entry = self._find(_RUN, request)
        said: list[str] = []
        if entry is None:
            said.append(_unmatched(request))
            yield TextPiece(said[0])
        offered = {tool.name for tool in tools}
        skip = _results_so_far(request)
        for event in entry.events if entry is not None else ():
            kind, frame = _frame(event)
            name = str(frame.get("name", ""))
            if kind == "tool_call" and name in offered:
                skip -= 1
                if skip < 0:
                    args = frame.get("args")
                    yield ToolUse(name, cast("dict[str, Any]", args) if args else {})
                    break
            elif skip > 0 or (kind == "tool_result" and offered):
                continue  # this part was played before; the host gives the results
            elif kind in ("delta", "token") and isinstance(frame.get("text"), str):
                said.append(frame["text"])
                yield TextPiece(frame["text"])
            elif kind not in ("final", "complete"):
                yield RawFrame(bytes(event.payload))
            elif not said and isinstance(frame.get("text"), str):
                said.append(frame["text"])
                yield TextPiece(frame["text"])
        usage = TokenUsage(count_request(request, tools), count_tokens("".join(said)))
        yield TurnEnd("endTurn", usage)

    async def aclose(self) -> None:
        """Nothing to let go of."""

    def _find(self, name: tuple[str, str], request: ModelRequest) -> FixtureEntry | None:
        for entry in self._entries:
            if (entry.ns, entry.method) == name and _matches(entry.match, name, request):
                return entry
        return None


def _matches(match: FixtureMatch, name: tuple[str, str], request: ModelRequest) -> bool:
    mode = "auto" if name == _RUN else request.format
    everything = "\n".join([request.system, *(message.text for message in request.messages)])
    return (
        match.content_includes in everything
        and match.prompt_includes in last_user_text(request.messages)
        and match.mode_equals in ("", mode)
        and match.tool_id in ("", request.tool_id)
        and match.method in ("", name[1], "/".join(name))
    )


def _completion(result: Any, request: ModelRequest) -> Completion:
    """A recorded result: sampling-shaped, or a bare text."""
    if isinstance(result, str):
        return _estimated(result, "endTurn", request)
    members = cast("dict[str, Any]", result) if isinstance(result, dict) else {}
    content: Any = members.get("content", members.get("text", ""))
    if isinstance(content, dict):
        content = cast("dict[str, Any]", content).get("text", "")
    stop: Any = members.get("stopReason")
    completion = _estimated(str(content), stop if stop in _STOPS else "endTurn", request)
    usage: Any = members.get("usage")
    if isinstance(usage, dict):
        counts = cast("dict[str, Any]", usage)
        given = TokenUsage(int(counts.get("inputTokens", 0)), int(counts.get("outputTokens", 0)))
        return msgspec.structs.replace(completion, usage=given)
    return completion


def _estimated(text: str, stop: Stop, request: ModelRequest) -> Completion:
    return Completion(text, stop, TokenUsage(count_request(request), count_tokens(text)))


def _unmatched(request: ModelRequest) -> str:
    return f"[no fixture matched] {last_user_text(request.messages)}"


def _frame(event: FixtureEvent) -> tuple[str, dict[str, Any]]:
    """The event's name and members; both empty for what is no seed frame."""
    value = codec.decode_any(event.payload)
    if not isinstance(value, dict):
        return "", {}
    frame = cast("dict[str, Any]", value)
    return str(frame.get("event", "")), frame


def _results_so_far(request: ModelRequest) -> int:
    """Tool results since the user spoke last."""
    count = 0
    for message in reversed(request.messages):
        if message.role == "user":
            break
        count += message.role == "tool"
    return count
