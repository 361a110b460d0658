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


FAULTY = "tests/cli/faulty_plugin.py"


def test_describe_says_what_is_wrong_with_a_manifest_that_it_could_read() -> None:
    plugin = ("--", sys.executable, FAULTY, "input_schema")
    done = executa("describe", *plugin)
    assert done.returncode == 0
    assert "MANI-004: tools[0].input_schema: ignored" in said(done)
    _, told = executa_json("describe", *plugin)
    (finding,) = told["findings"]
    assert finding["kind"] == "tolerated"
    done = executa("describe", "--", sys.executable, FAULTY, "banner")
    assert "not a message on stdout: Faulty 1.0 is ready!" in said(done)
    done = executa("describe", "--", sys.executable, FAULTY, "no_tools")
    assert (done.returncode, done.stdout) == (3, "")
    assert "tools: required" in said(done)


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


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("describe", "/no/such/folder"), 2, "no folder, no file and no command"),
        (("invoke", "recall", NOTEBOOK, "--args", "{"), 2, "--args: not JSON"),
        (("health", NOTEBOOK, "--timeout", "0"), 2, "--timeout"),
        (("why", "sampling/creatMessage", NOTEBOOK), 2, "Did you mean sampling/createMessage?"),
        (("invoke", "recall", NOTEBOOK, "--credential", "NO_SUCH"), 2, "NO_SUCH is not set"),
        (("invoke", "recall", NOTEBOOK, "--nexus", "http://127.0.0.1:9"), 4, "nexus"),
        (("describe", "--timeout", "0.01", NOTEBOOK), 3, "within 0.01 s"),
    ],
)
def test_for_a_program_every_fault_is_one_object(
    words: tuple[str, ...], code: int, told: str
) -> None:
    found, document = executa_json(*words)
    assert (found, document["ok"]) == (code, False), document
    assert told in document["error"]["message"]


def test_what_the_manifest_says_stands_below_a_call_that_failed() -> None:
    done = executa("invoke", "recall", NOTEBOOK, "--args", '{"qury": "x"}')
    assert done.returncode == 2
    assert "the manifest says: $.query: required (recall query=STRING)" in said(done)
    assert "recall has no parameter 'qury'; it takes query. Did you mean query?" in said(done)


def test_progress_goes_to_stderr_line_by_line_where_there_is_no_terminal() -> None:
    done = executa("invoke", "progress", "--args", '{"count": 2}', *RAW)
    assert done.returncode == 0
    assert done.stderr.count("…") == 2
    silent = executa("invoke", "progress", "--args", '{"count": 2}', "--json", *RAW)
    assert silent.stderr == ""


def test_why_asks_nexus_for_the_grant_and_the_token() -> None:
    code, told = executa_json("why", "storage/get", NOTEBOOK, "--storage", "off")
    assert code == 4
    steps = {step["step"]: step for step in told["steps"]}
    assert steps["grant"]["refusal"]["needs"] == ["grant: storage"]
    assert steps["token"]["passed"] is False


CREDENTIAL = json.dumps({"credentials": [{"name": "CITY_KEY", "display_name": "City"}]})


def test_a_credential_comes_from_the_environment_or_a_file_and_is_hidden_from_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "key"
    file.write_text("violet\n")
    plugin = (*RAW, "--manifest", CREDENTIAL)
    missing = executa("invoke", "whoami", *plugin)
    assert missing.returncode == 2
    assert "needs the credential CITY_KEY" in said(missing)
    for source, env in (("CITY_KEY", {"CITY_KEY": "violet"}), (f"CITY_KEY=@{file}", {})):
        done = executa("invoke", "whoami", "--json", "--credential", source, *plugin, env=env)
        seen = json.loads(done.stdout)["data"]
        assert seen["params"]["context"]["credentials"] == {"CITY_KEY": "violet"}
        assert "CITY_KEY" not in seen["env"]


@pytest.mark.parametrize("columns", ["40", "20"])
def test_a_narrow_terminal_shows_all_of_it(columns: str) -> None:
    for words in (("describe", "examples/brief"), ("why", "storage/get", NOTEBOOK)):
        done = executa(*words, env={"COLUMNS": columns})
        assert done.returncode == 0
        assert max(map(len, done.stdout.splitlines())) <= int(columns)
        assert "…" not in done.stdout


def test_colour_is_for_terminals_and_for_those_who_want_it() -> None:
    plain = executa("describe", NOTEBOOK)
    assert "\x1b" not in plain.stdout
    forced = executa("describe", NOTEBOOK, env={"FORCE_COLOR": "1"})
    assert "\x1b[1;36m" in forced.stdout
    without = executa("describe", NOTEBOOK, env={"FORCE_COLOR": "1", "NO_COLOR": "1"})
    assert "36m" not in without.stdout
