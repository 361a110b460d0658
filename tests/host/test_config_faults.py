"""A configuration file with faults: each is named with its path, and no secret is repeated."""

from pathlib import Path

import pytest

from executa_host.config import read_config
from executa_host.config_reading import ConfigError
from executa_protocol.errors import UsageError
from tests.host.config_files import PLUGIN, faults_of, read


def test_every_fault_is_named_with_its_path_at_once(tmp_path: Path) -> None:
    faults = faults_of(
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
        read(tmp_path, text)
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
    assert message in faults_of(tmp_path, text)[path]


def test_a_file_of_a_secret_is_bounded_and_text(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * (64 * 1024 + 1))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    text = PLUGIN + 'credentials = { A = { file = "big" }, B = { file = "binary" } }'
    faults = faults_of(tmp_path, text)
    assert "more than 65,536 bytes" in faults["plugins.x.credentials.A"]
    assert "not UTF-8" in faults["plugins.x.credentials.B"]


def test_what_is_no_toml_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"not TOML: .*line 1"):
        read(tmp_path, "a = ?\nb = 1")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.toml: the configuration cannot be read"):
        read_config(tmp_path / "none.toml")
