"""A host that is not this project's behind the kit's adapter protocol: anna-app-runtime-local.

    executa check host -- python examples/adapters/anna_pool.py

Its pool of plugins is driven as its own harness drives it: one pool for each plugin, without a
handler for reverse calls. What the pool has no word for (users, environments, a nexus, time-outs
of its phases) is not listed in `serves`, so that the kit does not ask for it. A start for an
adapter of any host; docs/conformance/host-adapter.md tells the protocol.
"""

import asyncio
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from anna_app_runtime_local.executa import ExecutaPool, ExecutaSpec

Object = dict[str, Any]

PACKAGE = "anna-app-runtime-local"
GRACE = 2.0
"""Seconds that the pool adds to every time-out that it is given."""


class Failed(Exception):
    """A command that came to nothing: the ``error`` of its answer."""

    def __init__(self, kind: str, message: str, data: Object | None = None) -> None:
        super().__init__(message)
        self.told: Object = {"kind": kind, "message": message}
        if data is not None:
            self.told["data"] = data


class Adapter:
    """Commands in, answers out, each one line."""

    def __init__(self) -> None:
        self._pools: dict[str, Any] = {}  # its signatures are not typed to their end
        self._works: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until stdin ends."""
        reader = asyncio.StreamReader(limit=1 << 27)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        async for line in reader:
            work = asyncio.create_task(self._answer(json.loads(line)))
            self._works.add(work)
            work.add_done_callback(self._works.discard)
        for pool in self._pools.values():
            await pool.shutdown()

    async def _answer(self, command: Object) -> None:
        try:
            done = await self._do(command)
        except Failed as fault:
            say({"id": command.get("id"), "error": fault.told})
        except Exception as fault:  # noqa: BLE001 - whatever the pool raises, the kit is told
            told = {"kind": "usage", "message": f"{type(fault).__name__}: {fault}"}
            say({"id": command.get("id"), "error": told})
        else:
            say({"id": command["id"], "ok": done})

    async def _do(self, command: Object) -> Object:
        match command["op"]:
            case "hello":
                named = {"adapter": 1, "name": PACKAGE, "version": version(PACKAGE)}
                return {**named, "serves": [], "pace": {}}
            case "start":
                return await self._start(command)
            case "invoke":
                return await self._invoke(command)
            case "stop":
                await self._pool(command).shutdown()
                return {}
            case other:
                raise Failed("usage", f"the pool cannot {other}")

    def _pool(self, command: Object) -> Any:
        try:
            return self._pools[command["plugin"]]
        except KeyError:
            raise Failed("usage", f"there is no plugin {command.get('plugin')!r}") from None

    async def _start(self, command: Object) -> Object:
        name = command["plugin"]
        if name not in self._pools:
            folder = command.get("cwd") or str(Path.cwd())
            spec = ExecutaSpec(tool_id=name, project_dir=folder, command=command["command"])
            self._pools[name] = ExecutaPool({name: spec})
        # The pool starts a plugin with its first call, by this method; there is no other.
        await self._pools[name]._get_or_spawn(name)  # noqa: SLF001 - see above
        return {"protocol": "1.1"}  # it knows no initialize

    async def _invoke(self, command: Object) -> Object:
        timeout = command.get("timeout")
        try:
            answer = await self._pool(command).invoke(
                tool_id=command["plugin"],
                tool_name=command["tool"],
                tool_args=command.get("arguments", {}),
                timeout_ms=None if timeout is None else int((timeout - GRACE) * 1000),
                invoke_context={},
            )
        except TimeoutError as fault:
            raise Failed("timeout", str(fault)) from None
        inner: Any = answer.get("data")
        if not answer.get("success"):
            raise Failed("refused", str(answer.get("error")), inner)
        try:
            success = inner["success"] is True
        except (KeyError, TypeError, IndexError):
            return {"success": True, "data": inner, "error": ""}
        return {
            "success": success,
            "data": inner.get("data"),
            "error": str(inner.get("error") or ""),
        }


def say(members: Object) -> None:
    """Write an answer."""
    sys.stdout.write(json.dumps(members) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(Adapter().run())
