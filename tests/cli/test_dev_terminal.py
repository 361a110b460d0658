"""`executa dev` at a terminal: typed, completed, edited, cancelled, left."""

import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.cli.shell import ROOT
from tests.cli.terminal import CTRL_C, CTRL_D, TAB, UP, Terminal

SLOW = Path(__file__).with_name("slow_plugin.py")
PROMPT = r"\w+> $"


def _leave(terminal: Terminal) -> None:
    """Ctrl-D at the prompt."""
    terminal.until(PROMPT)
    terminal.type(CTRL_D)
    assert terminal.end() == 0


def _change(file: Path, *changes: tuple[str, str]) -> None:
    text = file.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    """A copy of the example that can be changed."""
    folder = tmp_path / "notebook"
    shutil.copytree(ROOT / "examples" / "notebook", folder)
    return folder


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path / "state")}


def test_a_plugin_is_called_edited_reloaded_and_called_again(
    notebook: Path, env: dict[str, str]
) -> None:
    with Terminal("dev", str(notebook), cwd=ROOT, env=env) as terminal:
        terminal.until("Ctrl-D leaves")
        terminal.until(PROMPT)
        terminal.enter("invoke remember text='buy tea'")
        terminal.until('"notes": 1')
        terminal.until(PROMPT)
        _change(
            notebook / "plugin.py",
            ('"0.1.0"', '"0.2.0"'),
            ("recall(query: str, ctx", "recall(query: str, most: int, ctx"),
            ("[:BEST]", "[:most]"),
        )
        told = terminal.until("notebook is ready")
        assert "plugin.py changed: reloads" in told
        assert "~ notebook 0.1.0 → notebook 0.2.0" in told
        assert "~ tool recall(query: string) → recall(query: string, most: integer)" in told
        # Storage outlives the process; agent sessions end with it.
        terminal.enter("recall query=tea most=1")
        terminal.until(r'\[\s+"buy tea"\s+\]')
        _leave(terminal)


def test_a_plugin_that_an_edit_broke_comes_back_with_the_next(
    notebook: Path, env: dict[str, str]
) -> None:
    file = notebook / "plugin.py"
    _change(file, ("import re", "import re ("))
    with Terminal("dev", str(notebook), cwd=ROOT, env=env) as terminal:
        terminal.until("SyntaxError")
        terminal.until(PROMPT)
        terminal.enter("recall query=tea")
        terminal.until("is no command and no tool")
        _change(file, ("import re (", "import re"))
        terminal.until("declares aps.kv")
        terminal.enter("recall query=tea")
        terminal.until(r"\[\]")
        terminal.enter("quit")
        assert terminal.end() == 0


def test_a_reload_waits_for_the_invoke_that_runs(tmp_path: Path, env: dict[str, str]) -> None:
    plugin, done = tmp_path / "slow_plugin.py", tmp_path / "done"
    shutil.copy(SLOW, plugin)
    with Terminal("dev", str(plugin), cwd=ROOT, env=env) as terminal:
        terminal.until(PROMPT)
        terminal.enter(f"until path={done}")
        terminal.until("waits")
        _change(plugin, ('"1.0.0"', '"2.0.0"'))
        terminal.until("waits for until to end")
        done.touch()
        terminal.until("1.0.0")
        terminal.until("slow_plugin is ready")
        terminal.enter(f"until path={done}")
        terminal.until("2.0.0")
        _leave(terminal)


def test_ctrl_c_cancels_the_invoke_then_drops_the_line_and_ctrl_d_leaves(
    env: dict[str, str],
) -> None:
    words = ("dev", "--no-watch", "--nexus", "http", str(SLOW))
    with Terminal(*words, cwd=ROOT, env=env) as terminal:
        terminal.until(PROMPT)
        terminal.enter("forever")
        terminal.until("waits")
        terminal.type(CTRL_C)
        terminal.until("cancellation of forever: confirmed")
        terminal.until(PROMPT)
        terminal.type(f"nonsense{CTRL_C}")
        terminal.until(PROMPT)
        terminal.enter("storage ls")
        terminal.until("nothing is stored")  # so the signal has not ended nexus
        terminal.until(PROMPT)
        terminal.enter("typed count=7")
        terminal.until('"count": 7')
        _leave(terminal)
        assert "is no command" not in terminal.text


