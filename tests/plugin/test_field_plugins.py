"""Plugins with a stdin loop of their own, as the field writes them, work with these clients.

Three styles: a pool of threads that hands coroutines to one loop, `asyncio.run` for each
call, and one loop beside a reading thread. Each is a real process under the real host's
rules, with many calls at once.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from executa_protocol.errors import RpcError
from executa_sdk.testing import PluginProcess, Services

COMMON = """
import asyncio, json, sys, threading
from concurrent.futures import ThreadPoolExecutor
from executa_sdk import (
    PROTOCOL_VERSION_V2, AgentError, AgentSessionClient, FilesClient, InvokeContext,
    SamplingClient, SamplingError, StorageClient, StorageError, bind_invoke, emit_progress,
    make_response_router,
)
from executa_sdk.storage import STORAGE_ERR_PRECONDITION_FAILED

MANIFEST = {
    "name": "field", "version": "0.1.0", "description": "As the field writes them.",
    "host_capabilities": ["llm.sample", "llm.agent.auto", "aps.kv", "aps.files"],
    "tools": [
        {"name": name, "description": name, "parameters": [
            {"name": "text", "type": "string", "description": "A text.", "required": True},
        ]}
        for name in ("ask_agent", "ask_complete", "summarize", "append", "unknown_session")
    ],
}
lock = threading.Lock()

def write(msg):
    line = json.dumps(msg, ensure_ascii=False)
    with lock:
        sys.stdout.write(line + "\\n")
        sys.stdout.flush()

sampling = SamplingClient(write_frame=write)
agent = AgentSessionClient(write_frame=write)
storage = StorageClient(write_frame=write)
files = FilesClient(write_frame=write)
route = make_response_router(sampling, agent, storage, files)

async def ask_agent(text):
    session = await agent.create(kind="agent", agent_submode="auto", label="field", ttl_seconds=60)
    try:
        parts, final = [], ""
        async for frame in session.run(text, recursion_limit=8):
            if frame.get("event") == "delta":
                parts.append(frame["text"])
            elif frame.get("event") == "final":
                final = frame["text"]
        return {"answer": final or "".join(parts), "session": session.uuid}
    finally:
        await session.delete()

async def ask_complete(text):
    result = await agent.complete(
        messages=[{"role": "user", "content": {"type": "text", "text": text}}], max_tokens=50)
    return {"answer": result["content"]["text"], "model": result["model"]}

async def summarize(text):
    emit_progress("tool_update", {"step": 1})
    result = await sampling.create_message(
        messages=[{"role": "user", "content": {"type": "text", "text": text}}],
        max_tokens=50, metadata={"tool": "summarize"}, timeout=30.0)
    return {"summary": result["content"]["text"]}

async def append(text):
    for attempt in range(50):
        now = await storage.get("log", scope="user")
        log = (now.get("value") or []) + [text]
        try:
            if_match = now["etag"] if now["exists"] else None
            await storage.set("log", log, scope="user", if_match=if_match)
            return {"count": len(log)}
        except StorageError as fault:
            if fault.code != STORAGE_ERR_PRECONDITION_FAILED:
                raise
    raise RuntimeError("too many writers")

async def unknown_session(text):
    session = await agent.create()
    await session.delete()
    async for frame in session.run(text):
        pass

TOOLS = dict(ask_agent=ask_agent, ask_complete=ask_complete, summarize=summarize,
             append=append, unknown_session=unknown_session)

async def call(params):
    with bind_invoke(params):
        return await TOOLS[params["tool"]](**params["arguments"])

def initialize(params):
    if params.get("protocolVersion") != PROTOCOL_VERSION_V2:
        sampling.disable("no v2")
    return {"protocolVersion": "2.0", "serverInfo": {"name": "field", "version": "0.1.0"},
            "client_capabilities": {"sampling": {}, "agent": {}}, "capabilities": {}}

def finish(request, get):
    try:
        answer = {"result": {"success": True, "data": get()}}
    except (SamplingError, StorageError) as fault:
        answer = {"error": {"code": fault.code, "message": fault.message, "data": fault.data}}
    except Exception as fault:
        answer = {"error": {"code": -32603, "message": str(fault)}}
    write({"jsonrpc": "2.0", "id": request["id"], **answer})

def simple(msg):
    method = msg["method"]
    if method == "initialize":
        return initialize(msg["params"])
    return MANIFEST if method == "describe" else {"status": "healthy"}
"""

THREADS_AND_ONE_LOOP = (
    COMMON
    + """
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()

