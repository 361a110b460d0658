"""`executa serve`: a host with its engine and its API, until it is told to stop.

Owns how the parts are put together and in which order they end. SIGTERM and Ctrl-C drain: no
new work is taken, what runs may end, followers are told; a second one does not wait.
"""

import asyncio
import math
import os
import signal
from collections.abc import Coroutine, Generator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter
from msgspec import Struct

from executa_host.actions.engine import Engine
from executa_host.actions.sqlite.store import SqliteStore
from executa_host.actions.store import StoreError
from executa_host.api.host_plugins import HostPlugins
from executa_host.api.limits import DRAIN_SECONDS
from executa_host.api.server import ApiServer, is_loopback
from executa_host.cli import exits
from executa_host.cli.output import tell, write_line
from executa_host.cli.recording import Record, recording
from executa_host.cli.remote import print_json
from executa_host.cli.running import run
from executa_host.cli.stores import DEFAULT_CONFIG, STORE_HELP, named_store, user_store
from executa_host.config import HostConfig, read_config
from executa_host.config_serve import DEFAULT_PORT
from executa_host.keys import KeyFile, keys_beside
from executa_host.observe.logs import EventLog, log_to, stop_logging
from executa_host.observe.spans import spans_if_wanted
from executa_host.spec import PluginSpec
from executa_host.transcripts.recorder import Recorder

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class _Wanted(Struct, frozen=True):
    """The configuration with what the command line says otherwise."""

    config: HostConfig
    store: Path
    host: str
    port: int
    grace: float
    json: bool


def serve(
    *,
    config: Annotated[
        Path, Parameter(help="The host's configuration; what follows overrides it.")
    ] = Path(DEFAULT_CONFIG),
    store: Annotated[Path | None, Parameter(help=STORE_HELP)] = None,
    host: Annotated[
        str | None, Parameter(help="Where to listen; on 127.0.0.1 unless something says so.")
    ] = None,
    port: Annotated[
        int | None, Parameter(help=f"0 lets the system choose. Default: {DEFAULT_PORT}.")
    ] = None,
    grace: Annotated[
        float | None,
        Parameter(help="Seconds that running work has to end when the host is stopped."),
    ] = None,
    log: Annotated[Literal["keys", "json"], Parameter(help="The form of the log.")] = "keys",
    record: Record = None,
    json: Annotated[bool, Parameter(negative="", help="Say where it listens as JSON.")] = False,
) -> int:
    """Run a host with its API for durable actions, until it is stopped.

    It prints its address once it takes requests, and logs to stderr. SIGTERM lets running
    work end; what does not is taken up again by the next start. A transcript that --record names
    goes on with each start.
    """
    if not config.exists():
        msg = f"there is no configuration {config}; give one with --config"
        raise exits.Stop(msg, exits.USAGE)
    if port is not None and not 0 <= port < 2**16:
        raise exits.Stop(f"--port: {port} is not from 0 to 65535", exits.USAGE)
    if grace is not None and not 0 <= grace < math.inf:
        raise exits.Stop(f"--grace: {grace:g} is no number of seconds", exits.USAGE)
    found = read_config(config)
    told = found.serve
    wanted = _Wanted(
        config=found,
        store=store or named_store() or found.actions.store or user_store(),
        host=told.host if host is None else host,
        port=told.port if port is None else port,
        grace=_first(grace, told.grace, DRAIN_SECONDS),
        json=json,
    )
    handler = log_to(style=log)
    try:
        with recording(record, append=True) as recorder:
            return run(_serve(wanted, recorder))
    except StoreError as fault:
        raise exits.Stop(str(fault), exits.USAGE) from None
    finally:
        stop_logging(handler)


async def _serve(wanted: _Wanted, recorder: Recorder | None) -> int:
    with _signals() as asked:
        wanted.store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        async with AsyncExitStack() as stack:
            actions, tls = wanted.config.actions, wanted.config.serve.tls
            context = None if tls is None else tls.context()
            opened = await SqliteStore.open(wanted.store, synchronous=actions.synchronous)
            store = await stack.enter_async_context(opened)
            built = wanted.config.build(trace=EventLog(), recorder=recorder)
            host = await stack.enter_async_context(built)
            if (spans := spans_if_wanted()) is not None:
                host.follow(spans)
            engine = await stack.enter_async_context(Engine.on_host(host, store, actions.settings))
            keys = KeyFile(keys_beside(wanted.store))
            server = ApiServer(
                engine,
                keys,
                HostPlugins(host, lambda: _specs(wanted.config)),
                host=wanted.host,
                port=wanted.port,
                remote=True,
                tls=context,
            )
            await stack.enter_async_context(server)
            _say(wanted, server.url, keys)
            await asked[0].wait()
            if engine.running:
                _tell(
                    f"waiting up to {wanted.grace:g} s for {engine.running} running actions; "
                    "asked again, the host leaves them to its next start"
                )
            await _until(asked[1], server.drain(wanted.grace))
    return exits.OK


@contextmanager
def _signals() -> Generator[tuple[asyncio.Event, asyncio.Event]]:
    """Two events: asked to stop once, and asked again."""
    once, again = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def asked() -> None:
        (again if once.is_set() else once).set()

    for number in _SIGNALS:
        loop.add_signal_handler(number, asked)
    try:
        yield once, again
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


async def _until(event: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Do `work`, and give it up when the event comes first."""
    doing = asyncio.ensure_future(work)
    asked = asyncio.ensure_future(event.wait())
    await asyncio.wait((doing, asked), return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if not doing.done():
        doing.cancel()
        await asyncio.wait((doing,))
    elif (fault := doing.exception()) is not None:
        raise fault


def _first(*values: float | None) -> float:
    """The first that is given."""
    return next((value for value in values if value is not None), 0.0)


def _specs(config: HostConfig) -> Sequence[PluginSpec]:
    """The plugins as the file has them now."""
    return read_config(config.file).plugins


def _say(wanted: _Wanted, url: str, keys: KeyFile) -> None:
    if wanted.json:
        print_json({"url": url, "store": str(wanted.store), "pid": os.getpid()})
    else:
        write_line(f"listening at {url}".encode())
    if not keys.list():
        _tell(f"there is no API key yet: executa keys create NAME --store {wanted.store}")
    if not is_loopback(wanted.host) and wanted.config.serve.tls is None:
        _tell(
            "other machines reach this address, and keys cross the network readable: "
            "set serve.tls_certificate and serve.tls_key, or put TLS in front of it"
        )


def _tell(text: str) -> None:
    tell(text, style="yellow")
