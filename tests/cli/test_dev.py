"""`executa dev` with lines from a pipe: what each gives, on which stream, and the exit code."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from executa_host.cli import main
from tests.cli.shell import NOTEBOOK, ROOT, executa, said

SLOW = str(Path(__file__).with_name("slow_plugin.py"))


def _dev(lines: str, *words: str, plugin: str = NOTEBOOK) -> "subprocess.CompletedProcess[str]":
    return executa("dev", *words, "--no-watch", *([plugin] if plugin else []), stdin=lines)


def test_lines_of_a_pipe_are_done_one_after_the_other() -> None:
    done = _dev('# a comment\n\nremember text=\'buy tea\'\nrecall query=tea\nrecall {"query":"x"}')
    assert done.returncode == 0
    assert "declares aps.kv" in done.stdout
    assert done.stdout.endswith('[\n  "buy tea"\n]\n[]\n')
    assert "storage/set served" in done.stderr


def test_for_a_program_each_line_gives_one_object() -> None:
    lines = (
        "recall query=tea\nhealth\nwhy storage/get\nstorage ls\ngrants\nstatus\nhelp\nnonsense\n"
    )
    done = _dev(lines, "--json")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each.get("event") for each in told[:1]] == ["ready"]
    assert [each["ok"] for each in told[1:]] == [True] * 7 + [False]
    assert told[1]["data"] == []
    assert told[3]["steps"][3] == {"step": "grant", "passed": True, "detail": "", "refusal": None}
    assert told[5]["grants"]["agent"] is True
    assert "nonsense" in told[8]["error"]["message"]
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ("recall query=x\nremember text=''\nrecal query=x\n", 1),
        ("recal query=x\nremember text=''\n", 2),
        ("why agent/session.run\nrecal query=x\n", 4),
        ("recall query=x\nquit\nnonsense\n", 0),
    ],
)
def test_the_exit_code_is_that_of_the_first_line_that_failed(lines: str, code: int) -> None:
    assert _dev(lines).returncode == code


def test_a_plugin_that_dies_of_a_call_is_broken_and_started_again_by_the_next() -> None:
    done = _dev("vanish\ntyped count=1\n", plugin=SLOW)
    assert done.returncode == 3
    assert '"count": 1' in done.stdout
    assert "exited with code 9" in done.stderr


WRONG = {
    "recal query=x": "Did you mean recall?",
    "invoke recal query=x": "Did you mean recall?",
    "invoke": "which tool?",
    "recall qery=x": "Did you mean query?",
    "recall x": "write name=value",
    "recall query=x query=y": "given twice",
    "recall query='x": "no closing quotation",
    'recall {"query": x}': '\n{"query": x}\n          ^',
    "recall [1]": "expected an object",
    "why sampling/create": "sampling/createMessage",
    "storage lss": "Did you mean ls?",
    "storage get": "storage get [user|tool] KEY",
    "storage get nothing": "there is no key 'nothing' in scope user or tool",
    "storage rm tool nothing": "there is no key 'nothing' in scope tool",
}


def test_a_line_that_is_wrong_says_what_would_be_right() -> None:
    done = _dev("\n".join(WRONG), "--json")
    _, *told = [json.loads(line) for line in done.stdout.splitlines()]
    for line, answer, expected in zip(WRONG, told, WRONG.values(), strict=True):
        assert answer["ok"] is False
        assert expected in answer["error"]["message"], line


def test_words_are_read_by_the_types_of_the_manifest() -> None:
    line = "typed count=3 ratio=0.5 loud=yes mode=slow tags:='[\"a b\"]'"
    done = _dev(f"{line}\ntyped count=x\ntyped count=1 loud=maybe\n", "--json", plugin=SLOW)
    _, told, *wrong = [json.loads(each) for each in done.stdout.splitlines()]
    assert told["data"] == {"count": 3, "ratio": 0.5, "loud": True, "mode": "slow", "tags": ["a b"]}
    assert "count: expected an integer" in wrong[0]["error"]["message"]
    assert "loud: expected true or false" in wrong[1]["error"]["message"]


def test_a_call_that_failed_is_held_against_the_manifest() -> None:
    done = _dev("recall {}\n")
    assert "the manifest says: $.query: required (recall query=STRING)" in said(done)


def test_what_is_odd_about_a_plugin_is_told_as_it_is_seen(tmp_path: Path) -> None:
    record = tmp_path / "t.jsonl"
    faulty = str(Path(__file__).with_name("faulty_plugin.py"))
    words = ("--no-watch", "--record", str(record), "--", sys.executable, faulty, "wrapped")
    done = executa("dev", *words, stdin="echo text=x\n")
    assert done.returncode == 0
    assert "MANI-001" in said(done)
    assert "faulty_plugin.py wrapped" in said(done)
    assert '"method":"describe"' in record.read_text()


def test_what_the_plugin_writes_to_stderr_is_shown() -> None:
    assert "so much work" in _dev("grumble text='so much work'\n", plugin=SLOW).stderr


def test_storage_is_looked_at_and_changed_past_the_plugin(tmp_path: Path) -> None:
    kept = ("--storage", str(tmp_path / "kept"))
    done = _dev("remember text=tea\nstorage ls\nstorage get notes\nstorage get user notes\n", *kept)
    assert "user notes" in done.stdout
    assert done.stdout.count('"tea"') == 3
    done = _dev("recall query=tea\nstorage rm notes\nrecall query=tea\nstorage\n", *kept)
    assert done.stdout.endswith('[\n  "tea"\n]\nremoved from scope user\n[]\nnothing is stored\n')


def test_what_the_options_take_away_is_refused_and_explained() -> None:
    lines = "storage ls\nwhy storage/get\ngrants\n"
    done = _dev(lines, "--storage", "off", "--grant", "tools=a.b", "--no-agent")
    assert done.returncode == 4
    assert "storage is off" in done.stderr
    assert "needs grant: storage" in done.stdout
    assert "agent     not allowed" in done.stdout
    assert "tools for agent runs: a.b" in done.stdout


def test_a_fixture_answers_for_the_model(tmp_path: Path) -> None:
    file = tmp_path / "mock.jsonl"
    answer = {"role": "assistant", "content": {"type": "text", "text": "Canned."}, "model": "m"}
    entry = {"ns": "sampling", "method": "createMessage", "result": answer}
    file.write_text(json.dumps(entry) + "\n")
    done = _dev("gist text='A long text.'\n", "--fixture", str(file), plugin="examples/brief")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Canned.")


def test_sampling_that_is_not_allowed_fails_as_at_a_user_who_does_not_allow_it() -> None:
    done = _dev("why sampling/createMessage\n", "--no-sampling", plugin="examples/brief")
    assert done.returncode == 4
    assert "needs grant: sampling" in done.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--nexus", "nowhere"), "neither direct nor http nor an address"),
        (("--nexus", "http://127.0.0.1:9", "--faults", "seed=1"), "--faults is for the stub"),
        (("--model", "gpt"), "neither offline nor NAME@URL"),
        (("--fixture", "/no/such"), "is no file"),
        (("--grant", "everything"), "--grant: 'everything' is not sampling=off"),
        (("--credential", "NO_SUCH_VARIABLE"), "NO_SUCH_VARIABLE is not set"),
        (("--credential", "KEY=value"), "a command line can be read by others"),
        (("--faults", "gremlins"), "gremlins"),
    ],
)
def test_an_option_that_is_wrong_says_what_would_be_right(
    words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["dev", *words, str(ROOT / NOTEBOOK)])
    said_there = capsys.readouterr()
    assert (end.value.code, said_there.out) == (2, "")
    assert told in " ".join(said_there.err.split())


def test_a_nexus_of_its_own_or_at_an_address_is_used() -> None:
    done = _dev("remember text=tea\nrecall query=tea\n", "--nexus", "http", "--grant", "agent=off")
    assert (done.returncode, '"tea"' in done.stdout) == (0, True)
    done = _dev("recall query=tea\n", "--nexus", "http://127.0.0.1:9")
    assert done.returncode in (1, 3, 4)
    assert "nexus" in said(done)


def test_a_plugin_that_does_not_start_is_told_with_its_last_words() -> None:
    done = executa(
        "dev", "--", sys.executable, "-c", "import sys; sys.exit('no licence')", stdin=""
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert "no licence" in said(done)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_what_waits_for_a_pipe(number: int) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "executa_host.cli", "dev", NOTEBOOK, "--json"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdin
    assert child.stdout
    try:
        child.stdin.write("health\n")
        child.stdin.flush()
        assert json.loads(child.stdout.readline())["event"] == "ready"
        assert json.loads(child.stdout.readline())["ok"] is True
        child.send_signal(number)
        _, errors = child.communicate(timeout=60)
    finally:
        child.kill()
        child.communicate()
    assert child.returncode == 130
    assert "Traceback" not in errors


def test_it_ends_when_nobody_reads_what_it_says() -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "executa_host.cli", "dev", NOTEBOOK, "--json"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdin
    assert child.stdout
    assert child.stderr
    try:
        assert json.loads(child.stdout.readline())["event"] == "ready"
        child.stdout.close()
        child.stdin.write("health\n")
        child.stdin.flush()
        assert child.wait(60) == 0
        assert child.stderr.read() == ""
    finally:
        child.kill()
        child.stdin.close()
        child.stderr.close()
        child.wait()


def test_standard_input_may_be_a_file_or_nothing(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text("recall query=x")
    for source, expected in ((file, "[]"), (Path("/dev/null"), "")):
        with source.open() as stdin:
            done = subprocess.run(
                [sys.executable, "-m", "executa_host.cli", "dev", NOTEBOOK],
                cwd=ROOT,
                stdin=stdin,
                capture_output=True,
                text=True,
                timeout=90,
                check=True,
            )
        assert done.stdout.endswith(expected + "\n" * bool(expected)) or not expected
