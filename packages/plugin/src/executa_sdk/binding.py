"""Which invoke the running code belongs to, and the field's typed view of its context.

Every reverse call carries the id of its invoke (R-23). A `Plugin` binds it by itself;
plugins with a stdin loop of their own bind it with `bind_invoke`. The binding is a
context variable: tasks and `asyncio.to_thread` inherit it, bare threads do not.
"""

import math
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any, Protocol, cast

from msgspec import Struct


class Bound(Protocol):
    """A call of a `Plugin` that runs here."""

    @property
    def invoke_id(self) -> str | None: ...


CURRENT: ContextVar[Bound | str | None] = ContextVar("executa_invoke", default=None)
"""The call that runs here, or just its id where a plugin has a loop of its own."""


class InvokeContext(Struct, frozen=True, kw_only=True):
    """``params.context`` of one invoke, as plugins with a loop of their own read it.

    `deadline_ms` is milliseconds since the epoch; `raw` is the context as it came.
    """

    invoke_id: str | None = None
    plugin_name: str | None = None
    deadline_ms: int | None = None
    credentials: Mapping[str, Any] | None = None
    raw: Mapping[str, Any] | None = None

    @classmethod
    def from_params(cls, params: Mapping[str, Any] | None) -> "InvokeContext":
        """Read the params of an `invoke`. What is missing or odd reads as None."""
        params = _mapping(params) or {}
        context = _mapping(params.get("context")) or {}
        return cls(
            invoke_id=context.get("invoke_id") or params.get("invoke_id"),
            plugin_name=context.get("plugin_name"),
            deadline_ms=_milliseconds(context.get("deadline_ms", params.get("deadline_ms"))),
            credentials=_mapping(context.get("credentials")),
            raw=context or None,
        )

    def remaining_s(self) -> float:
        """Seconds until the deadline, never below 0; infinity without one."""
        if self.deadline_ms is None:
            return math.inf
        return max(0.0, self.deadline_ms / 1000 - time.time())

    def has_deadline(self) -> bool:
        """Whether the host gave a deadline."""
        return self.deadline_ms is not None

    def expired(self) -> bool:
        """Whether a deadline was given and has passed."""
        return self.has_deadline() and self.remaining_s() <= 0.0

    def __repr__(self) -> str:
        return f"InvokeContext(invoke_id={self.invoke_id!r}, deadline_ms={self.deadline_ms!r})"


def _mapping(value: object) -> Mapping[str, Any] | None:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def _milliseconds(value: object) -> int | None:
    try:
        return int(cast("Any", value))
    except (TypeError, ValueError, OverflowError):
        return None


def get_current_invoke_id() -> str | None:
    """The invoke that is bound here, or None."""
    bound = CURRENT.get()
    return bound if bound is None or isinstance(bound, str) else bound.invoke_id


def set_current_invoke_id(invoke_id: str | None) -> "Token[Bound | str | None]":
    """Bind an invoke until the token is reset; `bind_invoke` is the safer way."""
    return CURRENT.set(invoke_id)


def reset_current_invoke_id(token: "Token[Bound | str | None]") -> None:
    """Undo `set_current_invoke_id`."""
    CURRENT.reset(token)


@contextmanager
def bind_invoke(
    params_or_invoke_id: Mapping[str, Any] | str | None,
) -> Generator[str | None, None, None]:
    """Bind an invoke for a ``with`` block, by the params of its request or by its id.

    Gives the id. Calls of SDK clients and `emit_progress` inside the block carry it.
    """
    if isinstance(params_or_invoke_id, Mapping):
        invoke_id = InvokeContext.from_params(params_or_invoke_id).invoke_id
    else:
        invoke_id = params_or_invoke_id or None
    token = CURRENT.set(invoke_id)
    try:
        yield invoke_id
    finally:
        CURRENT.reset(token)


def attach_invoke_context(params: dict[str, Any]) -> dict[str, Any]:
    """Put the bound invoke's id into ``params["context"]`` unless one is there.

    Returns `params`.
    """
    invoke_id = get_current_invoke_id()
    if invoke_id:
        context = params.get("context")
        if not isinstance(context, dict):
            context = params["context"] = {}
        cast("dict[str, Any]", context).setdefault("invoke_id", invoke_id)
    return params