def handle(line):
    msg = json.loads(line)
    if "method" not in msg:
        route(msg)
    elif msg["method"] == "invoke":
        finish(msg, asyncio.run_coroutine_threadsafe(call(msg["params"]), loop).result)
    else:
        write({"jsonrpc": "2.0", "id": msg["id"], "result": simple(msg)})

pool = ThreadPoolExecutor(max_workers=8)
for line in sys.stdin:
    if line.strip():
        # An answer must not wait behind calls that wait for it.
        (handle if '"method"' not in line[:200] else lambda raw: pool.submit(handle, raw))(line)
"""
)

A_LOOP_FOR_EACH_CALL = (
    COMMON
    + """
def invoke(msg):
    finish(msg, lambda: asyncio.run(call(msg["params"])))

for line in sys.stdin:
    msg = json.loads(line)
    if "method" not in msg:
        route(msg)
    elif msg["method"] == "invoke":
        threading.Thread(target=invoke, args=(msg,)).start()
    else:
        write({"jsonrpc": "2.0", "id": msg["id"], "result": simple(msg)})
"""
)

ONE_LOOP_BESIDE_A_READER = (
    COMMON
    + """
async def invoke(msg):
    try:
        data = await call(msg["params"])
    except Exception as fault:
        finish(msg, lambda: (_ for _ in ()).throw(fault))
    else:
        finish(msg, lambda: data)

def read(loop, ended):
    for line in sys.stdin:
        msg = json.loads(line)
        if "method" not in msg:
            route(msg)
        elif msg["method"] == "invoke":
            asyncio.run_coroutine_threadsafe(invoke(msg), loop)
        else:
            write({"jsonrpc": "2.0", "id": msg["id"], "result": simple(msg)})
    loop.call_soon_threadsafe(ended.set)

async def main():
    ended = asyncio.Event()
    threading.Thread(target=read, args=(asyncio.get_running_loop(), ended), daemon=True).start()
    await ended.wait()

asyncio.run(main())
"""
)

STYLES = {
    "threads and one loop": THREADS_AND_ONE_LOOP,
    "a loop for each call": A_LOOP_FOR_EACH_CALL,
    "one loop beside a reader": ONE_LOOP_BESIDE_A_READER,
}


@pytest.fixture(params=list(STYLES.values()), ids=list(STYLES))
def plugin(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "plugin.py"
    path.write_text(request.param, encoding="utf-8")
    return path


async def test_every_service_works_and_answers_stay_apart(plugin: Path) -> None:
    services = Services(sample=lambda params: params["messages"][0]["content"]["text"].upper())
    with PluginProcess(plugin, services=services) as process:
        process.initialize()
        process.describe()

        def call(tool: str, text: str) -> Any:
            return process.invoke(tool, text=text)

        assert call("ask_agent", "plan")["answer"] == "A scripted answer."
        assert call("ask_complete", "hi") == {"answer": "HI", "model": "scripted"}
        # Without an etag two plugins may create a key at once, as everywhere in the field.
        services.storage.put("user", "log", Raw(b"[]"), 2)
        answers = await asyncio.gather(
            *(asyncio.to_thread(call, "summarize", f"text {n}") for n in range(12)),
            *(asyncio.to_thread(call, "append", f"entry {n}") for n in range(4)),
        )
        assert answers[:12] == [{"summary": f"TEXT {n}"} for n in range(12)]
        assert sorted(answer["count"] for answer in answers[12:]) == [1, 2, 3, 4]
        assert sorted(services.storage.values("user")["log"]) == [f"entry {n}" for n in range(4)]
        assert services.sessions == set()
        assert process.progress == [{"step": 1}] * 12

        with pytest.raises(RpcError) as caught:
            call("unknown_session", "x")
        assert caught.value.code == -32044
        assert caught.value.symbol == "AGENT_UNKNOWN_SESSION"
        assert process.stray == []
        assert process.close() == 0

    stamped = [call.params["context"]["invoke_id"] for call in services.calls]
    assert all(len(invoke_id) == 32 for invoke_id in stamped)


async def test_a_service_that_is_switched_off_is_refused_without_asking(plugin: Path) -> None:
    source = plugin.read_text(encoding="utf-8")
    plugin.write_text(source.replace("!= PROTOCOL_VERSION_V2", '== "2.0"'), encoding="utf-8")
    with PluginProcess(plugin) as process:
        process.initialize()
        process.describe()
        with pytest.raises(RpcError, match="no v2") as caught:
            process.invoke("summarize", text="x")

    assert caught.value.code == -32008
    assert process.services.calls == []
