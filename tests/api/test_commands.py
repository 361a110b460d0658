"""`executa actions` and `sessions`: output for people and programs, and exit codes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from executa_host.actions.requests import ALL_SCOPES
from tests.api.served import Served
from tests.api.shell import Shell

UNKNOWN = "act_00000000000000000000000000"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("host")) as served:
        yield served


@pytest.fixture
def shell(
    served: Served, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Shell:
    """As a person with an ordinary key."""
    monkeypatch.setenv("COLUMNS", "200")
    for name, value in served.environment().items():
        monkeypatch.setenv(name, value)
    return Shell(capfd)


def _submitted(shell: Shell, *words: str) -> str:
    told = shell.json("actions", "submit", *words)
    return str(told["action"]["action_id"])


def _awaiting_approval(shell: Shell) -> str:
    """An action that somebody has to decide about now."""
    action_id = _submitted(shell, "raw.echo", "--ask")
    for _ in range(1000):
        if shell.json("actions", "show", action_id)["action"]["state"] == "pending_approval":
            return action_id
    pytest.fail("it never asked")


def test_an_action_is_submitted_shown_and_listed(shell: Shell) -> None:
    given = '{"value": {\n "n": 1}}'
    told = shell.json("actions", "submit", "raw.echo", "--input", given, "--mode", "sync")
    assert told["ok"] is True
    assert told["result"]["output"] == {"value": {"n": 1}}
    action_id = told["action"]["action_id"]
    assert shell.run("actions", "result", action_id) == 0
    assert json.loads(shell.out) == {"value": {"n": 1}}
    assert shell.run("actions", "show", action_id, "--include", "receipts") == 0
    assert "raw.echo completed" in shell.out
    assert "acceptance" in shell.out
    shown = shell.json("actions", "show", action_id, "--include", "input")
    assert shown["action"]["input"] == {"value": {"n": 1}}
    assert shell.run("actions", "list", "--state", "completed", "--capability", "raw.echo") == 0
    assert action_id in shell.out
    page = shell.json("actions", "list", "--limit", "1")
    assert len(page["records"]) == 1
    assert "input" not in page["records"][0]


def test_following_shows_what_happens_and_ends_with_the_result(shell: Shell) -> None:
    words = ("raw.progress", "--input", '{"count": 2}')
    assert shell.run("actions", "submit", *words, "--follow") == 0
    for word in ("accepted", "running", "progress", "completed"):
        assert word in shell.out
    action_id = _submitted(shell, *words)
    assert shell.run("actions", "follow", action_id, "--json") == 0
    *events, outcome = map(json.loads, shell.out.splitlines())
    assert [event["state"] for event in events if event["type"] == "state"][-1] == "completed"
    assert outcome["result"]["status"] == "completed"
    after = events[-2]["cursor"]
    assert shell.run("actions", "follow", action_id, "--after", after, "--json") == 0
    assert len(shell.out.splitlines()) == 2


def test_a_tool_that_fails_is_exit_code_1(shell: Shell) -> None:
    assert shell.run("actions", "submit", "raw.fail", "--mode", "sync") == 1
    assert "failed" in shell.out
    told = shell.json("actions", "submit", "raw.fail", "--mode", "sync", code=1)
    assert told["result"]["error"]["message"]


def test_an_approval_is_asked_for_and_decided(
    shell: Shell, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    action_id = _awaiting_approval(shell)
    assert shell.run("actions", "approve", action_id) == 4
    assert "scope" in shell.said
    monkeypatch.setenv("EXECUTA_API_KEY", served.key("judge", ALL_SCOPES))
    assert shell.run("actions", "approve", action_id, "--content", "0" * 64) == 4
    assert shell.run("actions", "approve", action_id, "--note", "looks right") == 0
    assert "approved by judge" in shell.out
    assert shell.run("actions", "result", action_id, "--wait", "30") == 0
    denied = _awaiting_approval(shell)
    assert shell.json("actions", "deny", denied)["action"]["approval"]["status"] == "denied"


def test_an_action_is_cancelled_and_a_dead_letter_redriven(
    shell: Shell, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    action_id = _submitted(shell, "raw.echo", "--ask")
    assert shell.run("actions", "cancel", action_id, "--reason", "no", "--wait", "30") == 0
    assert "cancelled" in shell.out
    dead = _submitted(shell, "raw.die")
    assert shell.run("actions", "result", dead, "--wait", "30") == 1
    assert "requires_human" in shell.out
    monkeypatch.setenv("EXECUTA_API_KEY", served.key("ada", ALL_SCOPES))
    again = shell.json("actions", "redrive", dead)
    assert again["action"]["redrive_of"] == dead
    assert again["replayed"] is False
    assert shell.run("actions", "redrive", action_id) == 4


def test_a_session_is_opened_listed_followed_and_closed(shell: Shell) -> None:
    opened = shell.json("sessions", "open", "agent", "--label", "holiday")
    session_id = opened["session"]["session_id"]
    assert opened["resume_token"]
    assert shell.run("sessions", "open", "agent") == 0
    assert opened["resume_token"] not in shell.out
    assert shell.run("sessions", "list") == 0
    assert session_id in shell.out
    assert "holiday" in shell.out
    assert shell.run("sessions", "show", session_id) == 0
    assert "ada → agent" in shell.out
    closed = shell.json("sessions", "close", session_id, "--outcome", "cancelled")
    assert closed["session"]["state"] == "cancelled"
    assert shell.run("sessions", "close", session_id) == 4


def test_everything_that_an_action_carries_can_be_given(shell: Shell) -> None:
    context = {"memory": {"a": 1}, "observability": {"traceparent": "00-" + "a" * 32 + "-b-01"}}
    words = ("raw.echo", "--context", json.dumps(context), "--transaction", "t-1")
    told = shell.json(
        "actions", "submit", *words, "--expires", "60", "--timeout", "1.5", "--delegation", "ada"
    )
    action = told["action"]
    assert action["context"] == context
    assert action["transaction"] == {"transaction_id": "t-1"}
    assert action["expires_at_ms"] - action["accepted_at_ms"] == 60_000
    assert (action["timeout_ms"], action["delegation"]) == (1500, ["ada"])
    page = shell.json("actions", "list", "--transaction", "t-1")
    assert [each["action_id"] for each in page["records"]] == [action["action_id"]]
    waiting = _awaiting_approval(shell)
    page = shell.json("actions", "list", "--approval", "requested")
    assert waiting in [each["action_id"] for each in page["records"]]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("actions", "show", UNKNOWN), 2, "is unknown"),
        (("actions", "show", "act_x"), 2, "is unknown"),
        (("actions", "result", UNKNOWN), 2, "no action"),
        (("actions", "result", UNKNOWN, "--wait", "31"), 2, "query.wait"),
        (("actions", "list", "--limit", "0"), 2, "query.limit"),
        (("actions", "list", "--state", "dancing"), 2, "dancing"),
        (("actions", "list", "--cursor", "nonsense"), 2, "cursor"),
        (("actions", "submit", "no.such"), 2, "$.capability"),
        (("actions", "submit", "raw.echo", "--input", "{"), 2, "--input: not JSON"),
        (("actions", "submit", "raw.echo", "--context", '{"mind": {}}'), 2, "--context.mind"),
        (("actions", "submit", "raw.echo", "--context", '{"memory": 1}'), 2, "$.context.memory"),
        (("actions", "submit", "raw.echo", "--delegation", "bob"), 4, "ends with its caller"),
        (("actions", "submit", "raw.echo", "--callback", "https://x.example"), 2, "no secret"),
        (("actions", "submit", "raw.echo", "--mode", "streaming"), 2, "mode"),
        (("actions", "follow", UNKNOWN), 2, "no action"),
        (("sessions", "show", "ses_x"), 2, "is unknown"),
        (("actions", "list", "--key-file", "/no/such/file"), 2, "/no/such/file cannot be read"),
        (("actions", "list", "--url", "http://127.0.0.1:1"), 3, "executa serve"),
        (("actions", "list", "--url", "nonsense"), 2, "address"),
        (("actions", "list", "--key", "exk_secret"), 2, "--key"),
    ],
)
def test_what_goes_wrong_is_a_sentence_and_an_exit_code(
    shell: Shell, words: tuple[str, ...], code: int, told: str
) -> None:
    assert shell.run(*words) == code
    assert told in shell.said
    assert "Traceback" not in shell.err
    assert shell.out == ""


def test_refusals_are_json_for_programs(shell: Shell) -> None:
    told = shell.json("actions", "list", "--limit", "0", code=2)
    assert told["ok"] is False
    assert told["error"]["code"] == "OUT_OF_RANGE"
    assert told["error"]["path"] == "query.limit"
    told = shell.json("actions", "list", "--url", "http://127.0.0.1:1", code=3)
    assert told["error"]["code"] == "UNREACHABLE"
    told = shell.json("actions", "show", UNKNOWN, code=2)
    assert told["error"]["code"] == "UNKNOWN_ACTION"


def test_a_key_comes_from_the_environment_or_a_file(
    shell: Shell, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EXECUTA_API_KEY")
    assert shell.run("actions", "list") == 2
    assert "EXECUTA_API_KEY" in shell.said
    file = tmp_path / "key.txt"
    file.write_text(served.key() + "\n")
    assert shell.run("actions", "list", "--key-file", str(file)) == 0
    file.write_text("nonsense\n")
    assert shell.run("actions", "list", "--key-file", str(file)) == 4
    assert "nonsense" not in shell.err
    file.write_bytes(b"\xff")
    assert shell.run("actions", "list", "--key-file", str(file)) == 2


@pytest.mark.parametrize("columns", ["40", "80"])
def test_a_narrow_terminal_loses_no_id(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    action_id = _submitted(shell, "raw.echo")
    monkeypatch.setenv("COLUMNS", columns)
    assert shell.run("actions", "list") == 0
    flat = re.sub(r"\s", "", shell.out)
    assert all(len(line) <= int(columns) for line in shell.out.splitlines())
    assert action_id in flat
