"""Spawn, initialize, describe, stop: the phases of seed lifecycle with real processes."""

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from executa_host import Patience, PluginSpec, SpawnFailed, StartFailed
from executa_protocol import transcript
from executa_protocol.lifecycle import State
from tests.host.conftest import MakeRig, Rig, raw_command


async def test_a_plugin_is_negotiated_described_and_called(rig: Rig) -> None:
    rig.add()
    manifest = await rig.host.start("raw")
    assert manifest.tool("echo") is not None
    assert rig.host.state("raw") is State.READY
    outcome = await rig.host.invoke("raw", "echo", {"value": {"text": "é\u2028x", "n": 2**70}})
    assert outcome.success
    assert outcome.data == {"value": {"text": "é\u2028x", "n": 2**70}}


async def test_a_banner_and_a_stray_array_on_stdout_harm_nothing(rig: Rig) -> None:
    rig.add("--banner")
    outcome = await rig.host.invoke("raw", "echo", {"value": {"a": 1}})
    assert outcome.data == {"value": {"a": 1}}
    noise = [event.sample for event in rig.seen(transcript.Noise) if event.kind == "unreadable"]
    assert [sample[:7] for sample in noise] == ["Welcome", '[1, {"j']


async def test_method_not_found_on_initialize_means_protocol_1_1(rig: Rig) -> None:
    rig.add("--v1")
    outcome = await rig.host.invoke("raw", "whoami")
    assert rig.host.state("raw") is State.V1
    context = outcome.data["params"]["context"]
    assert set(context) == {"invoke_id", "deadline_ms"}
    refused = await rig.reverse("storage/get", {"key": "k", "scope": "tool"})
    assert refused["error"]["code"] == -32021
    assert refused["error"]["data"]["missing"]["step"] == "negotiated"


@pytest.mark.parametrize(
    "answer",
    [
        {"protocolVersion": "1.1"},
        {"protocolVersion": 2.0},
        {"capabilities": {}},
        ["2.0"],
        "2.0",
        None,
    ],
    ids=repr,
)
async def test_an_answer_that_is_no_v2_answer_means_protocol_1_1(rig: Rig, answer: object) -> None:
    rig.add("--init", json.dumps(answer))
    await rig.host.start("raw")
    assert rig.host.state("raw") is State.V1
    outcome = await rig.host.invoke("raw", "echo", {"value": {}})
    assert outcome.success


async def test_protocol_2_1_is_v2_and_both_places_of_capabilities_count(rig: Rig) -> None:
    answer: dict[str, Any] = {
        "protocolVersion": "2.1",
        "serverInfo": {"name": "raw"},
        "client_capabilities": {"agent": {}},
        "capabilities": {"sampling": {}, "storage": False},
    }
    rig.add("--init", json.dumps(answer))
    await rig.host.start("raw")
    assert rig.host.state("raw") is State.READY
    assert rig.seen(transcript.Negotiated)[0].capabilities == ("agent", "sampling")


async def test_an_invoke_carries_its_id_in_both_places_and_only_its_own_tokens(rig: Rig) -> None:
    rig.add()
    first = (await rig.host.invoke("raw", "whoami")).data["params"]
    second = (await rig.host.invoke("raw", "whoami")).data["params"]
    assert first["invoke_id"] == first["context"]["invoke_id"]
    assert len(first["invoke_id"]) == 32
    assert int(first["invoke_id"], 16) >= 0
    assert first["invoke_id"] != second["invoke_id"]
    assert first["context"]["sampling_token"] != second["context"]["sampling_token"]
    assert first["context"]["storage_token"]
    assert "parent_invoke_id" not in first["context"]


async def test_a_plugin_without_capabilities_gets_no_tokens_and_nexus_is_not_asked(
    rig: Rig,
) -> None:
    rig.add("--manifest", json.dumps({"host_capabilities": []}))
    context = (await rig.host.invoke("raw", "whoami")).data["params"]["context"]
    assert set(context) == {"invoke_id", "deadline_ms"}
    assert rig.nexus.open_invokes == 0


