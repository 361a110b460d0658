"""What each capability promises, from its manifest entry and the host's settings (R-52).

Owns the making of contracts; where manifests come from is behind `Catalog`.
"""

from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Struct, UnsetType

from executa_host.actions.limits import DAY
from executa_host.actions.records import Contract, Effect, Mode, Retry
from executa_host.actions.settings import CapabilityConfig
from executa_protocol import canonical
from executa_protocol.manifest import Tool
from executa_protocol.manifest_schema import tool_to_json_schema

T = TypeVar("T")

_ENCODER = msgspec.json.Encoder()


class Capability(Struct, frozen=True):
    """A contract with the tool that it is about."""

    contract: Contract
    plugin: str
    tool: Tool


class Catalog(Protocol):
    """Everything that can be called."""

    async def find(self, name: str, user_id: str) -> Capability | None:
        """A capability by its name; None if there is none.

        Raises `Unavailable` CAPABILITY_UNAVAILABLE if its plugin cannot be asked now.
        """
        ...

    async def all(self, user_id: str) -> tuple[Capability, ...]:
        """Every capability of plugins that can be asked, sorted by name."""
        ...


def capability_of(
    plugin: str,
    tool: Tool,
    configured: dict[str, CapabilityConfig],
    time_limit: float | None = None,
) -> Capability:
    """The contract of a tool. `time_limit` are the seconds that its plugin's spec sets."""
    name = f"{plugin}.{tool.name}"
    found = (configured.get(key) for key in (name, f"{plugin}.*", "*"))
    config = next((each for each in found if each is not None), CapabilityConfig())
    effect = _set(config.effect, Effect(tool.effect))
    modes = (Mode.SYNC, Mode.ASYNC, Mode.STREAMING) if tool.streaming else (Mode.SYNC, Mode.ASYNC)
    seconds = tool.time_limit if time_limit is None else time_limit
    retry = _set(config.retry, Retry())
    contract = Contract(
        capability=name,
        description=tool.description,
        modes=_set(config.modes, modes),
        input_schema=input_schema(tool),
        effect=effect,
        approval=_set(config.approval, tool.approval),
        approvers=config.approvers,
        approval_ttl_ms=_set(config.approval_ttl_ms, DAY),
        timeout_ms=_set(config.timeout_ms, int(seconds * 1000)),
        retry=retry if effect.repeatable else Retry(attempts=1),
        entry=canonical.digest(_ENCODER.encode(tool)),
    )
    return Capability(contract, plugin, tool)


def input_schema(tool: Tool) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments."""
    return tool_to_json_schema(tool)


def content_of(contract: Contract, input_digest: str) -> str:
    """What an approval binds to: capability, input and manifest entry, digested (R-46)."""
    content = {
        "capability": contract.capability,
        "entry": contract.entry,
        "input": input_digest,
    }
    return canonical.digest(_ENCODER.encode(content))


def _set(configured: T | UnsetType, otherwise: T) -> T:
    return otherwise if isinstance(configured, UnsetType) else configured
