"""`executa describe`, `invoke`, `health` and `why`: output, exit codes, and words for bad input."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.shell import NOTEBOOK, RAW, executa, executa_json, said


def test_an_invoke_prints_one_json_object() -> None:
    code, told = executa_json("invoke", "recall", NOTEBOOK, "--args", '{"query": "x"}')
    assert code == 0
    assert told["ok"] is True
    assert told["data"] == []
    assert told["ledger"]["storage_calls"] == 1


def test_a_command_after_two_dashes_is_run_as_it_is() -> None:
    code, told = executa_json("invoke", "echo", "--args", '{"value": {"n": 1}}', *RAW, "--banner")
    assert (code, told["data"]) == (0, {"value": {"n": 1}})


def test_arguments_come_from_stdin_and_from_a_file(tmp_path: Path) -> None:
    text = '{"value": {"from": "elsewhere"}}'
    file = tmp_path / "args.json"
    file.write_text(text, encoding="utf-8")
    for source, stdin in (("-", text), (f"@{file}", "")):
        done = executa("invoke", "echo", "--args", source, "--json", *RAW, stdin=stdin)
        assert json.loads(done.stdout)["data"]["value"] == {"from": "elsewhere"}


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("invoke", "recal", NOTEBOOK), 2, "Did you mean recall?"),
        (("invoke", "recall", NOTEBOOK, "--args", '{"query": x}'), 2, "^"),
        (("invoke", "recall", NOTEBOOK, "--args", "[1]"), 2, "expected an object"),
        (("invoke", "recall", NOTEBOOK, "--args", "@/no/such"), 2, "/no/such"),
        (("invoke", "recall", NOTEBOOK, "--args", '{"qery": "x"}'), 2, "qery"),
        (("invoke", "remember", NOTEBOOK, "--args", '{"text": ""}'), 1, "nothing to remember"),
        (("describe", "/no/such/folder"), 2, "no folder, no file and no command"),
        (("describe", "docs"), 2, "no plugin found"),
        (("describe", "--", sys.executable, "-c", "import sys; sys.exit('no key')"), 3, "no key"),
        (("invoke", "die", *RAW), 3, "exited with code 3"),
        (("invoke", "hang", "--timeout", "1", *RAW), 1, "longer than its limit"),
        (("why", "no/method", NOTEBOOK), 2, "no method that a plugin can call"),
    ],
)
def test_what_goes_wrong_is_a_sentence_and_an_exit_code(
    words: tuple[str, ...], code: int, told: str
) -> None:
    done = executa(*words)
    assert done.returncode == code, done.stderr
    assert told in said(done)
    assert done.stdout == ""


def test_a_fault_is_one_json_object_for_a_program() -> None:
    code, told = executa_json("invoke", "recal", NOTEBOOK)
    assert code == 2
    assert told["ok"] is False
    assert told["error"]["data"]["available_tools"] == ["remember", "recall"]


def test_describe_shows_the_tools_and_what_is_declared() -> None:
    done = executa("describe", "examples/brief")
    assert done.returncode == 0
    for words in ("brief 0.1.0", "llm.agent.auto", "gist", "path: string"):
        assert words in done.stdout
    code, told = executa_json("describe", "examples/brief")
    assert code == 0
    assert [tool["name"] for tool in told["manifest"]["tools"]] == ["brief", "gist", "overreach"]


def test_health_says_ready() -> None:
    code, told = executa_json("health", NOTEBOOK)
    assert (code, told["health"]["status"]) == (0, "ready")


def test_why_names_the_step_that_refuses_and_what_would_unlock_it() -> None:
    code, told = executa_json("why", "agent/session.run", NOTEBOOK)
    assert code == 4
    steps = {step["step"]: step for step in told["steps"]}
    assert steps["negotiated"]["passed"] is True
    assert steps["manifest"]["passed"] is False
    assert steps["manifest"]["refusal"]["needs"] == ["llm.sample", "llm.agent.auto"]
    assert executa("why", "storage/get", NOTEBOOK).returncode == 0
