"""A talk with a plugin without a host: for those that give a host no answer.

Owns two questions: does it answer once its stdin has ended, and does it answer if one waits
long enough. Its process is ended in any case.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from typing import Final

from msgspec import Struct

from executa_host.spec import PluginSpec, build_env
from executa_protocol import codec
from executa_protocol.handshake import host_offer
from executa_protocol.limits import MIB

_MOST: Final = 4 * MIB


class Heard(Struct, frozen=True):
    """What came of it: whether there was an answer, after how long, and other lines."""

    answered: bool
    seconds: float
    lines: int


async def ask(spec: PluginSpec, within: float, *, end: bool) -> Heard:
    """Send `initialize` and `describe`, end its stdin or leave it open, and listen.

    `within` is in seconds. Raises `OSError` if it cannot be spawned.
    """
    loop = asyncio.get_running_loop()
    started = loop.time()
    process = await asyncio.create_subprocess_exec(
        *spec.command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=spec.cwd,
        env=build_env(spec),
        start_new_session=True,
        limit=_MOST,
    )
    count = 0
    answered = False
    try:
        with contextlib.suppress(ConnectionError):
            await _write(process, end=end)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                async for line in _lines(process):
                    count += 1
                    if _is_answer(line):
                        answered = True
                        break
    finally:
        seconds = loop.time() - started
        await _stop(process)
    return Heard(answered, seconds, count)


async def _write(process: asyncio.subprocess.Process, *, end: bool) -> None:
    stdin = process.stdin
    if stdin is None:
        return
    offer = codec.encode(host_offer(file_transport=False))
    stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":%b}\n' % offer)
    stdin.write(b'{"jsonrpc":"2.0","id":2,"method":"describe"}\n')
    await stdin.drain()
    if end:
        stdin.close()


async def _lines(process: asyncio.subprocess.Process) -> AsyncGenerator[bytes]:
    if process.stdout is None:
        return
    while True:
        try:
            line = await process.stdout.readline()
        except ValueError:  # a line over the limit is no answer
            continue
        if not line:
            return
        yield line


def _is_answer(line: bytes) -> bool:
    try:
        value: object = json.loads(line)
    except ValueError:
        return False
    return isinstance(value, dict) and "id" in value and ("result" in value or "error" in value)


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
    with contextlib.suppress(ProcessLookupError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
