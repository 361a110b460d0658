"""What is typed, read by its rules: arguments, faults in them, changes, secrets, source files."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Raw
from watchfiles import Change

from executa_host.cli import exits
from executa_host.cli.arguments import read_arguments, read_object, read_words, remarks, usage
from executa_host.cli.dev.changes import Source, watched
from executa_host.cli.dev.history import CleanHistory, Screening
from executa_host.cli.oneshot import paths_like
from executa_host.cli.views import changes, typed
from executa_host.cli.working import indented, progress_text
from executa_protocol.manifest import Manifest, Parameter, Tool

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2)
    ),
    max_leaves=4,
)
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
TOOL = Tool(
    name="mix",
    parameters=[
        Parameter(name="text", type="string"),
        Parameter(name="count", type="integer", required=False),
        Parameter(name="ratio", type="number", required=False),
        Parameter(name="loud", type="boolean", required=False),
        Parameter(name="more", type="object", required=False),
    ],
)

# --- Arguments ----------------------------------------------------------------------------------


def _outcome(read: Callable[[], dict[str, Any]]) -> dict[str, Any] | exits.Stop:
    """What it gives, or how it ends the command; anything else fails the test."""
    try:
        return read()
    except exits.Stop as stop:
        return stop


@PATIENT
@given(st.dictionaries(st.text(max_size=4), JSON, max_size=3))
def test_every_object_is_read_as_json_reads_it(value: dict[str, Any]) -> None:
    assert read_object(json.dumps(value), "here") == value


@PATIENT
@given(st.text(max_size=40))
def test_whatever_is_typed_gives_an_object_or_a_sentence(text: str) -> None:
    found = _outcome(lambda: read_object(text, "here"))
    if isinstance(found, exits.Stop):
        assert found.code == exits.USAGE
        assert str(found).startswith("here: ")


@PATIENT
@given(st.text(max_size=30), st.integers(-(2**53), 2**53), st.booleans(), JSON)
def test_words_are_what_their_types_say(text: str, count: int, loud: bool, value: Any) -> None:
    words = [f"text={text}", f"count={count}", f"loud={str(loud).lower()}"]
    found = read_words([*words, f"more:={json.dumps(value)}"], TOOL)
    assert found == {"text": text, "count": count, "loud": loud, "more": value}


@PATIENT
@given(st.lists(st.text(max_size=12), max_size=4))
def test_any_words_give_arguments_or_a_sentence(words: list[str]) -> None:
    found = _outcome(lambda: read_words(words, TOOL))
    if isinstance(found, exits.Stop):
        assert found.code == exits.USAGE
    else:
        assert set(found) <= {parameter.name for parameter in TOOL.parameters}


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"a": x}', '{"a": x}', 6),
        ('{\n "ä": 1,\n "b": x\n}', ' "b": x', 6),
        ('{"long": "' + "y" * 200 + '", z}', None, None),
    ],
)
def test_a_caret_stands_below_the_character_that_is_wrong(
    text: str, line: str | None, column: int | None
) -> None:
    with pytest.raises(exits.Stop) as stop:
        read_object(text, "--args")
    _, shown, caret = str(stop.value).split("\n")
    assert caret.strip() == "^"
    if line is None:
        assert len(shown) <= 120
        assert shown[len(caret) - 1] == "z"
    else:
        assert shown == line
        assert abs(len(caret) - 1 - (column or 0)) <= 1


def test_a_file_of_arguments_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "args"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(exits.Stop, match="it is no text"):
        read_arguments(f"@{file}")


def test_the_manifest_s_remarks_name_what_is_missing_wrong_and_unknown() -> None:
    assert usage(TOOL) == (
        "mix text=STRING [count=INTEGER] [ratio=NUMBER] [loud=BOOLEAN] [more=OBJECT]"
    )
    said = remarks(TOOL, {"count": "3", "txt": 1})
    assert said[0].startswith("$.text: required (mix text=STRING")
    assert said[1] == "$.count: expected an integer, got a string"
    assert said[2].endswith("Did you mean text?")
    assert remarks(TOOL, {"text": "x"}) == []


# --- A manifest's changes -----------------------------------------------------------------------


def test_what_changed_in_a_manifest_is_told_line_by_line() -> None:
    old = Manifest(
        name="n", version="1", host_capabilities=["aps.kv"], tools=[TOOL, Tool(name="gone")]
    )
    new = Manifest(
        name="n",
        version="2",
        host_capabilities=["llm.sample"],
        tools=[
            Tool(name="mix", parameters=TOOL.parameters[:1], description="New words."),
            Tool(name="fresh", parameters=[Parameter(name="a", type="array", required=False)]),
        ],
    )
    lines = changes(old, new)
    assert lines[0] == "~ n 1 → n 2"
    assert lines[1:3] == ["+ capability llm.sample", "- capability aps.kv"]
    assert lines[3].startswith("~ tool mix(text: string, [count: integer]")
    assert lines[3].endswith("→ mix(text: string)")
    assert lines[4:] == ["+ tool fresh([a: array])", "- tool gone"]
    described = Manifest(name="n", version="1", tools=[Tool(name="t", description="x")])
    renamed = Manifest(name="n", version="1", tools=[Tool(name="t", description="y")])
    assert changes(described, renamed) == ["~ tool t: description"]
    assert changes(old, old) == []


# --- Secrets in what was typed ------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "login password=hunter2",
        'login {"api_key": "x"}',
        "login token:='\"x\"'",
        "say text='Bearer abcdefghijklmnop'",
        "say text=violet-elephant",
        "say text=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
    ],
)
def test_a_line_with_a_secret_is_not_kept(line: str) -> None:
    assert Screening({"NOTE": "violet-elephant"}).holds_secret(line)


def test_other_lines_are_kept_and_a_file_that_grew_is_shortened(tmp_path: Path) -> None:
    assert not Screening({}).holds_secret("recall query='the token of my affection'")
    file = tmp_path / "history"
    history = CleanHistory(file, {})
    for number in range(2100):
        history.store_string(f"recall query={number}")
    history.store_string("login password=hunter2")
    kept = list(CleanHistory(file, {}).load_history_strings())
    assert kept[0] == "recall query=2099"
    assert len(kept) == 1000
    assert file.stat().st_mode & 0o777 == 0o600


# --- Files --------------------------------------------------------------------------------------


def test_only_source_starts_a_plugin_anew(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "tool"
    source = Source([program])
    for name in ("plugin.py", "src/index.js", "go.mod", "executa.json", "bin/tool"):
        assert source(Change.modified, str(tmp_path / name)), name
    for name in ("data.json", "notes.db", ".git/x.py", "node_modules/x.js", "x.pyc", "log.txt"):
        assert not source(Change.modified, str(tmp_path / name)), name


def test_what_is_watched_follows_from_what_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tool.py"
    file.touch()
    monkeypatch.chdir(tmp_path)
    assert watched([]) == ([tmp_path], [])
    assert watched(["."]) == ([tmp_path], [])
    assert watched([sys.executable, "tool.py", "--loud"]) == ([tmp_path], [file])
    assert watched(["some-command", "on-the-path"]) == ([], [])
    assert paths_like("to") == ["tool.py"]
    assert paths_like("/no/such/folder/x") == []
    assert typed([sys.executable, str(file), "a b"]).endswith(" tool.py 'a b'")


# --- Lines of a plugin --------------------------------------------------------------------------


def test_a_traceback_keeps_its_shape_and_loses_what_moves_the_cursor() -> None:
    assert indented("\tFile \x1b[31mx\x1b[0m") == "    File  [31mx [0m"


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ({"type": "progress", "data": {"done": 2, "total": 5, "note": "reads"}}, "2 of 5 reads"),
        ({"data": {"done": 0.5}}, "0.5"),
        ({"data": {"message": "half\nway"}}, "half way"),
        ({"data": [1]}, '{"data": [1]}'),
    ],
)
def test_progress_is_told_in_words(event: dict[str, Any], text: str) -> None:
    assert progress_text(Raw(json.dumps(event).encode())) == text
