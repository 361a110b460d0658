"""The configuration file: what it means, and that each fault is named with its path."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from executa_host import Host, InvokeRefused, InvokeTimeout
from executa_host.config import HostConfig, read_config
from executa_host.config_reading import ConfigError
from executa_host.nexus.http import HttpNexus, NexusTimeouts
from executa_host.nexus.narrowed import NarrowedNexus, Narrowing
from executa_host.patience import Patience
from executa_host.spec import build_env
from executa_nexus_stub import NexusStub
from executa_protocol.errors import UsageError
from executa_protocol.transcript import AnyEvent
from tests.host.conftest import RAW_PLUGIN

PLUGIN = '[plugins.x]\ncommand = ["python", "plugin.py"]\n'


def _write(folder: Path, text: str) -> Path:
    file = folder / "host.toml"
    file.write_text(text, encoding="utf-8")
    return file


def _read(folder: Path, text: str, **environ: str) -> HostConfig:
    return read_config(_write(folder, text), environ=environ)


def _faults(folder: Path, text: str, **environ: str) -> dict[str, str]:
    with pytest.raises(ConfigError) as refused:
        _read(folder, text, **environ)
    for fault in refused.value.faults:
        assert str(fault) in str(refused.value)
    return {fault.path: fault.message for fault in refused.value.faults}


# --- What it means ------------------------------------------------------------------------------


def test_an_empty_file_is_a_host_without_plugins_over_the_stub(tmp_path: Path) -> None:
    config = _read(tmp_path, "")
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
    config = _read(tmp_path, text)
    assert config.strict
    assert config.starts_at_once == 4
    assert config.idle_after == 900
    assert config.hide_env == ("AWS_PROFILE",)
    assert config.patience == Patience(stop=1.5, describe_onefile=120)


def test_a_plugin_with_everything(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("from-a-file\n")
    (config,) = _read(
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
    file = _write(tmp_path, PLUGIN)
    monkeypatch.chdir(tmp_path.parent)
    (spec,) = read_config(file.relative_to(tmp_path.parent), environ={}).plugins
    assert spec.cwd == str(tmp_path)


def test_a_minimal_environment_may_be_said_in_one_word(tmp_path: Path) -> None:
    (spec,) = _read(tmp_path, PLUGIN + 'env = "minimal"').plugins
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
    config = _read(tmp_path, text, THE_KEY="value")
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
    config = _read(tmp_path, text, EXECUTA_NEXUS_KEY="the-key")
    assert config.nexus.key == "the-key"
    assert config.nexus.timeouts == NexusTimeouts(storage=5, run=60)
    nexus = config.build_nexus()
    assert isinstance(nexus, HttpNexus)
    assert "the-key" not in repr(config) + repr(nexus)
    await nexus.aclose()


def test_the_key_may_have_another_source(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from-a-file\n")
    text = '[nexus]\nkind = "http"\nurl = "http://127.0.0.1:1"\nkey = { file = "key" }'
    assert _read(tmp_path, text).nexus.key == "from-a-file"


def test_the_stub_gets_its_own_options(tmp_path: Path) -> None:
    config = _read(tmp_path, "[nexus.options]\nopen_to_all = false\ntoken_ttl = 30.0")
    nexus = config.build_nexus()
    assert isinstance(nexus, NexusStub)
    assert not nexus.config.open_to_all
    with pytest.raises(UsageError, match="no_such_option"):
        _read(tmp_path, "[nexus.options]\nno_such_option = 1").build_nexus()
    with pytest.raises(UsageError, match="no nexus named 'other'"):
        _read(tmp_path, '[nexus]\nentry = "other"').build_nexus()


def test_grants_take_away_from_what_nexus_grants(tmp_path: Path) -> None:
    text = PLUGIN + 'grants = { sampling = false, tools = ["x.y"], tokens = 100 }'
    config = _read(tmp_path, text)
    assert config.narrowed == {"x": Narrowing(sampling=False, tools=("x.y",), tokens=100)}
    assert isinstance(config.build_nexus(), NarrowedNexus)
    config = _read(tmp_path, PLUGIN + "grants = { tools = [] }")
    assert config.narrowed == {"x": Narrowing(tools=())}


def test_no_secret_is_in_what_is_shown(tmp_path: Path) -> None:
    text = PLUGIN + 'credentials = { KEY = { env = "K" } }\nenv = { A = { env = "K" } }'
    config = _read(tmp_path, text, K="distinctive")
    assert "distinctive" not in repr(config)
    assert "distinctive" not in str(config)


# --- What is wrong with it ----------------------------------------------------------------------


def test_every_fault_is_named_with_its_path_at_once(tmp_path: Path) -> None:
    faults = _faults(
        tmp_path,
        """
        [host]
        strickt = true
        starts_at_once = 0
        idle_after = "soon"
        [limits]
        stopp = 3
        [nexus]
        kind = "cloud"
        [plugins.notebook]
        comand = ["python"]
        command = "python plugin.py"
        type = "script"
        env_mode = "none"
        file_transport = "yes"
        tool_timeouts = { recall = 0, index = "soon", all = true }
        hide_env = [1]
        cwd = ""
        credentials = { A = "sk-123", B = { env = 1 }, C = { env = "X", file = "y" }, D = {} }
        env = { "a=b" = "c", N = 1 }
        grants = { sampling = "no", tokens = -1, tokns = 5 }
        [plugins."two words"]
        command = ["x"]
        [plugins.empty]
        [plugin.typo]
        """,
    )
    expected = {
        "host.strickt": "unknown name; did you mean strict?",
        "host.starts_at_once": "expected an integer from 1 to",
        "host.idle_after": "expected a number from",
        "limits.stopp": "did you mean stop?",
        "nexus.kind": 'expected "stub" or "http", got a string',
        "plugins.notebook.comand": "unknown name; did you mean command?",
        "plugins.notebook.command": "expected an array of strings such as",
        "plugins.notebook.type": 'expected "program" or "binary", got a string',
        "plugins.notebook.env_mode": 'expected "user" or "minimal", got a string',
        "plugins.notebook.file_transport": "expected a boolean, got a string",
        "plugins.notebook.tool_timeouts.recall": "expected a number from 0.001 to 86400, got 0",
        "plugins.notebook.tool_timeouts.index": "got a string",
        "plugins.notebook.tool_timeouts.all": "got true",
        "plugins.notebook.hide_env": "expected an array of strings",
        "plugins.notebook.cwd": "expected a string that is not empty, got an empty string",
        "plugins.notebook.credentials.A": 'expected { env = "NAME" } or { file = "path" }',
        "plugins.notebook.credentials.B": "expected { env",
        "plugins.notebook.credentials.C": "expected { env",
        "plugins.notebook.credentials.D": "expected { env",
        'plugins.notebook.env."a=b"': "expected a name without =",
        "plugins.notebook.env.N": "expected { env",
        "plugins.notebook.grants.sampling": "expected a boolean",
        "plugins.notebook.grants.tokens": "expected an integer from 0 to",
        "plugins.notebook.grants.tokns": "did you mean tokens?",
        'plugins."two words"': "expected a name without dots or spaces",
        "plugins.empty.command": "expected the program",
        "plugin": "unknown name; did you mean plugins?",
    }
    assert set(faults) == set(expected)
    for path, message in expected.items():
        assert message in faults[path], path


def test_a_secret_in_a_wrong_place_is_not_repeated(tmp_path: Path) -> None:
    text = PLUGIN + 'credentials = { A = "sk-distinctive" }\ntype = "sk-distinctive"'
    with pytest.raises(ConfigError) as refused:
        _read(tmp_path, text)
    assert "does not belong into this file" in str(refused.value)
    assert "sk-distinctive" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ('[nexus]\nkind = "http"', "nexus.url", "expected the address"),
        ('[nexus]\nkind = "http"\nurl = "nexus.example"', "nexus.url", "expected http://HOST"),
        ('[nexus]\nkind = "http"\nurl = "http://a:b@x"', "nexus.url", "no user, password"),
        ('[nexus]\nkind = "http"\nurl = "http://x"\nkey = "abc"', "nexus.key", "expected { env"),
        ('[nexus]\nkind = "http"\nurl = "http://x"\nkey = { env = "GONE" }', "nexus.key",
         "the environment variable GONE is not set"),
        ('[nexus]\nkind = "http"\nurl = "http://x"\ntimeouts = { storge = 1 }',
         "nexus.timeouts.storge", "did you mean storage?"),
        ('[nexus]\nurl = "http://x"', "nexus.url", "unknown name"),
        ("nexus = 1", "nexus", "expected a table, got 1"),
        ("[nexus]\noptions = []", "nexus.options", "expected a table, got an empty array"),
        ("plugins = []", "plugins", "expected a table, got an empty array"),
        ("plugins = { x = 1 }", "plugins.x", "expected a table, got 1"),
        (PLUGIN + 'credentials = { A = { file = "gone" } }', "plugins.x.credentials.A",
         "cannot be read: No such file"),
        (PLUGIN + 'credentials = { A = { file = "." } }', "plugins.x.credentials.A",
         "cannot be read: Is a directory"),
    ],
)  # fmt: skip
def test_a_fault_has_its_path(tmp_path: Path, text: str, path: str, message: str) -> None:
    assert message in _faults(tmp_path, text)[path]


def test_a_file_of_a_secret_is_bounded_and_text(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * (64 * 1024 + 1))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    text = PLUGIN + 'credentials = { A = { file = "big" }, B = { file = "binary" } }'
    faults = _faults(tmp_path, text)
    assert "more than 65,536 bytes" in faults["plugins.x.credentials.A"]
    assert "not UTF-8" in faults["plugins.x.credentials.B"]


def test_what_is_no_toml_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"not TOML: .*line 1"):
        _read(tmp_path, "a = ?\nb = 1")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.toml: the configuration cannot be read"):
        read_config(tmp_path / "none.toml")


def test_this_processes_environment_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", "value")
    file = _write(tmp_path, PLUGIN + 'credentials = { A = { env = "THE_KEY" } }')
    assert read_config(file).plugins[0].credentials == {"A": "value"}


# --- A host of it -------------------------------------------------------------------------------


async def test_a_host_runs_what_the_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIVEN", "value-of-given")
    manifest = json.dumps({"credentials": [{"name": "KEY", "description": "x"}]})
    command = json.dumps([sys.executable, str(RAW_PLUGIN), "--manifest", manifest])
    events: list[AnyEvent] = []
    file = _write(
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
    config = _read(tmp_path, text)
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
    ]
    assert [name for name in names if f"{name} =" not in text and f".{name}]" not in text] == []
    assert os.environ["NOTEBOOK_API_KEY"] not in repr(config)
