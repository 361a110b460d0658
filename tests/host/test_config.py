"""The configuration file: what it means."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from executa_host import Host, InvokeRefused, InvokeTimeout
from executa_host.actions.settings import Slots
from executa_host.config import read_config
from executa_host.nexus.http import HttpNexus, NexusTimeouts
from executa_host.nexus.narrowed import NarrowedNexus, Narrowing
from executa_host.patience import Patience
from executa_host.spec import build_env
from executa_nexus_stub import NexusStub
from executa_protocol.errors import UsageError
from executa_protocol.transcript import AnyEvent
from tests.host.config_files import PLUGIN, read, write
from tests.host.conftest import RAW_PLUGIN

# --- What it means ------------------------------------------------------------------------------


def test_an_empty_file_is_a_host_without_plugins_over_the_stub(tmp_path: Path) -> None:
    config = read(tmp_path, "")
    assert config.plugins == ()
    assert not config.strict
    assert isinstance(config.build_nexus(), NexusStub)


def test_the_host_and_its_limits(tmp_path: Path) -> None:
    text = """
        [host]
        strict = true
        starts_at_once = 4
        idle_after = 900
        hide_env = ["AWS_PROFILE"]
        [limits]
        stop = 1.5
        describe_onefile = 120
    """
    config = read(tmp_path, text)
    assert config.strict
    assert config.starts_at_once == 4
    assert config.idle_after == 900
    assert config.hide_env == ("AWS_PROFILE",)
    assert config.patience == Patience(stop=1.5, describe_onefile=120)


def test_a_plugin_with_everything(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("from-a-file\n")
    (config,) = read(
        tmp_path,
        """
        [plugins.notebook]
        command = ["uv", "run", "plugin.py"]
        cwd = "plugins/notebook"
        env_mode = "minimal"
        env = { GREETING = "hello", TOKEN = { env = "NOTEBOOK_TOKEN" } }
        hide_env = ["AWS_PROFILE"]
        type = "binary"
        tool_id = "tool-ada-notebook-1"
        file_transport = false
        idle_after = 300
        [plugins.notebook.credentials]
        API_KEY = { env = "NOTEBOOK_KEY" }
        OTHER_KEY = { file = "secret.txt" }
        UNSET_KEY = { env = "NOWHERE" }
        CLOUD_KEY = "nexus"
        [plugins.notebook.tool_timeouts]
        recall = 5
        index = 0.5
        """,
        NOTEBOOK_KEY="from-the-environment",
        NOTEBOOK_TOKEN="also-from-there",  # noqa: S106 - an example
    ).plugins
    assert config.name == "notebook"
    assert config.command == ("uv", "run", "plugin.py")
    assert config.cwd == str(tmp_path / "plugins" / "notebook")
    assert config.env_mode == "minimal"
    assert config.env == {"GREETING": "hello", "TOKEN": "also-from-there"}
    assert config.hide_env == ("AWS_PROFILE",)
    assert config.type == "binary"
    assert config.tool_id == "tool-ada-notebook-1"
    assert not config.file_transport
    assert config.idle_after == 300
    assert config.credentials == {"API_KEY": "from-the-environment", "OTHER_KEY": "from-a-file"}
    assert config.tool_timeouts == {"recall": 5, "index": 0.5}


def test_plugins_run_in_the_files_folder_wherever_the_host_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, PLUGIN)
    monkeypatch.chdir(tmp_path.parent)
    (spec,) = read_config(file.relative_to(tmp_path.parent), environ={}).plugins
    assert spec.cwd == str(tmp_path)


def test_a_minimal_environment_may_be_said_in_one_word(tmp_path: Path) -> None:
    (spec,) = read(tmp_path, PLUGIN + 'env = "minimal"').plugins
    assert spec.env_mode == "minimal"
    assert spec.env == {}


def test_variables_that_hold_secrets_reach_no_plugin_that_does_not_name_them(
    tmp_path: Path,
) -> None:
    text = """
        [plugins.a]
        command = ["a"]
        credentials = { KEY = { env = "THE_KEY" } }
        [plugins.b]
        command = ["b"]
        [plugins.c]
        command = ["c"]
        env = { THE_KEY = { env = "THE_KEY" } }
    """
    config = read(tmp_path, text, THE_KEY="value")
    a, b, c = config.plugins
    environment = {"THE_KEY": "value", "EXECUTA_NEXUS_KEY": "key", "PATH": "/bin"}
    hidden = config.hide_env
    assert hidden == ("THE_KEY",)
    assert build_env(a, environment, secrets=hidden) == {"PATH": "/bin"}
    assert build_env(b, environment, secrets=hidden) == {"PATH": "/bin"}
    assert build_env(c, environment, secrets=hidden) == {"PATH": "/bin", "THE_KEY": "value"}


async def test_a_nexus_over_http_shows_the_key_from_the_environment(tmp_path: Path) -> None:
    text = """
        [nexus]
        kind = "http"
        url = "https://nexus.example"
        timeouts = { storage = 5, run = 60 }
    """
    config = read(tmp_path, text, EXECUTA_NEXUS_KEY="the-key")
    assert config.nexus.key == "the-key"
    assert config.nexus.timeouts == NexusTimeouts(storage=5, run=60)
    nexus = config.build_nexus()
    assert isinstance(nexus, HttpNexus)
    assert "the-key" not in repr(config) + repr(nexus)
    await nexus.aclose()


def test_the_key_may_have_another_source(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from-a-file\n")
    text = '[nexus]\nkind = "http"\nurl = "http://127.0.0.1:1"\nkey = { file = "key" }'
    assert read(tmp_path, text).nexus.key == "from-a-file"


def test_the_stub_gets_its_own_options(tmp_path: Path) -> None:
    config = read(tmp_path, "[nexus.options]\nopen_to_all = false\ntoken_ttl = 30.0")
    nexus = config.build_nexus()
    assert isinstance(nexus, NexusStub)
    assert not nexus.config.open_to_all
    with pytest.raises(UsageError, match="no_such_option"):
        read(tmp_path, "[nexus.options]\nno_such_option = 1").build_nexus()
    with pytest.raises(UsageError, match="no nexus named 'other'"):
        read(tmp_path, '[nexus]\nentry = "other"').build_nexus()


def test_grants_take_away_from_what_nexus_grants(tmp_path: Path) -> None:
    text = PLUGIN + 'grants = { sampling = false, tools = ["x.y"], tokens = 100 }'
    config = read(tmp_path, text)
    assert config.narrowed == {"x": Narrowing(sampling=False, tools=("x.y",), tokens=100)}
    assert isinstance(config.build_nexus(), NarrowedNexus)
    config = read(tmp_path, PLUGIN + "grants = { tools = [] }")
    assert config.narrowed == {"x": Narrowing(tools=())}


def test_no_secret_is_in_what_is_shown(tmp_path: Path) -> None:
    text = PLUGIN + 'credentials = { KEY = { env = "K" } }\nenv = { A = { env = "K" } }'
    config = read(tmp_path, text, K="distinctive")
    assert "distinctive" not in repr(config)
    assert "distinctive" not in str(config)


def test_this_processes_environment_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", "value")
    file = write(tmp_path, PLUGIN + 'credentials = { A = { env = "THE_KEY" } }')
    assert read_config(file).plugins[0].credentials == {"A": "value"}


# --- A host of it -------------------------------------------------------------------------------


async def test_a_host_runs_what_the_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIVEN", "value-of-given")
    manifest = json.dumps({"credentials": [{"name": "KEY", "description": "x"}]})
    command = json.dumps([sys.executable, str(RAW_PLUGIN), "--manifest", manifest])
    events: list[AnyEvent] = []
    file = write(
        tmp_path,
        f"""
        [plugins.raw]
        command = {command}
        credentials = {{ KEY = {{ env = "GIVEN" }}, OTHER = {{ env = "GIVEN" }} }}
        tool_timeouts = {{ hang = 0.05 }}
        grants = {{ storage = false }}
        """,
    )
    async with Host.from_config(file, trace=events.append) as host:
        outcome = await host.invoke("raw", "whoami")
        assert outcome.data["params"]["context"]["credentials"] == {"KEY": "value-of-given"}
        assert "GIVEN" not in outcome.data["env"]
        assert outcome.data["cwd"] == str(tmp_path)
        with pytest.raises(InvokeTimeout):
            await host.invoke("raw", "hang")
        asked = {"method": "storage/get", "params": {"key": "k", "scope": "tool"}}
        refused = (await host.invoke("raw", "reverse", asked)).data["error"]["data"]
        assert refused["missing"]["step"] == "grant"
        assert events


async def test_a_required_credential_that_nobody_gives_refuses_the_invoke_by_name(
    tmp_path: Path,
) -> None:
    manifest = json.dumps({"credentials": [{"name": "KEY", "description": "x"}]})
    command = json.dumps([sys.executable, str(RAW_PLUGIN), "--manifest", manifest])
    text = f"""
        [plugins.raw]
        command = {command}
        credentials = {{ KEY = {{ env = "NOT_GIVEN" }} }}
    """
    config = read(tmp_path, text)
    assert config.unset == ("NOT_GIVEN",)
    async with config.build() as host:
        with pytest.raises(InvokeRefused, match="KEY"):
            await host.invoke("raw", "echo", {"value": {}})


# --- The example --------------------------------------------------------------------------------


def test_the_example_shows_every_name(monkeypatch: pytest.MonkeyPatch) -> None:
    file = Path(__file__).parents[2] / "examples" / "host.toml"
    monkeypatch.setenv("NOTEBOOK_API_KEY", "value")
    config = read_config(file)
    assert {spec.name for spec in config.plugins} == {"notebook", "brief"}
    for spec in config.plugins:
        assert spec.cwd is not None
        assert Path(spec.cwd).is_dir()
    text = file.read_text(encoding="utf-8")
    names: list[Any] = [
        *("command", "cwd", "env", "env_mode", "hide_env", "type", "tool_id", "credentials"),
        *("tool_timeouts", "file_transport", "idle_after", "grants", "strict", "kind", "url"),
        *("key", "timeouts", "entry", "options", "starts_at_once"),
        *Patience.__struct_fields__,
        *NexusTimeouts.__struct_fields__,
        *Narrowing.__struct_fields__,
        *("host", "port", "grace", "tls_certificate", "tls_key"),
        *("store", "synchronous", "open_actions", "own_approvals", "settle_after"),
        *("housekeeping_every", "expires_after", "age", "count", "key_outlives", "marker_age"),
        *("allow", "timeout", "attempts", "base", "max", "effect", "modes", "approval"),
        *("approvers", "approval_ttl", "retry", "actor", "subject", "tenant", "capabilities"),
        *("user_id", *Slots.__struct_fields__),
    ]
    assert [name for name in names if f"{name} =" not in text and f".{name}]" not in text] == []
    assert os.environ["NOTEBOOK_API_KEY"] not in repr(config)