async def test_the_environment_is_the_users_without_the_hosts_secrets(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXECUTA_API_KEY", "host-secret")
    monkeypatch.setenv("COLOUR", "green")
    rig.add(env={"GREETING": "hello"})
    env = (await rig.host.invoke("raw", "whoami")).data["env"]
    assert env["COLOUR"] == "green"
    assert env["GREETING"] == "hello"
    assert not [name for name in env if name.startswith("EXECUTA_")]
    private = Path(env["TMPDIR"])
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    await rig.host.stop("raw")
    assert not private.exists()


async def test_a_minimal_environment_is_an_allow_list(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLOUR", "green")
    rig.add(env={"GREETING": "hello"}, env_mode="minimal")
    env = (await rig.host.invoke("raw", "whoami")).data["env"]
    assert "COLOUR" not in env
    assert env["GREETING"] == "hello"
    assert env["PATH"] == os.environ["PATH"]


async def test_a_command_that_does_not_exist_is_named(rig: Rig) -> None:
    rig.host.add(PluginSpec(name="ghost", command=("no-such-command-anywhere",)))
    with pytest.raises(SpawnFailed, match="command not found: no-such-command-anywhere"):
        await rig.host.invoke("ghost", "echo")
    assert rig.host.state("ghost") is State.STOPPED


async def test_a_working_directory_that_does_not_exist_is_named(rig: Rig) -> None:
    rig.host.add(PluginSpec(name="lost", command=raw_command(), cwd="/no/such/directory"))
    with pytest.raises(SpawnFailed, match="/no/such/directory does not exist"):
        await rig.host.invoke("lost", "echo")


async def test_a_plugin_that_ends_in_the_handshake_is_quoted(rig: Rig) -> None:
    script = "import sys; print('no licence found', file=sys.stderr); sys.exit(7)"
    rig.host.add(PluginSpec(name="broken", command=(sys.executable, "-c", script)))
    with pytest.raises(StartFailed, match=r"exited with code 7.*no licence found"):
        await rig.host.start("broken")


async def test_a_manifest_with_faults_names_each_of_them(rig: Rig) -> None:
    manifest = {"tools": [{"name": "t", "parameters": [{"name": "p", "type": "text"}]}]}
    rig.add("--manifest", json.dumps(manifest))
    with pytest.raises(StartFailed, match=r"tools\[0\]\.parameters\[0\]\.type"):
        await rig.host.start("raw")


async def test_stop_closes_stdin_and_the_plugin_leaves_by_itself(rig: Rig) -> None:
    rig.add()
    await rig.host.start("raw")
    await rig.host.stop("raw")
    (exited,) = rig.seen(transcript.Exited)
    assert (exited.code, exited.rung, exited.fault) == (0, "stdin", False)
    assert rig.host.state("raw") is State.STOPPED
    outcome = await rig.host.invoke("raw", "echo", {"value": {}})
    assert outcome.success


async def test_health_reads_the_fields_words_and_its_absence_as_ready(rig: Rig) -> None:
    rig.add()
    assert (await rig.host.health("raw")).status == "ready"


SLOW_BINARY = """
import json, sys
def send(**members): print(json.dumps({"jsonrpc": "2.0", **members}), flush=True)
asked = 0
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        asked += 1
        if asked > 1:
            send(id=message["id"], result={"protocolVersion": "2.0", "capabilities": {}})
    else:
        tool = {"name": "t", "description": "d", "parameters": []}
        send(id=message["id"], result={"name": "n", "version": "1", "tools": [tool]})
"""


async def test_the_first_launch_of_a_one_file_binary_is_negotiated_once_more(
    make_rig: MakeRig,
) -> None:
    """It unpacks itself, and hears nothing of the first initialize (R-20)."""
    rig = make_rig(patience=Patience(initialize=0.2))
    command = (sys.executable, "-c", SLOW_BINARY)
    spec = PluginSpec(name="raw", command=command, type="binary")
    rig.host.add(spec)
    await rig.host.start("raw")
    assert rig.host.state("raw") is State.READY
    await rig.host.restart("raw")
    assert rig.host.state("raw") is State.V1  # the second launch has nothing to unpack
    await rig.host.reload(spec)
    assert rig.host.state("raw") is State.READY
    rig.host.add(PluginSpec(name="program", command=command))
    await rig.host.start("program")
    assert rig.host.state("program") is State.V1


async def test_a_plugin_without_room_for_its_files_is_not_started_and_may_be_later(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: object) -> str:
        raise OSError(28, "No space left on device")

    rig.add()
    with monkeypatch.context() as patch:
        patch.setattr("tempfile.mkdtemp", full)
        with pytest.raises(SpawnFailed, match="No space left"):
            await rig.host.start("raw")
    assert rig.host.state("raw") is State.STOPPED
    assert (await rig.host.invoke("raw", "echo", {"value": {}})).success
