"""A plugin's process on real pipes, driven line by line; every wait is bounded."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

WAIT = 20.0
"""Seconds after which a wait has failed: far more than any step takes."""

Object = dict[str, Any]

OFFER: Object = {
    "protocolVersion": "2.0",
    "clientInfo": {"name": "test", "version": "1"},
    "capabilities": {
        "sampling": {},
        "fileTransport": True,
        "agent": {"submodes": ["auto"]},
        "storage": {"kv": True, "files": True},
        "cancellation": {},
        "progress": {},
    },
}


class Child:
    """One plugin process. `seen` are all messages that came from it, in order."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.seen: list[Object] = []
        self._stderr = b""
        self._told = asyncio.Event()
        self._draining = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        assert self.process.stderr
        while data := await self.process.stderr.read(65536):
            self._stderr += data
            self._told.set()

    @property
    def stderr(self) -> str:
        return self._stderr.decode(errors="replace")

    def write(self, *messages: Object | bytes) -> None:
        """Put messages on the wire; bytes go as they are."""
        assert self.process.stdin
        for message in messages:
            data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            self.process.stdin.write(data)

    async def read(self) -> Object:
        """The next message."""
        assert self.process.stdout
        line = await asyncio.wait_for(self.process.stdout.readline(), WAIT)
        assert line, f"the plugin has closed its output; stderr: {self.stderr}"
        message: Object = json.loads(line)
        self.seen.append(message)
        return message

    async def read_all(self) -> list[Object]:
        """Every message until the plugin closes its output."""
        assert self.process.stdout
        data = await asyncio.wait_for(self.process.stdout.read(), WAIT)
        return [json.loads(line) for line in data.splitlines()]

    async def answers(self, *ids: Any) -> list[Object]:
        """The answers to these ids, in this order, whatever comes between."""
        found: dict[str, Object] = {}
        while any(repr(identity) not in found for identity in ids):
            message = await self.read()
            if "method" not in message:
                found[repr(message["id"])] = message
        return [found[repr(identity)] for identity in ids]

    async def request(self, method: str, params: Any = None, identity: Any = 1) -> Object:
        """One request and its answer."""
        message: Object = {"jsonrpc": "2.0", "id": identity, "method": method}
        if params is not None:
            message["params"] = params
        self.write(message)
        return (await self.answers(identity))[0]

    async def initialize(self, **capabilities: Any) -> Object:
        """Shake hands, offering everything unless `capabilities` says otherwise."""
        offer = {**OFFER, "capabilities": capabilities} if capabilities else OFFER
        return (await self.request("initialize", offer, 0))["result"]

    async def invoke(self, tool: str, identity: Any = 1, **arguments: Any) -> Object:
        """One invoke and its answer."""
        return await self.request("invoke", invocation(tool, identity, **arguments), identity)

    async def until_told(self, text: str) -> None:
        """Wait until `text` stands on the plugin's stderr."""
        async with asyncio.timeout(WAIT):
            while text not in self.stderr:
                self._told.clear()
                await self._told.wait()

    async def end(self) -> int:
        """Close its input and wait for the end; gives the exit status."""
        if self.process.stdin:
            self.process.stdin.close()
        return await self.gone()

    async def gone(self) -> int:
        """Wait for the end without asking for it; gives the exit status."""
        status = await asyncio.wait_for(self.process.wait(), WAIT)
        await self._draining
        return status

    async def kill(self) -> None:
        """End it however it stands."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()
        await self._draining
        if self.process.stdin:
            self.process.stdin.close()
            with contextlib.suppress(ConnectionError):
                await self.process.stdin.wait_closed()


def invocation(tool: str, identity: Any = 1, **arguments: Any) -> Object:
    """The params of an invoke, with an invoke id made of the request's id."""
    context = {"invoke_id": f"{hash(identity) & 0xFFFF:032x}"}
    return {"tool": tool, "arguments": arguments, "context": context}


def invoke_message(identity: Any, tool: str, **arguments: Any) -> Object:
    """An invoke as it stands on the wire."""
    params = invocation(tool, identity, **arguments)
    return {"jsonrpc": "2.0", "id": identity, "method": "invoke", "params": params}


@contextlib.asynccontextmanager
async def child(
    source: str | Path, *, folder: Path | None = None, command: Sequence[str] = (), **options: Any
) -> AsyncGenerator[Child]:
    """Run a plugin from source text (written to `folder`) or from its file."""
    if isinstance(source, str):
        assert folder, "source text needs a folder to be written to"
        path = folder / "plugin.py"
        path.write_text(source, encoding="utf-8")
    else:
        path = source
    env = {**os.environ, **options.pop("env", {})}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(command or (sys.executable,)),
        str(path),
        env=env,
        limit=1 << 26,
        stdin=options.get("stdin", pipe),
        stdout=options.get("stdout", pipe),
        stderr=pipe,
    )
    running = Child(process)
    try:
        yield running
    finally:
        await running.kill()
