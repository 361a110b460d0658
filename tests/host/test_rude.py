"""Plugins with the worst manners: what they cost is bounded, and only they pay for it."""

import asyncio
import gc
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from executa_host import InvokeTimeout, Patience, PluginSpec, StartFailed
from executa_nexus_stub import NexusStub, StubConfig
from executa_nexus_stub.faults import FaultConfig, FaultRule
from executa_protocol import transcript
from executa_protocol.errors import ConnectionLost, PeerViolation, WriteQueueFull
from executa_protocol.lifecycle import State
from executa_protocol.limits import MIB, WRITE_QUEUE
from tests.host.conftest import MakeRig, Rig

SAMPLE: dict[str, Any] = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "x"}}],
    "maxTokens": 5,
}
GET = {"key": "k", "scope": "tool"}
QUICK = Patience(initialize=0.5, describe=0.3, stop=0.2, health=0.3)


def _resident() -> int:
    """Bytes of resident memory of this process."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


# --- The handshake ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("exit 3", r"ended during initialize \(exited with code 3\)"),
        ("exit 0", r"ended during initialize \(exited with code 0\)"),
        ("kill -9 $$", r"ended during initialize \(was killed by SIGKILL\)"),
        ("read -r _; exit 4", r"ended during initialize \(exited with code 4\)"),
        ("exec 1>&-; read -r _; sleep 60", "ended during initialize"),
    ],
    ids=["at-once", "clean", "killed", "reads-first", "closes-stdout"],
)
async def test_a_plugin_that_ends_before_it_answers_is_a_fault_and_told_as_such(
    make_rig: MakeRig, script: str, told: str
) -> None:
    rig = make_rig(patience=QUICK)
    rig.host.add(PluginSpec(name="raw", command=("sh", "-c", script)))
    with pytest.raises(StartFailed, match=told) as failed:
        await rig.host.start("raw")
    assert failed.value.written is False
    assert rig.seen(transcript.Exited)[0].fault
    assert rig.host.state("raw") is State.RESTARTING


@pytest.mark.parametrize("phase", ["initialize", "describe"])
async def test_a_plugin_that_ends_during_the_handshake_quotes_its_last_words(
    rig: Rig, phase: str
) -> None:
    rig.add("--die-in", phase)
    with pytest.raises(StartFailed, match=rf"ended during {phase}.*code 7.*cannot do {phase}"):
        await rig.host.start("raw")


async def test_a_plugin_that_never_answers_describe_is_a_fault(make_rig: MakeRig) -> None:
    rig = make_rig(patience=QUICK)
    rig.host.add(PluginSpec(name="raw", command=("sh", "-c", "while read -r _; do :; done")))
    with pytest.raises(StartFailed, match=r"no answer to describe within 0\.3 s"):
        await rig.host.start("raw")
    assert rig.host.state("raw") is State.RESTARTING
    assert rig.host.status("raw").faults == 1


async def test_a_plugin_whose_manifest_cannot_be_used_is_not_started_again_by_itself(
    rig: Rig,
) -> None:
    rig.add("--manifest", json.dumps({"tools": []}))
    with pytest.raises(StartFailed, match="tools"):
        await rig.host.start("raw")
    assert rig.host.state("raw") is State.STOPPED
    assert rig.host.status("raw").faults == 0


async def test_an_answer_to_initialize_that_cannot_be_read_means_protocol_1_1(rig: Rig) -> None:
    script = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        print('{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2.0","x":NaN}}', flush=True)
    elif message["method"] == "describe":
        tool = {"name": "t", "description": "d", "parameters": []}
        result = {"name": "n", "version": "1", "description": "d", "tools": [tool]}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
    rig.host.add(PluginSpec(name="raw", command=(sys.executable, "-c", script)))
    await rig.host.start("raw")
    assert rig.host.state("raw") is State.V1


async def test_a_reverse_call_before_the_first_invoke_is_answered(rig: Rig) -> None:
    script = """
