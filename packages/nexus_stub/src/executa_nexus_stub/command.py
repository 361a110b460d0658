"""``executa nexus``: the stub as a program of its own.

Owns its options and how it starts and stops. It prints where it listens and the seed of
its faults, then serves until it is interrupted.
"""

import argparse
import asyncio
import signal
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from executa_nexus_stub.config import StubConfig, read_config
from executa_nexus_stub.core import NexusStub
from executa_nexus_stub.fault_text import read_faults
from executa_nexus_stub.http.openapi import document
from executa_nexus_stub.http.server import NexusServer
from executa_protocol.errors import UsageError


def nexus(
    *,
    port: int = 8460,
    host: str = "127.0.0.1",
    config: Path | None = None,
    data: Path | None = None,
    faults: str = "",
    openapi: bool = False,
) -> int:
    """Run a stand-in for nexus, offline, until it is interrupted.

    Parameters
    ----------
    port
        Where to listen; 0 lets the system choose.
    host
        The address to listen on.
    config
        A TOML or JSON file with the stub's settings.
    data
        A folder that keeps keys and files between runs.
    faults
        Faults on purpose, such as seed=7 or seed=7,error=0.1,latency=0.05.
    openapi
        Print the OpenAPI document and stop.
    """
    if openapi:
        text = msgspec.json.format(msgspec.json.encode(document(version("executa-nexus-stub"))))
        sys.stdout.write(text.decode() + "\n")
        return 0
    settings = settings_of(config, data, faults)
    asyncio.run(_serve(settings, host, port))
    return 0


def settings_of(config: Path | None, data: Path | None, faults: str) -> StubConfig:
    """The settings in the file, with what the other options say. Raises `UsageError`."""
    settings = read_config(_values(config) if config is not None else None)
    if data is not None:
        settings.data_dir = str(data)
    if faults:
        settings.faults = read_faults(faults)
    return settings


def _values(path: Path) -> dict[str, Any]:
    try:
        raw = path.read_bytes()
        if path.suffix == ".json":
            return msgspec.json.decode(raw, type=dict[str, Any])
        return tomllib.loads(raw.decode())
    except (OSError, ValueError, msgspec.DecodeError) as fault:
        msg = f"{path}: {fault}"
        raise UsageError(msg) from None


async def _serve(settings: StubConfig, host: str, port: int) -> None:
    stub = NexusStub(settings)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    try:
        async with NexusServer(stub, host, port) as server:
            sys.stdout.write(f"nexus stub listens on {server.url}\n")
            if stub.faults.rules:
                sys.stdout.write(f"faults by seed={stub.faults.seed}\n")
            sys.stdout.flush()
            await stopped.wait()
    finally:
        await stub.aclose()


def main(arguments: list[str] | None = None) -> int:
    """``python -m executa_nexus_stub``: the same without the `executa` command."""
    parser = argparse.ArgumentParser(prog="executa_nexus_stub", description=_summary())
    parser.add_argument("--port", type=int, default=8460)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--config", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--faults", default="")
    parser.add_argument("--openapi", action="store_true")
    try:
        return nexus(**vars(parser.parse_args(arguments)))
    except UsageError as fault:
        parser.error(str(fault))


def _summary() -> str:
    return (nexus.__doc__ or "").partition("\n")[0]
