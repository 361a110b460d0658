"""`agent/*`: what the calls answer, read from either side's spelling.

Frames stay raw here: `frames` knows their events and dialects.
"""

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from executa_protocol.methods.reading import InvalidParams, Shape, items_of, members_of, text_of
from executa_protocol.readings import TOLERANT, Reader

_FAULT: Final = "AGENT_NEXUS_ERROR"


class AgentSessionCreateResult(Struct, omit_defaults=True, kw_only=True):
    """The answer to `agent/session.create` (seed agent-sessions). The token is never in it.

    `granted_tools` have the form ``PLUGIN.TOOL`` (R-34). The members after it are the
    field's; times are seconds or ISO 8601 texts, as nexus gives them.
    """

    app_session_uuid: str
    thread_id: str | UnsetType = UNSET
    agent_submode: str | UnsetType | None = UNSET
    granted_tools: list[str] = msgspec.field(default_factory=list[str])
    kind: str | UnsetType = UNSET
    fixed_client_id: str | UnsetType | None = UNSET
    inherit_host_tools: bool | UnsetType = UNSET
    system_prompt: str | UnsetType | None = UNSET
    expires_in: float | UnsetType | None = UNSET
    expires_at: Any = UNSET
    max_lifetime_at: Any = UNSET
    idle_ttl_seconds: float | UnsetType | None = UNSET
    session_expires_in: float | UnsetType | None = UNSET


class RunResult(Struct, omit_defaults=True, kw_only=True):
    """The answer to `agent/session.run` (R-31). `final` is the last frame, if it is a final one."""

    frames: list[Raw]
    run_id: str | UnsetType = UNSET
    final: Raw | UnsetType = UNSET
    stream_id: str | UnsetType = UNSET


class CancelRunResult(Struct, omit_defaults=True, kw_only=True):
    """The answer to `agent/session.cancel`; false for a finished or unknown run (R-32)."""

    cancelled: bool
    run_id: str | UnsetType = UNSET


class AgentSessionDeleteResult(Struct):
    """The answer to `agent/session.delete`: true also the second time (R-30)."""

    deleted: bool = True


class AgentSessionRow(Struct, omit_defaults=True, kw_only=True):
    """One agent session in the answer to `agent/session.list`."""

    app_session_uuid: str
    kind: str | UnsetType = UNSET
    submode: str | UnsetType | None = UNSET
    fixed_client_id: str | UnsetType | None = UNSET
    label: str | UnsetType | None = UNSET
    created_at: Any = UNSET
    last_active_at: Any = UNSET
    expires_at: Any = UNSET
    max_lifetime_at: Any = UNSET


class AgentSessionListResult(Struct):
    """The answer to `agent/session.list` (R-33)."""

    sessions: list[AgentSessionRow]


class AgentSessionRefreshResult(Struct, omit_defaults=True, kw_only=True):
    """The answer to `agent/session.refresh`: how long the agent session lives now."""

    app_session_uuid: str | UnsetType = UNSET
    expires_in: float | UnsetType | None = UNSET
    expires_at: Any = UNSET
    max_lifetime_at: Any = UNSET
    idle_ttl_seconds: float | UnsetType | None = UNSET
    session_expires_in: float | UnsetType | None = UNSET


_CREATE: Final = Shape(AgentSessionCreateResult, _FAULT)
_RUN: Final = Shape(RunResult, _FAULT)


def read_create_result(data: bytes | Raw, reader: Reader = TOLERANT) -> AgentSessionCreateResult:
    """Read the answer to `agent/session.create`. Raises `InvalidParams`."""
    return _CREATE.read(data, reader)


def read_run_result(data: bytes | Raw, reader: Reader = TOLERANT) -> RunResult:
    """Read the seed's bare array of frames, or the field's object with `frames` (R-31).

    Raises `DecodeFailure` for anything else, mostly `InvalidParams`.
    """
    frames = items_of(data)
    if frames is None:
        reader.tolerate("AGNT-006", "the run's answer is an object instead of an array of frames")
        return _RUN.read(data, reader)
    return RunResult(frames=frames, final=_final(frames))


def _final(frames: list[Raw]) -> Raw | UnsetType:
    event = (members_of(frames[-1]) or {}).get("event") if frames else None
    return frames[-1] if event is not None and text_of(event) == "final" else UNSET


def read_history_result(data: bytes | Raw, reader: Reader = TOLERANT) -> list[Raw]:
    """Read the answer to `agent/session.history`: a list, or the field's ``{messages}`` (R-33).

    Raises `InvalidParams` for anything else.
    """
    items = items_of(data)
    if items is None:
        messages = (members_of(data) or {}).get("messages")
        items = items_of(messages) if messages is not None else None
        if items is not None:
            reader.tolerate("AGNT-007", "the history is an object instead of an array")
    if items is None:
        raise InvalidParams(_FAULT, "expected an array of messages")
    return items
