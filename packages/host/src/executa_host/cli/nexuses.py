"""The nexus that a command runs against: in this process, or a stub as a process of its own.

Both are found by the entry-point group ``executa.nexus``; nothing here imports a nexus.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final, Literal, Protocol, cast

import msgspec
from msgspec import Struct

from executa_host.cli import exits
from executa_protocol.nexus import Nexus

Kind = Literal["direct", "http"]
"""In this process, or over HTTP from a process of its own."""

GROUP: Final = "executa.nexus"
START_SECONDS: Final = 20.0
"""How long the stub's process may take until it says where it listens."""


class Injected(Struct, frozen=True):
    """A fault that nexus injected on purpose: in the `call`-th call of an endpoint."""

    endpoint: str
    call: int
    kind: str


class Cloud(Protocol):
    """A nexus, and what its faults struck."""

    @property
    def nexus(self) -> Nexus: ...

    async def injected(self) -> Sequence[Injected]:
        """The faults so far, in the order in which they struck."""
        ...


def in_process(name: str = "stub", config: dict[str, Any] | None = None) -> Nexus:
    """The nexus of this name, made anew. Raises `exits.Stop` where there is none."""
    return cast("Nexus", _entry(name).load()(config))


def over_http(url: str, *, show_key: bool = False) -> Nexus:
    """The nexus at this address; with `show_key` this host shows it the user's key.

    Raises `UsageError` for an address that is none.
    """
    # Not above: a command without HTTP starts sooner without its library.
    from executa_host.nexus.http import KEY_ENV, HttpNexus  # noqa: PLC0415

    return HttpNexus(url, key=os.environ.get(KEY_ENV, "") if show_key else "")


@asynccontextmanager
async def open_cloud(
    kind: Kind, faults: str = "", settings: Mapping[str, Any] | None = None
) -> AsyncGenerator[Cloud]:
    """A nexus of this kind with these faults and the stub's `settings`, and its clean end."""
    if kind == "http":
        async with _own_process(faults, settings or {}) as url:
            cloud = _Remote(url)
            try:
                yield cloud
            finally:
                await cloud.nexus.aclose()
        return
    given = {**(settings or {}), **({"faults": faults} if faults else {})}
    local = _Local(in_process(config=given or None))
    try:
        yield local
    finally:
        await local.nexus.aclose()


class _Local:
    def __init__(self, nexus: Nexus) -> None:
        self.nexus = nexus

    async def injected(self) -> Sequence[Injected]:
        faults: Any = getattr(self.nexus, "faults", None)
        struck: list[Any] = [] if faults is None else list(faults.injected)
        return [Injected(each.endpoint, each.call, each.kind) for each in struck]


class _Answer(Struct):
    injected: list[Injected]


class _Remote:
    def __init__(self, url: str) -> None:
        self.nexus = over_http(url)
        self._url = url

    async def injected(self) -> Sequence[Injected]:
        # Not above: a command without HTTP starts sooner without its library.
        from aiohttp import ClientError, ClientSession, ClientTimeout  # noqa: PLC0415

        timeout = ClientTimeout(total=10)
        try:
            async with (
                ClientSession(timeout=timeout) as client,
                client.get(f"{self._url}/api/v1/admin/faults") as answer,
            ):
                return msgspec.json.decode(await answer.read(), type=_Answer).injected
        except (ClientError, TimeoutError, msgspec.DecodeError):
            return []


@asynccontextmanager
async def _own_process(faults: str, settings: Mapping[str, Any]) -> AsyncGenerator[str]:
    """The stub as a process; gives the URL that it serves."""
    module = _entry("stub").value.partition(":")[0]
    words = [sys.executable, "-m", module, "--port", "0", *(["--faults", faults] if faults else [])]
    with tempfile.TemporaryDirectory(prefix="executa-stub-") as folder:
        if settings:
            words += ["--config", str(_written(Path(folder, "settings.json"), settings))]
        stub = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C may cancel one call, and must not end nexus
        )
        try:
            yield await _address(stub)
        finally:
            if stub.returncode is None:
                stub.terminate()
            await stub.communicate()


def _written(file: Path, settings: Mapping[str, Any]) -> Path:
    file.write_bytes(msgspec.json.encode(settings))
    return file


async def _address(stub: asyncio.subprocess.Process) -> str:
    """Where the stub says that it listens."""
    if stub.stdout is not None:
        try:
            async with asyncio.timeout(START_SECONDS):
                line = (await stub.stdout.readline()).decode().strip()
        except TimeoutError:
            line = ""
        url = line.rpartition(" ")[2]
        if url.startswith("http"):
            return url
    msg = "the nexus stub did not start; see what it said above"
    raise exits.Stop(msg, exits.BROKEN)


def _entry(name: str) -> EntryPoint:
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in found:
        known = ", ".join(sorted(found)) or "none"
        msg = f"no nexus named {name!r} is installed (there is {known}); install executa-nexus-stub"
        raise exits.Stop(msg, exits.USAGE)
    return found[name]
