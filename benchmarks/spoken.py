"""Plugins and servers spoken to directly over pipes, the same blocking way for all.

For start-up and memory, where the client must be no part of the figure: a program is
started, its handshake is done as its protocol wants it, and one tool is called.
"""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from benchmarks.model import LEFT_OUT, Absent, WrongAnswer
from benchmarks.scale import Scale

PEERS: Final = Path(__file__).parent / "peers"
TEXT: Final = "What went in comes out."
LIMIT: Final = 60.0
"""Seconds after which a program that does not end on the end of its input is killed."""

Message = dict[str, Any]


class Program(Struct, frozen=True):
    """A program of `peers` and what is said to it.

    `lines` are sent one after the other; each that has an id waits for its answer. The
    answer to the last one must hold `TEXT`.
    """

    name: str
    file: str
    lines: tuple[Message, ...]
    needs: str = ""

    def check(self, scale: Scale) -> None:
        """Raise `Absent` if it cannot be started here, or is not to be."""
        if self.needs and not scale.peers:
            raise Absent(LEFT_OUT)
        if self.needs and find_spec(self.needs) is None:
            msg = f"{self.needs} is not installed; `uv sync --extra bench` brings it"
            raise Absent(msg)


_INVOKE: Final[Message] = {
    "tool": "inline",
    "arguments": {"text": TEXT},
    "context": {"invoke_id": "0" * 32, "deadline_ms": 4_000_000_000_000},
    "invoke_id": "0" * 32,
}
EXECUTA: Final[tuple[Message, ...]] = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2.0",
            "clientInfo": {"name": "benchmarks", "version": "1"},
            "capabilities": {},
        },
    },
    {"jsonrpc": "2.0", "method": "initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "describe"},
    {"jsonrpc": "2.0", "id": 3, "method": "invoke", "params": _INVOKE},
)
MCP: Final[tuple[Message, ...]] = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "clientInfo": {"name": "benchmarks", "version": "1"},
            "capabilities": {},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": TEXT}},
    },
)

PROGRAMS: Final = (
    Program("executa", "inline_plugin.py", EXECUTA),
    Program("bare json loop", "bare_loop.py", EXECUTA),
    Program("mcp", "mcp_server.py", MCP, "mcp"),
    Program("fastmcp", "fastmcp_server.py", MCP, "fastmcp"),
)


@contextmanager
def started(program: Program) -> "Generator[subprocess.Popen[bytes]]":
    """A running program, ended by the end of its input.

    Its byte code is cached by the first start, the warm-up, whatever the environment says:
    nobody's second start compiles.
    """
    environment = {**os.environ}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.Popen(
        (sys.executable, str(PEERS / program.file)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    try:
        yield process
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def speak(program: Program, process: "subprocess.Popen[bytes]") -> None:
    """Say everything, one after the other. Raises `WrongAnswer`."""
    assert process.stdin is not None
    assert process.stdout is not None
    answer = b""
    for line in program.lines:
        os.write(process.stdin.fileno(), json.dumps(line).encode() + b"\n")
        if "id" in line:
            answer = process.stdout.readline()
            if b'"id":%d' % line["id"] not in answer.replace(b" ", b"") or b'"error"' in answer:
                msg = f"{program.name} answered {line['method']} with {answer!r:.120}"
                raise WrongAnswer(msg)
    if TEXT.encode() not in answer:
        msg = f"{program.name} gave another text back: {answer!r:.120}"
        raise WrongAnswer(msg)
