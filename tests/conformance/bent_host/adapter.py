"""The faulty host's adapter: ``python adapter.py SCRATCH``, between the kit and the real one."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.conformance.bent_host.faults import find
from tests.conformance.bent_host.relay import Relay, Upstream
from tests.conformance.bent_host.relay_faults import UPSTREAM
from tests.conformance.bent_host.talk_faults import TALK, Talk
from tests.conformance.bent_host.wire_faults import FAULTS

LINE = 1 << 27
WIRE = Path(__file__).with_name("wire.py")


class Bent:
    """Commands in, commands out."""

    def __init__(self, host: asyncio.subprocess.Process) -> None:
        self._host = host
        self._commands: dict[int, dict[str, Any]] = {}
        self._talks: dict[str, Talk] = {}
        self._relay: Relay | None = None

    async def run(self) -> None:
        """Until the kit has said everything and the host has gone."""
        loop = asyncio.get_running_loop()
        kit = asyncio.StreamReader(limit=LINE)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(kit), sys.stdin)
        answering = asyncio.create_task(self._answer())
        try:
            async for line in kit:
                await self._ask(json.loads(line))
        finally:
            if self._host.stdin is not None:
                self._host.stdin.close()
            await answering
            await self._host.wait()
            if self._relay is not None:
                await self._relay.__aexit__()

    async def _ask(self, command: dict[str, Any]) -> None:
        if command["op"] == "hello":
            nexus = command["nexus"]
            self._relay = Relay(nexus["url"], nexus["key"], _upstream)
            await self._relay.__aenter__()
            nexus["url"] = self._relay.url
        name = str(command.get("plugin", ""))
        self._commands[command["id"]] = command
        self._talk(name).ask(command)
        fault = find(name)
        if command["op"] == "start" and fault in FAULTS:
            wire = [sys.executable, "-I", "-S", str(WIRE), fault]
            command["command"] = [*wire, *command["command"]]
            command["env"] = {**command.get("env", {}), "BENT_SCRATCH": sys.argv[1]}
        if fault == "asks-without-need" and command["op"] == "start" and self._relay is not None:
            opening: dict[str, Any] = {
                "executa_tool_id": name,
                "invoke_id": "0" * 32,
                "capabilities": [],
            }
            await self._relay.ask("executa/invokes", self._relay.key, opening)
        if self._host.stdin is not None:
            self._host.stdin.write(json.dumps(command).encode() + b"\n")

    def _talk(self, plugin: str) -> Talk:
        if plugin not in self._talks:
            self._talks[plugin] = TALK.get(find(plugin), Talk)()
        return self._talks[plugin]

    def _talk_of(self, command: dict[str, Any]) -> Talk:
        if command.get("op") == "cancel":
            command = self._commands.get(command["invoke"], {})
        return self._talk(str(command.get("plugin", "")))

    async def _answer(self) -> None:
        if self._host.stdout is None:
            return
        async for line in self._host.stdout:
            answer = json.loads(line)
            command = self._commands.get(answer["id"], {})
            for told in self._talk_of(command).tell(command, answer):
                sys.stdout.buffer.write(json.dumps(told).encode() + b"\n")
                sys.stdout.buffer.flush()


def _upstream(tool_id: str) -> Upstream:
    return UPSTREAM.get(find(tool_id), Upstream)()


async def main() -> None:
    """The program."""
    host = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "executa_host.adapter",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LINE,
    )
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    await Bent(host).run()


if __name__ == "__main__":
    asyncio.run(main())
    os._exit(0)
