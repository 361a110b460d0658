"""The commands as one family: what is listed, how they start, how a wrong word is answered."""

import ast
import json
import operator
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from cyclopts import App

import executa_host
from executa_host.cli.app import COMMANDS, build
from executa_host.cli.summaries import summary
from tests.cli.shell import NOTEBOOK, ROOT, executa, said

ALL = [
    "actions",
    "check",
    "completion",
    "demo",
    "describe",
    "dev",
    "doctor",
    "health",
    "invoke",
    "keys",
    "logs",
    "new",
    "nexus",
    "plugins",
    "serve",
    "sessions",
    "store",
    "why",
]


def _loaded_by(*words: str) -> set[str]:
    """The modules that a command has loaded when it ends."""
    code = (
        "import atexit, json, sys\n"
        "atexit.register(lambda: print('\\n' + json.dumps(sorted(sys.modules))))\n"
        f"from executa_host.cli import main; main({list(words)!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_help_lists_every_command_with_what_it_is_for() -> None:
    done = executa("--help", env={"COLUMNS": "200"})
    assert done.returncode == 0
    for name in ALL:
        assert f"│ {name} " in done.stdout
    assert "Exit codes: 0 fine" in done.stdout


def test_the_list_of_commands_imports_none_of_them() -> None:
    loaded = _loaded_by("--help")
    assert not loaded & {"executa_host.host", "executa_sdk", "executa_nexus_stub", "aiohttp"}


def test_a_one_shot_starts_without_an_http_library() -> None:
    loaded = _loaded_by("describe", NOTEBOOK)
    assert "executa_host.host" in loaded
    assert not loaded & {"aiohttp", "aiosqlite", "prompt_toolkit", "watchfiles"}


def _commands(app: App, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], App]]:
    for name in app:
        if not name.startswith("-"):
            yield (*path, name), app[name]
            yield from _commands(app[name], (*path, name))


_OTHERS = {entry.name for entry in entry_points(group=COMMANDS)}
"""Commands of other distributions, which describe their options in docstrings."""


def test_every_command_and_option_says_what_it_is_for() -> None:
    silent: list[str] = []
    for path, app in _commands(build()):
        silent += [" ".join(path)] * (not app.help)
        if app.default_command is not None and path[0] not in _OTHERS:
            silent += [
                f"{' '.join(path)} {argument.name}"
                for argument in app.assemble_argument_collection()
                if argument.show and not argument.parameter.help
            ]
    assert silent == []


def test_the_list_says_what_the_commands_themselves_say() -> None:
    whole = build()
    for entry in entry_points(group=COMMANDS):
        written = summary(entry.value)
        assert written
        assert written in " ".join(whole[entry.name].help.split())
    assert summary("executa_host.cli.oneshot:describe") == "Show what a plugin says about itself."


def test_a_summary_that_is_not_in_the_source_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "made_up.py").write_text('def f(): "Made."\nmade = globals()["f"]\n')
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert summary("made_up:made") == "Made."
    assert summary("made_up:missing").startswith("Cannot be loaded")
    assert summary("no_such_module:f").startswith("Cannot be loaded")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("invok",), "did you mean invoke?"),
        (("zebra",), "executa --help lists them"),
        (("--bogus",), "--bogus"),
        (("describe", "--bogus"), "--bogus"),
        (("keys", "creat"), "create"),
        (("invoke",), "tool"),
        (("health", "--timeout", "soon"), "timeout"),
    ],
)
def test_a_wrong_word_is_a_sentence_and_code_2(words: tuple[str, ...], told: str) -> None:
    done = executa(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert told.lower() in said(done).lower()


def test_the_version_is_the_package_s() -> None:
    done = executa("--version")
    assert (done.returncode, done.stdout.strip()) == (0, "0.1.0")


@pytest.mark.parametrize("words", [("--help",), ("describe", NOTEBOOK), ("describe", "--json")])
def test_a_reader_that_has_gone_is_no_fault(words: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "executa_host.cli", *words],
            cwd=ROOT / NOTEBOOK if words == ("describe", "--json") else ROOT,
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=90,
            check=False,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


# --- Completion ---------------------------------------------------------------------------------

_PRESS_TAB = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_executa
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    done = executa("completion", "bash")
    assert done.returncode == 0
    script = tmp_path_factory.mktemp("bash") / "executa.bash"
    script.write_text(done.stdout)
    return script


def _tab(script: Path, *words: str) -> list[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", _PRESS_TAB, "bash", str(script), "executa", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "PATH": path},
    )
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def test_bash_completes_commands_options_and_methods(bash_script: Path) -> None:
    assert set(_tab(bash_script, "des")) == {"describe"}
    assert set(ALL) <= set(_tab(bash_script, ""))
    assert "--no-sampling" in _tab(bash_script, "invoke", "--no")
    assert "create" in _tab(bash_script, "keys", "c")
    assert "storage/get" in _tab(bash_script, "why", "storage/")
    assert _tab(bash_script, "describe", "examples/noteb") == ["examples/notebook/"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_is_installed_where_it_is_asked_for(tmp_path: Path, shell: str) -> None:
    file = tmp_path / "here" / "executa"
    done = executa("completion", shell, "--output", str(file))
    assert done.returncode == 0
    assert str(file) in done.stderr
    assert "describe" in file.read_text()


# --- The package's names ------------------------------------------------------------------------


def test_every_public_name_of_the_package_is_loaded_when_it_is_used() -> None:
    tree = ast.parse(Path(executa_host.__file__ or "").read_text(encoding="utf-8"))
    imported = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("executa_")
        for alias in node.names
    }
    assert vars(executa_host)["_HOME"] == imported
    assert sorted(imported) == sorted(executa_host.__all__)
    for name in executa_host.__all__:
        assert getattr(executa_host, name) is not None
        assert name in dir(executa_host)
    with pytest.raises(AttributeError, match="nonsense"):
        operator.attrgetter("nonsense")(executa_host)