import json, sys
def send(**members): print(json.dumps({"jsonrpc": "2.0", **members}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        print(json.dumps(message["error"]["data"]), file=sys.stderr, flush=True)
    elif message["method"] == "initialize":
        send(id=0, result={"protocolVersion": "2.0", "capabilities": {}})
        send(id="early", method="storage/get", params={"key": "k", "scope": "tool"})
    elif message["method"] == "describe":
        tool = {"name": "t", "description": "d", "parameters": []}
        manifest = {"name": "n", "version": "1", "description": "d", "tools": [tool]}
        send(id=message["id"], result=manifest)
"""
    rig.host.add(PluginSpec(name="raw", command=(sys.executable, "-c", script)))
    await rig.host.start("raw")
    await rig.until(lambda event: isinstance(event, transcript.Stderr))
    assert rig.seen(transcript.ReverseEnded)[0].step == "manifest"


# --- Answers ---------------------------------------------------------------------------------


async def test_an_answer_with_an_id_that_nobody_asked_with_is_counted(rig: Rig) -> None:
    rig.add()
    line = '{"jsonrpc":"2.0","id":987654,"result":{}}\n{"jsonrpc":"2.0","id":$ID,"result":{}}'
    await rig.host.invoke("raw", "raw", {"line": line})
    assert any("unknown id 987654" in event.message for event in rig.seen(transcript.Noise))


async def test_an_answer_after_the_time_out_is_dropped(rig: Rig) -> None:
    rig.add("--take", "cancellation")
    with pytest.raises(InvokeTimeout):
        await rig.host.invoke("raw", "cancelled", {"mode": "complete"}, timeout=0.3)
    await rig.until(
        lambda event: isinstance(event, transcript.Noise) and "late or duplicate" in event.message
    )
    assert (await rig.host.invoke("raw", "echo", {"value": {}})).success


async def test_a_line_of_a_hundred_megabytes_fails_its_call_alone_and_is_not_kept(
    rig: Rig,
) -> None:
    rig.add_rude()
    await rig.host.start("raw")
    before = _resident()
    with pytest.raises(PeerViolation, match="cap"):
        await rig.host.invoke("raw", "long_line", {"bytes": 100 * MIB})
    assert _resident() - before < 40 * MIB  # the cap of a line is 16 MiB
    assert (await rig.host.invoke("raw", "echo", {"value": {}})).success


# --- A plugin that does not read -------------------------------------------------------------


async def test_a_plugin_that_never_reads_costs_a_bounded_queue_and_the_calls_fail(
    make_rig: MakeRig,
) -> None:
    rig = make_rig(patience=Patience(health=30, stop=0.2))
    rig.add("--manifest", json.dumps({"host_capabilities": []}), "--deaf")
    await rig.host.start("raw")
    before = _resident()
    value = {"value": {"text": "x" * MIB}}
    calls = [asyncio.ensure_future(rig.host.invoke("raw", "echo", value)) for _ in range(100)]
    await rig.until(lambda _: len(rig.seen(transcript.InvokeStarted)) == 100)
    failed = [call for call in calls if call.done()]
    assert len(failed) >= 100 - WRITE_QUEUE // MIB
    assert {type(call.exception()) for call in failed} == {WriteQueueFull}
    waiting = [call for call in calls if not call.done()]
    del failed, calls
    assert _resident() - before < 3 * WRITE_QUEUE
    await rig.host.stop("raw")
    for call in waiting:
        with pytest.raises(ConnectionLost):
            await call


async def test_what_times_out_in_the_queue_is_taken_out_of_it(make_rig: MakeRig) -> None:
    """Else calls would be carried out that their callers have long been told have failed."""
    rig = make_rig(patience=Patience(health=30, stop=0.2))
    rig.add("--manifest", json.dumps({"host_capabilities": []}), "--deaf")
    await rig.host.start("raw")
    blocking = rig.host.begin("raw", "echo", {"value": {"text": "x" * 300_000}})
    await rig.until(lambda event: isinstance(event, transcript.InvokeStarted))
    for _ in range(3):
        late = [
            rig.host.begin("raw", "echo", {"value": {"text": "x" * MIB}}, timeout=0.1)
            for _ in range(20)
        ]
        for handle in late:
            with pytest.raises(InvokeTimeout) as told:
                await handle.result()
            assert told.value.written is False
    await rig.host.stop("raw")
    with pytest.raises(ConnectionLost):
        await blocking.result()


async def test_a_plugin_that_does_not_take_its_answers_is_replaced(make_rig: MakeRig) -> None:
    """It calls and calls, and never reads what it is answered."""
    script = """
import json, sys
def send(**members): sys.stdout.write(json.dumps({"jsonrpc": "2.0", **members}) + "\\n")
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        send(id=0, result={"protocolVersion": "2.0", "capabilities": {}})
    elif message["method"] == "describe":
        tool = {"name": "t", "description": "d", "parameters": []}
        send(id=message["id"], result={"name": "n", "version": "1", "tools": [tool]})
    else:
        for number in range(250_000):
            send(id="x" * 100 + str(number), method="no/such")
    sys.stdout.flush()
"""
    rig = make_rig(patience=QUICK)
    rig.host.add(PluginSpec(name="raw", command=(sys.executable, "-c", script)))
    await rig.host.start("raw")
    before = _resident()
    with pytest.raises(ConnectionLost, match="does not read"):
        await rig.host.invoke("raw", "t")
    assert _resident() - before < 3 * WRITE_QUEUE
    await rig.until(lambda event: isinstance(event, transcript.Exited))
    assert rig.seen(transcript.Exited)[0].fault


# --- Nexus -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "sampling", "storage"),
    [
        (FaultRule(kind="error", status=0), -32003, -32029),
        (FaultRule(kind="error", status=500), -32003, -32029),
        (FaultRule(kind="error", status=401), -32018, -32018),
        (FaultRule(kind="rate_limit"), -32002, -32026),
        (FaultRule(kind="error", status=412), -32003, -32023),
    ],
    ids=["down", "500", "401", "429", "412"],
)
async def test_a_failing_nexus_is_each_chapters_own_error(
    make_rig: MakeRig, rule: FaultRule, sampling: int, storage: int
) -> None:
    def on(endpoint: str) -> FaultRule:
        return FaultRule(kind=rule.kind, status=rule.status, endpoint=endpoint)

    rules = (on("sample"), on("storage"))
    rig = make_rig(NexusStub(StubConfig(faults=FaultConfig(rules=rules))))
    rig.add()
    answers = await rig.calls(
        ("sampling/createMessage", SAMPLE),
        ("agent/complete", {"prompt": "x", "max_tokens": 5}),
        ("storage/get", GET),
    )
    codes = [answer["error"]["code"] for answer in answers]
    agent = -32018 if rule.status == 401 else -32046
    assert codes == [sampling, agent, storage]


async def test_a_slow_nexus_is_a_time_out_of_the_chapter(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("executa_host.reverse.sampling.SAMPLING_TIMEOUT", 0.1)
    rule = FaultRule(kind="latency", endpoint="sample", seconds=60)
    rig = make_rig(NexusStub(StubConfig(faults=FaultConfig(rules=(rule,)))))
    rig.add()
    (answer,) = await rig.calls(("sampling/createMessage", SAMPLE))
    assert answer["error"]["code"] == -32005
    (answer,) = await rig.calls(("agent/complete", {"prompt": "x", "max_tokens": 5}))
    assert answer["error"]["code"] == -32046
    await asyncio.sleep(0)
