"""Trace events as structured log records: JSON lines or key=value, through stdlib logging.

Owns the level of each event and the form of a line. What a plugin or a model said (frames,
progress, lines on the wire) is left out unless it is asked for, because logs travel
further than data should. Nothing here knows the host.
"""

import json
import logging
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TextIO, cast

import msgspec

from executa_protocol import transcript
from executa_protocol.transcript import AnyEvent

LOGGER: Final = "executa"
"""The logger of trace events; ``executa_host`` and its children log beside it."""

Style = Literal["json", "keys"]

_FIELD: Final = "executa_event"
_CONTENT: Final = ("params", "frame", "line", "text", "sample")
"""Members that hold what a plugin or a model said."""

_WHOSE: Final = ("plugin", "user_id")

_LEVELS: Final[dict[type, int]] = {
    transcript.Spawned: logging.INFO,
    transcript.Negotiated: logging.INFO,
    transcript.Described: logging.INFO,
    transcript.StateChanged: logging.INFO,
    transcript.Exited: logging.INFO,
    transcript.InvokeStarted: logging.DEBUG,
    transcript.InvokeEnded: logging.INFO,
    transcript.CancelEnded: logging.INFO,
    transcript.ReverseStarted: logging.DEBUG,
    transcript.ReverseEnded: logging.INFO,
    transcript.RunFrame: logging.DEBUG,
    transcript.ToolExecuted: logging.INFO,
    transcript.Progress: logging.DEBUG,
    transcript.Noise: logging.WARNING,
    transcript.Stderr: logging.INFO,
    transcript.ActionAttempt: logging.DEBUG,
    transcript.Frame: logging.DEBUG,
}
_STATES: Final = {"unhealthy", "restarting", "faulted"}


def level_of(event: AnyEvent) -> int:
    """How much an event matters: a fault, a failure or a refusal is a warning."""
    match event:
        case transcript.Exited(fault=True):
            return logging.WARNING
        case transcript.StateChanged(state=state) if state in _STATES:
            return logging.ERROR if state == "faulted" else logging.WARNING
        case transcript.InvokeEnded(outcome=outcome) if outcome != "ok":
            return logging.WARNING
        case transcript.ReverseEnded(verdict=verdict) if verdict != "served":
            return logging.WARNING
        case transcript.ToolExecuted(ok=False):
            return logging.WARNING
        case transcript.Noise(kind="tolerated"):
            return logging.INFO
        case _:
            return _LEVELS.get(type(event), logging.DEBUG)


class EventLog:
    """A consumer of trace events that logs each of them.

    With `content` what plugins and models said is logged too, and a plugin's stderr always,
    because that is its log. Below the logger's level an event costs one comparison.
    """

    def __init__(self, logger: logging.Logger | None = None, *, content: bool = False) -> None:
        self._logger = logger or logging.getLogger(LOGGER)
        self._content = content

    def __call__(self, event: AnyEvent) -> None:
        level = level_of(event)
        if not self._logger.isEnabledFor(level):
            return
        members: dict[str, Any] = msgspec.json.decode(transcript.encode_event(event))
        if not (self._content or isinstance(event, transcript.Stderr)):
            members = {key: value for key, value in members.items() if key not in _CONTENT}
        name = str(members.pop("event"))
        self._logger.log(level, "%s", name, extra={_FIELD: members})


class EventFormatter(logging.Formatter):
    """One line for each record: as JSON, or as key=value for people with grep.

    Records that are no events have their message; a traceback goes into its own member. A
    line end or a control character in a value never ends or colours the line.
    """

    def __init__(self, style: Style = "json") -> None:
        super().__init__()
        self._json = style == "json"

    def format(self, record: logging.LogRecord) -> str:
        """The line of one record."""
        members = dict(self._members(record))
        if self._json:
            return json.dumps(members, separators=(",", ":"), default=str)
        return " ".join(f"{key}={_plain(value)}" for key, value in members.items())

    def _members(self, record: logging.LogRecord) -> Iterator[tuple[str, Any]]:
        event = cast("Mapping[str, Any] | None", getattr(record, _FIELD, None))
        at = record.created if event is None else float(event["at"])
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))
        yield "at", f"{stamp}.{int(at * 1000) % 1000:03d}Z"
        yield "level", record.levelname.lower()
        if event is None:
            yield "logger", record.name
            yield "message", record.getMessage()
        else:
            yield "event", record.getMessage()
            yield from ((key, event[key]) for key in _WHOSE if key in event)
            yield from ((key, value) for key, value in event.items() if key not in ("at", *_WHOSE))
        if record.exc_info:
            yield "traceback", self.formatException(record.exc_info)


def log_to(
    stream: TextIO | None = None, *, style: Style = "json", level: int = logging.INFO
) -> logging.Handler:
    """Send the host's log and its events to `stream` (stderr if None), one line a record.

    For programs; a library that has its own logging adds an `EventLog` alone. The handler
    that it returns goes with `stop_logging`.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(EventFormatter(style))
    for name in (LOGGER, "executa_host"):
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.propagate = False
        logger.addHandler(handler)
    return handler


def stop_logging(handler: logging.Handler) -> None:
    """Undo `log_to`."""
    for name in (LOGGER, "executa_host"):
        logger = logging.getLogger(name)
        logger.removeHandler(handler)
        logger.propagate = True
        logger.setLevel(logging.NOTSET)


def _plain(value: Any) -> str:
    if isinstance(value, bool | int | float):
        return str(value).lower()
    if isinstance(value, list) and all(isinstance(i, str) for i in cast("list[object]", value)):
        value = ",".join(cast("list[str]", value))
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    if text and text.isascii() and text.isprintable() and not set(text) & set(' ="\\'):
        return text
    return json.dumps(text)
