"""What a fault means at the end of a command: a sentence, one JSON object, and an exit code."""

import difflib
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any, Final, cast

from executa_host.cli import exits
from executa_host.cli.output import write_json
from executa_host.connection import StartFailed
from executa_host.invocation import InvokeRefused
from executa_host.process import SpawnFailed
from executa_host.supervisor import PluginFaulted
from executa_protocol.codes import INVALID_PARAMS, METHOD_NOT_FOUND
from executa_protocol.errors import (
    CallCancelled,
    CallTimeout,
    ConnectionLost,
    DecodeFailure,
    ExecutaError,
    RpcError,
    UsageError,
)
from executa_protocol.nexus import NexusError

_BROKEN: Final = (StartFailed, SpawnFailed, PluginFaulted, ConnectionLost, DecodeFailure)
_MISUSE: Final = (INVALID_PARAMS, METHOD_NOT_FOUND)
_UNREACHED: Final = 0


def exit_code(fault: ExecutaError) -> int:
    """The exit code that a fault means."""
    if isinstance(fault, _BROKEN):
        return exits.BROKEN
    if isinstance(fault, CallCancelled):
        return exits.INTERRUPTED
    if isinstance(fault, RpcError) and fault.code in _MISUSE:
        return exits.USAGE
    if isinstance(fault, NexusError):
        return exits.BROKEN if fault.status == _UNREACHED else exits.REFUSED
    if isinstance(fault, InvokeRefused):
        return exits.REFUSED
    return exits.USAGE if isinstance(fault, UsageError) else exits.FAILED


def told(fault: Exception) -> dict[str, Any]:
    """The fault for a program."""
    kind = "UsageError" if isinstance(fault, exits.Stop) else type(fault).__name__
    error: dict[str, Any] = {"kind": kind, "message": str(fault)}
    if isinstance(fault, RpcError):
        error |= {"code": fault.code, "message": fault.message, "data": fault.data}
    return {"ok": False, "error": error}


def advice(fault: ExecutaError) -> str:
    """The fault in words, with the nearest names where a tool's name was wrong."""
    if isinstance(fault, CallTimeout):
        return f"{fault}; give it longer with --timeout"
    if not isinstance(fault, RpcError):
        return str(fault)
    names = fault.data.get("available_tools")
    asked = str(fault.message).split("'")
    if isinstance(names, list) and len(asked) > 1:
        known = [str(name) for name in cast("list[object]", names)]
        near = nearest(asked[1], known)
        if near:
            return f"{fault.message}. {near}"
    return fault.message


def nearest(word: str, known: Iterable[str]) -> str:
    """A question after the names that were perhaps meant; empty if none is near."""
    near = difflib.get_close_matches(word, list(known), n=2)
    return f"Did you mean {' or '.join(near)}?" if near else ""


@contextmanager
def ending(*, json: bool) -> Generator[None]:
    """Ends the command on a fault in the block: on stdout for a program, else on stderr."""
    try:
        yield
    except exits.Stop as stop:
        if not json or not str(stop):
            raise
        write_json(told(stop))
        raise exits.Stop("", stop.code) from None
    except ExecutaError as fault:
        code = exit_code(fault)
        if json:
            write_json(told(fault))
            raise exits.Stop("", code) from None
        raise exits.Stop(advice(fault), code) from None
