"""Which invoke a reverse call belongs to (R-23). Pure."""

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from executa_host.invocation import ActiveInvoke
from executa_protocol.gate import Refusal


class _Named(Struct):
    """What almost every call says of its invoke."""

    invoke_id: str


class _Proper(Struct):
    """Params that name their invoke as they should."""

    context: _Named


class _Names(Struct):
    """The two places where a reverse call may name its invoke, whatever stands there."""

    context: Any = UNSET
    metadata: Any = UNSET


_PROPER: Final = msgspec.json.Decoder(_Proper)
_NAMES: Final = msgspec.json.Decoder(_Names)
_NEEDS: Final = ("params.context.invoke_id",)


def correlate(
    params: bytes | Raw | UnsetType, active: Mapping[str, ActiveInvoke]
) -> ActiveInvoke | Refusal:
    """The invoke that the call names or must mean, or why there is none.

    One whose answer has come is no longer active, also if its end has not been seen to yet.
    """
    named, hint = _read_names(params)
    if named is not None:
        return find(named, active)
    running = [invoke for invoke in active.values() if not invoke.answered]
    if len(running) == 1:
        return running[0]
    if hint is not None:
        for invoke in running:
            if invoke.invoke_id == hint:
                return invoke
    count = len(running) or "no"
    text = f"{count} invokes are active and the call does not say which one it belongs to"
    return Refusal("correlate", "MISSING_INVOKE_CONTEXT", text, _NEEDS)


def find(named: str, active: Mapping[str, ActiveInvoke]) -> ActiveInvoke | Refusal:
    """The invoke that the call names, or why there is none."""
    invoke = active.get(named)
    if invoke is not None and ((call := invoke.call) is None or not call.future.done()):
        return invoke
    text = f"invoke {named[:40]!r} is not active: it has ended, or this host never began it"
    return Refusal("correlate", "UNKNOWN_INVOKE_CONTEXT", text, _NEEDS)


def _read_names(params: bytes | Raw | UnsetType) -> tuple[str | None, str | None]:
    """What `context.invoke_id` and `metadata.executa_invoke_id` say, if anything."""
    if params is UNSET:
        return None, None
    try:
        return _PROPER.decode(params).context.invoke_id, None
    except msgspec.DecodeError:
        pass  # it names none, or in another way
    try:
        names = _NAMES.decode(params)
    except msgspec.DecodeError:
        # Whatever is wrong with the params is for the method's own reader to say.
        return None, None
    named = _member(names.context, "invoke_id")
    if named is not None:
        return (named if isinstance(named, str) else repr(named)), None
    hint = _member(names.metadata, "executa_invoke_id")
    return None, hint if isinstance(hint, str) else None


def _member(value: object, name: str) -> object:
    return cast("dict[str, object]", value).get(name) if isinstance(value, dict) else None
