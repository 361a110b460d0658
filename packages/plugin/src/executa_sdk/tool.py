"""A tool: a function, how it runs, and what the manifest says of it."""

import inspect
from collections.abc import Callable
from typing import Any, Final, Literal

from executa_protocol.errors import UsageError
from executa_protocol.limits import MAX_TOOL_TIMEOUT
from executa_sdk.schema import Schema, function_of

Effect = Literal["read", "idempotent", "mutating"]
"""What a call changes: nothing, the same however often it runs, or something each time (R-45)."""

Way = Literal["task", "thread", "inline"]
"""How a tool runs: as a task on the loop, in a thread, or on the loop without a task."""

EFFECTS: Final[tuple[Effect, ...]] = ("read", "idempotent", "mutating")


class Tool:
    """One tool of a plugin. `schema` is read from the signature when first asked for."""

    __slots__ = (
        "_schema",
        "approval",
        "effect",
        "fn",
        "name",
        "streaming",
        "text",
        "timeout",
        "way",
    )

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        timeout: float | None = None,
        streaming: bool = False,
        effect: Effect | None = None,
        approval: bool = False,
        inline: bool = False,
    ) -> None:
        self.fn = fn
        self.name = name or getattr(fn, "__name__", "")
        self.text = description
        self.timeout = timeout
        self.streaming = streaming
        self.effect: Effect | None = effect
        self.approval = approval
        self.way: Way = _way(fn, self.name, inline=inline)
        self._schema: Schema | None = None
        self._check()

    @property
    def schema(self) -> Schema:
        """What the tool takes. Raises `UsageError` for a signature that no manifest can state."""
        if self._schema is None:
            self._schema = Schema(self.fn, self.name)
        return self._schema

    @property
    def description(self) -> str:
        """As stated, else the docstring without its sections, else the name in words."""
        return self.text or self.schema.description or self.name.replace("_", " ").capitalize()

    def entry(self) -> dict[str, Any]:
        """The tool's entry in the manifest."""
        entry: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "parameters": self.schema.parameters,
        }
        if self.timeout is not None:
            entry["timeout"] = self.timeout
        if self.streaming:
            entry["streaming"] = True
        if self.effect is not None:
            entry["effect"] = self.effect
        if self.approval:
            entry["approval"] = True
        return entry

    def _check(self) -> None:
        if not self.name or not self.name.replace("-", "_").isidentifier():
            msg = f"a tool's name is letters, digits, _ and -; {self.name!r} is none"
            raise UsageError(msg)
        if self.timeout is not None and not 0 < self.timeout <= MAX_TOOL_TIMEOUT:
            most = f"{MAX_TOOL_TIMEOUT:,.0f}"
            msg = f"tool {self.name!r}: timeout is in seconds, above 0 and at most {most}"
            raise UsageError(msg)
        if self.effect is not None and self.effect not in EFFECTS:
            msg = f"tool {self.name!r}: effect is one of {', '.join(EFFECTS)}"
            raise UsageError(msg)


def _way(fn: Callable[..., Any], name: str, *, inline: bool) -> Way:
    target = function_of(fn)
    if inspect.isasyncgenfunction(target) or inspect.isgeneratorfunction(target):
        msg = f"tool {name!r} is a generator; return a value, and report on the way with progress()"
        raise UsageError(msg)
    if inspect.iscoroutinefunction(target):
        if inline:
            msg = f"tool {name!r}: inline=True is for plain functions that do not block"
            raise UsageError(msg)
        return "task"
    return "inline" if inline else "thread"
