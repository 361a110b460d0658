"""What every command that speaks to a running host needs: where, with which key, and how it ends.

Owns the options that these commands share, and what a refusal means as an exit code. A key
comes from the environment or a file, never from the command line, which others can read.
"""

import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec
from cyclopts import Parameter
from rich.console import Console

from executa_host.cli import exits
from executa_host.cli.output import Screen, write_line
from executa_host.cli.running import run
from executa_host.client import (
    ApiError,
    Client,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Unauthenticated,
    Unavailable,
    Unreachable,
)
from executa_host.client.client import DEFAULT_URL
from executa_protocol.errors import ExecutaError, UsageError

T = TypeVar("T")

KEY_ENV: Final = "EXECUTA_API_KEY"
URL_ENV: Final = "EXECUTA_API_URL"

_MAX_KEY_FILE: Final = 4096
_CODES: Final[tuple[tuple[type[ExecutaError], int], ...]] = (
    (Unreachable, exits.BROKEN),
    (Unauthenticated, exits.REFUSED),
    (Forbidden, exits.REFUSED),
    (Conflict, exits.REFUSED),
    (Unavailable, exits.REFUSED),
    (Invalid, exits.USAGE),
    (NotFound, exits.USAGE),
    (Gone, exits.USAGE),
    (UsageError, exits.USAGE),
)


@Parameter(name="*")
@dataclass(frozen=True)
class Remote:
    """Which host, under which key, and for whom the output is."""

    url: Annotated[str, Parameter(env_var=URL_ENV, help="Where the host's API is.")] = DEFAULT_URL
    key_file: Annotated[
        Path | None, Parameter(help=f"File that holds the API key; without it {KEY_ENV} does.")
    ] = None
    json: Annotated[bool, Parameter(negative="", help="Print JSON.")] = False


HERE: Final = Remote()


def speak(remote: Remote, ask: Callable[[Client], Awaitable[T]]) -> T:
    """Ask the host something. Ends the command with a sentence and a code on a fault."""

    async def visit() -> T:
        async with Client(remote.url, _key(remote)) as client:
            return await ask(client)

    try:
        return run(visit())
    except ExecutaError as fault:
        code = _exit_code(fault)
        if remote.json:
            print_json({"ok": False, "error": _told(fault)})
            raise exits.Stop("", code) from None
        raise exits.Stop(_advice(fault), code) from None


def print_json(document: object) -> int:
    """One JSON value on a line, whatever line ends raw members bring."""
    write_line(msgspec.json.format(msgspec.json.encode(document), indent=-1))
    return exits.OK


def screen() -> Console:
    """Where a person reads answers."""
    return Screen(highlight=False)


def _key(remote: Remote) -> str:
    if remote.key_file is None:
        key = os.environ.get(KEY_ENV, "")
        if not key:
            msg = f"no API key: set {KEY_ENV} or give --key-file (executa keys create makes one)"
            raise UsageError(msg)
        return key.strip()
    try:
        with remote.key_file.open(encoding="ascii") as file:
            key = file.read(_MAX_KEY_FILE).strip()
    except (OSError, UnicodeDecodeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "it holds no key"
        raise UsageError(f"{remote.key_file} cannot be read: {reason}") from None
    if not key:
        raise UsageError(f"{remote.key_file} holds no key")
    return key


def _exit_code(fault: ExecutaError) -> int:
    for kind, code in _CODES:
        if isinstance(fault, kind):
            return code
    return exits.FAILED


def _told(fault: ExecutaError) -> dict[str, Any]:
    if isinstance(fault, ApiError):
        return {
            "code": fault.code,
            "message": fault.message,
            "path": fault.path,
            "retryable": fault.retryable,
            "data": fault.data,
        }
    code = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(fault).__name__).upper()
    return {"code": code, "message": str(fault), "path": "", "retryable": False, "data": {}}


def _advice(fault: ExecutaError) -> str:
    if isinstance(fault, Unreachable) and fault.written is False:
        return f"{fault}; is the host running (executa serve)? --url or {URL_ENV} says where"
    if isinstance(fault, Unauthenticated):
        return f"{fault}; the key is in {KEY_ENV} or the file of --key-file"
    if isinstance(fault, Unavailable):
        return f"{fault}; try again later"
    return str(fault)
