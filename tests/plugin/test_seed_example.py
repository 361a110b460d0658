"""The seed's "Minimal Python example" runs as it stands (seed agent-sessions), against the host."""

import ast
import asyncio
import json
import sys
from pathlib import Path

import executa_sdk
from executa_host import Host, PluginSpec
from executa_nexus_stub import NexusStub
from executa_protocol import transcript

EXAMPLE = """\
import sys
from executa_sdk import (
    SamplingClient, AgentSessionClient, AgentError,
)

agent = AgentSessionClient()
sampling = SamplingClient()  # share the stdout writer
agent.attach_writer(_write_frame)
sampling.attach_writer(_write_frame)

# multi-turn (L2)
session = await agent.create(kind="agent", agent_submode="auto")
async for frame in session.run("Plan my week."):
    if frame["event"] == "delta":
        sys.stderr.write(frame["text"])
    elif frame["event"] == "tool_call":
        ...
await session.delete()

# single-turn (L1) — sugar over sampling
text = await agent.complete(prompt="Summarize: ...", max_tokens=200)
"""

DISPATCH = """\
if not agent.dispatch_response(msg):
    sampling.dispatch_response(msg)
"""

PLUGIN = """\
import ast, asyncio, json, sys, threading

EXAMPLE = compile(open(sys.argv[1]).read(), "example", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
DISPATCH = compile(open(sys.argv[2]).read(), "dispatch", "exec")
MANIFEST = {
    "name": "seed", "version": "1.0.0", "description": "The seed's example.",
    "host_capabilities": ["llm.sample", "llm.agent.auto"],
    "tools": [{"name": "run", "description": "Run it.", "parameters": []}],
}
lock = threading.Lock()

def _write_frame(msg):
    with lock:
        sys.stdout.write(json.dumps(msg) + "\\n")
        sys.stdout.flush()

names = {"_write_frame": _write_frame}

async def example():
    await eval(EXAMPLE, names)
    return {"text": names["text"], "uuid": names["session"].uuid}

def invoke(msg):
    data = asyncio.run(example())
    answer(msg, {"success": True, "data": data})

def answer(msg, result):
    _write_frame({"jsonrpc": "2.0", "id": msg["id"], "result": result})

for line in sys.stdin:
    msg = json.loads(line)
    if "method" not in msg:
        exec(DISPATCH, {**names, "msg": msg})
    elif msg["method"] == "initialize":
        answer(msg, {
            "protocolVersion": "2.0",
            "server_info": {"name": "seed", "version": "1.0.0"},
            "capabilities": {"sampling": {}},
        })
    elif msg["method"] == "describe":
        answer(msg, MANIFEST)
    elif msg["method"] == "invoke":
        threading.Thread(target=invoke, args=(msg,)).start()
    elif "id" in msg:
        answer(msg, {"status": "ready"})
"""


def test_the_example_compiles_with_top_level_await() -> None:
    compile(EXAMPLE, "example", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    compile(DISPATCH, "dispatch", "exec")


def test_every_name_that_the_example_imports_is_there() -> None:
    imports = [node for node in ast.walk(ast.parse(EXAMPLE)) if isinstance(node, ast.ImportFrom)]

    for name in imports[0].names:
        assert getattr(executa_sdk, name.name)
    assert issubclass(executa_sdk.AgentError, executa_sdk.SamplingError)


async def test_the_example_runs_against_the_host(tmp_path: Path) -> None:
    files = {"plugin.py": PLUGIN, "example.py": EXAMPLE, "dispatch.py": DISPATCH}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = (sys.executable, *(str(tmp_path / name) for name in files))
    events: list[transcript.AnyEvent] = []
    nexus = NexusStub()
    try:
        async with asyncio.timeout(30), Host(nexus, trace=events.append) as host:
            host.add(PluginSpec(name="seed", command=command))
            outcome = await host.invoke("seed", "run")
    finally:
        await nexus.aclose()

    assert outcome.success, outcome.error
    assert outcome.data["text"], "agent.complete gives the text"
    ended = [event for event in events if isinstance(event, transcript.ReverseEnded)]
    assert [(event.method, event.verdict) for event in ended] == [
        ("agent/session.create", "served"),
        ("agent/session.run", "served"),
        ("agent/session.delete", "served"),
        ("agent/complete", "served"),
    ]
    frames = [
        json.loads(bytes(event.frame)) for event in events if isinstance(event, transcript.RunFrame)
    ]
    deltas = "".join(frame["text"] for frame in frames if frame["event"] == "delta")
    told = "".join(event.line for event in events if isinstance(event, transcript.Stderr))
    assert deltas
    assert frames[-1]["event"] == "final"
    assert deltas.split() == told.split(), "the example writes every delta to stderr"