def test_tab_completes_commands_tools_arguments_and_values(env: dict[str, str]) -> None:
    with Terminal("dev", "--no-watch", str(SLOW), cwd=ROOT, env=env) as terminal:
        terminal.until(PROMPT)
        for typed, completed in (
            ("inv", "oke"),
            (" typ", "ed"),
            (" cou", "nt="),
            ("3 mod", "e="),
            ("s", "low"),
            (" lo", "ud="),
            ("t", "rue"),
        ):
            terminal.type(typed + TAB)
            terminal.until(typed.split()[-1] + completed)  # a space is a move of the cursor
        terminal.type("\r")
        told = terminal.until(r'"tags": null')
        assert re.search(r'"count": 3.*"loud": true.*"mode": "slow"', told, re.DOTALL)
        terminal.until(PROMPT)
        terminal.type(f"why storage/g{TAB}")
        terminal.until("storage/get")
        terminal.type("\r")
        terminal.until("aps.kv")
        _leave(terminal)


def test_what_was_typed_is_there_in_the_next_run_but_for_secrets(
    tmp_path: Path, notebook: Path, env: dict[str, str]
) -> None:
    words = ("dev", "--no-watch", "--credential", "NOTE_CODE", str(notebook))
    given = {**env, "NOTE_CODE": "violet-elephant"}
    with Terminal(*words, cwd=ROOT, env=given) as terminal:
        for line, answer in (
            ("recall query=tea", r"\[\]"),
            ("recall query=violet-elephant", r"\[\]"),
            ('recall {"query": "x", "password": "hunter2"}', "password"),
            ("remember text='api_key=sk-1234567890abcdef'", '"notes": 1'),
        ):
            terminal.until(PROMPT)
            terminal.enter(line)
            terminal.until(answer)
        _leave(terminal)
    file = tmp_path / "state" / "executa" / "dev-history"
    kept = [line[1:] for line in file.read_text().splitlines() if line.startswith("+")]
    assert kept == ["recall query=tea"]
    assert file.stat().st_mode & 0o077 == 0
    with Terminal("dev", "--no-watch", str(notebook), cwd=ROOT, env=env) as terminal:
        terminal.until(PROMPT)
        terminal.enter("health")
        terminal.until("ready")
        terminal.until(PROMPT)
        terminal.type(UP + UP)
        terminal.until("query=tea", again=UP)  # only what is different is drawn
        terminal.type("\r")
        terminal.until(r"\[\]")
        _leave(terminal)


def test_what_happens_meanwhile_stands_above_the_line_that_is_typed(
    notebook: Path, env: dict[str, str]
) -> None:
    with Terminal("dev", str(notebook), cwd=ROOT, env=env) as terminal:
        terminal.until(PROMPT)
        terminal.type("recall que")
        terminal.until("recall que")
        _change(notebook / "plugin.py", ('"0.1.0"', '"0.3.0"'))
        terminal.until("notebook is ready")
        terminal.type("ry=tea\r")
        terminal.until(r"\[\]")
        _leave(terminal)


def test_a_terminal_of_forty_columns_without_colour_shows_all(
    notebook: Path, env: dict[str, str]
) -> None:
    plain = {**env, "NO_COLOR": "1"}
    with Terminal("dev", "--no-watch", str(notebook), cwd=ROOT, env=plain, columns=40) as terminal:
        for line in ("help", "grants", "why sampling/createMessage", "status"):
            terminal.until(PROMPT)
            terminal.enter(line)
        _leave(terminal)
        flat = " ".join(terminal.text.split())
        for words in (
            "Find notes, the best match first.",
            "needs llm.sample",
            "storage ls [PREFIX]",
        ):
            assert words in flat
        assert not re.search(r"\x1b\[(?:[0-9]+;)*3[1-7]m", terminal.raw)


def test_sigterm_at_the_prompt_ends_it_cleanly(notebook: Path, env: dict[str, str]) -> None:
    with Terminal("dev", str(notebook), cwd=ROOT, env=env) as terminal:
        terminal.until(PROMPT)
        terminal.signal(signal.SIGTERM)
        assert terminal.end() == 130
        assert "Traceback" not in terminal.text


def test_a_one_shot_shows_that_it_runs_and_ctrl_c_ends_it() -> None:
    words = ("invoke", "forever", "--", sys.executable, str(SLOW))
    with Terminal(*words, cwd=ROOT) as terminal:
        terminal.until("forever runs: .*waits")
        terminal.type(CTRL_C)
        assert terminal.end() == 130
        assert "interrupted" in terminal.text
        assert "Traceback" not in terminal.text
