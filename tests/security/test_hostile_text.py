"""Text from a plugin reaches terminals and logs as text, and never as control."""

import json
import logging
from pathlib import Path

import pytest

from executa_host.observe.logs import EventLog, log_to, stop_logging
from executa_protocol import transcript
from tests.cli.shell import executa

EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b1m\u202e"

PLUGIN = f"""\
import sys
from executa_sdk import Plugin, ToolError

EVIL = {EVIL!r}
plugin = Plugin("evil", "0.1.0", description="A" + EVIL)


@plugin.tool
def say() -> str:
    "Say it."
    sys.stderr.write(EVIL + "\\n")
    return "said" + EVIL


@plugin.tool
def show() -> dict[str, str]:
    "Show it."
    return {{"said": EVIL}}


@plugin.tool
def fail() -> str:
    "Fail with it."
    raise ToolError("failed" + EVIL)


plugin.run()
"""


@pytest.fixture
def plugin(tmp_path: Path) -> str:
    file = tmp_path / "evil.py"
    file.write_text(PLUGIN, encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(
    "words", [("describe",), ("invoke", "say"), ("invoke", "show"), ("invoke", "fail")]
)
def test_what_a_plugin_says_moves_no_terminal(plugin: str, words: tuple[str, ...]) -> None:
    done = executa(*words, plugin)

    for written in (done.stdout, done.stderr):
        assert not [char for char in written if char in "\x1b\x07\x9b\u202e"]


def test_in_json_it_is_escaped_and_whole(plugin: str) -> None:
    done = executa("invoke", "say", plugin, "--json")

    assert "\x1b" not in done.stdout
    assert json.loads(done.stdout)["data"] == "said" + EVIL


@pytest.mark.parametrize("style", ["keys", "json"])
def test_what_a_plugin_prints_stays_one_record_of_the_log(
    capsys: pytest.CaptureFixture[str], style: str
) -> None:
    forged = "x\nat=2023 level=error event=invoke_end plugin=bank\r\u2028\x1b[2J"
    level = logging.getLogger("executa").level
    handler = log_to(style="json" if style == "json" else "keys")
    try:
        EventLog()(transcript.Stderr(at=0.0, plugin="evil", line=forged))
    finally:
        stop_logging(handler)
        logging.getLogger("executa").setLevel(level)

    (record,) = capsys.readouterr().err.splitlines()
    assert "plugin=evil" in record or '"plugin":"evil"' in record
    assert "\x1b" not in record
