"""Tools that a run's model calls and the host executes, as invokes nested in its own (R-36)."""

import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, Protocol

from msgspec import Raw, Struct

from executa_host.invocation import ActiveInvoke, InvokeOutcome
from executa_protocol import codec
from executa_protocol.errors import CallFailed, ExecutaError, RpcError
from executa_protocol.limits import NESTED_MAX_DEPTH
from executa_protocol.manifest import Tool
from executa_protocol.manifest_schema import tool_to_json_schema
from executa_protocol.nexus import HostTool

ALL_TOOLS: Final = "*"


class ToolRunner(Protocol):
    """What nested invokes need of the host."""

    def served_tools(self, user_id: str) -> dict[str, Tool]:
        """The tools that can be executed for this user now, by ``PLUGIN.TOOL``."""
        ...

    async def learn(self, user_id: str, tools: Iterable[str]) -> None:
        """Let plugins whose tools are granted by name say what they offer."""
        ...

    def invoke_nested(
        self, parent: ActiveInvoke, plugin: str, tool: str, arguments: dict[str, Any]
    ) -> Awaitable[InvokeOutcome]:
        """Run a tool inside `parent`."""
        ...


class ToolOutcomeData(Struct, frozen=True):
    """What is posted to nexus for one call: its verdict, and its data or what went wrong."""

    ok: bool
    data: Raw
    ms: float
    reason: str = ""


def offered_tools(
    runner: ToolRunner, user_id: str, allowed: Callable[[str], bool]
) -> tuple[HostTool, ...]:
    """The granted tools that this host serves, as they go with each run."""
    return tuple(
        HostTool(name=name, description=tool.description, parameters=tool_to_json_schema(tool))
        for name, tool in sorted(runner.served_tools(user_id).items())
        if allowed(name)
    )


async def execute(
    runner: ToolRunner, parent: ActiveInvoke, name: str, arguments: dict[str, Any]
) -> ToolOutcomeData:
    """Run one tool call. Never raises for what the tool or its plugin did."""
    started = time.monotonic()
    reason = _why_not(runner, parent, name)
    if not reason:
        plugin, _, tool = name.partition(".")
        try:
            outcome = await runner.invoke_nested(parent, plugin, tool, arguments)
        except RpcError as fault:
            reason = fault.symbol or fault.message
            return _failed(started, reason, fault.message)
        except CallFailed as fault:
            return _failed(started, type(fault).__name__, str(fault))
        except ExecutaError as fault:
            return _failed(started, "INTERNAL_ERROR", str(fault))
        if outcome.success:
            data = outcome.raw if isinstance(outcome.raw, Raw) else Raw(b"null")
            return ToolOutcomeData(True, data, _ms(started))
        return _failed(started, "TOOL_FAILED", outcome.error)
    return _failed(started, reason, _WORDS[reason])


_WORDS: Final = {
    "UNKNOWN_TOOL": "this host serves no such tool",
    "APPROVAL_REQUIRED": "the tool needs a person's approval, which a run cannot wait for",
    "NESTED_TOO_DEEP": f"invokes nest at most {NESTED_MAX_DEPTH} deep",
    "NESTED_TOO_MANY": "the root invoke has used all its nested invokes",
}


def _why_not(runner: ToolRunner, parent: ActiveInvoke, name: str) -> str:
    tool = runner.served_tools(parent.user_id).get(name)
    if tool is None:
        return "UNKNOWN_TOOL"
    if tool.approval:
        return "APPROVAL_REQUIRED"
    if parent.depth + 1 > NESTED_MAX_DEPTH:
        return "NESTED_TOO_DEEP"
    if not parent.budget.take_nested():
        return "NESTED_TOO_MANY"
    return ""


def _failed(started: float, reason: str, message: str) -> ToolOutcomeData:
    data = Raw(codec.encode({"errorCode": reason, "message": message}))
    return ToolOutcomeData(False, data, _ms(started), reason)


def _ms(started: float) -> float:
    return round((time.monotonic() - started) * 1000, 3)
