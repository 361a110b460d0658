"""The command line: what is listed, where JSON goes, and exit codes."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import suites
from benchmarks.arguments import spelled_out
from benchmarks.model import Report, decode, encode
from benchmarks.scale import Scale
from tests.benchmarks.samples import document, report


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["run", "store", "--json"], ["run", "store", "--json=-"]),
        (["run", "--json", "store"], ["run", "--json=-", "store"]),
        (["run", "--json", "--quick"], ["run", "--json=-", "--quick"]),
        (["run", "--quick", "--json", "out.json"], ["run", "--quick", "--json=out.json"]),
        (["run", "--json", "-"], ["run", "--json=-"]),
        (["run", "--json=store"], ["run", "--json=store"]),
        (["soak", "--json"], ["soak", "--json"]),
        ([], []),
    ],
)
def test_json_goes_to_a_file_only_if_one_is_named(given: list[str], meant: list[str]) -> None:
    assert spelled_out(given) == meant


def test_every_suite_is_listed_with_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(suites.NAMES)
    assert all(len(line.split()) > 3 for line in lines)


def test_a_suite_that_there_is_not_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["run", "nothing"]) == 2
    assert "no suite is named 'nothing'; there are framing" in capsys.readouterr().err


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quick runs are tiny ones."""
    monkeypatch.setattr(Scale, "quick", Scale.tiny)


@pytest.mark.usefixtures("tiny")
def test_without_a_file_standard_output_is_json_alone(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    assert command.main(["run", "frames", "--quick", "--json"]) == 0
    out, err = capfdbinary.readouterr()
    found = decode(out)
    assert [each.suite for each in found.reports] == ["frames"]
    assert found.quick
    assert b"frames: medians" in err


@pytest.mark.usefixtures("tiny")
def test_with_a_file_the_tables_are_on_standard_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out.json"
    assert command.main(["run", "codec", "--quick", "--json", str(target)]) == 0
    assert decode(target.read_bytes()).goals
    out = capsys.readouterr().out
    assert "goals" in out
    assert "an agent run of 4,096 frames" in out


def test_two_runs_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / name for name in ("a.json", "b.json")]
    for path in paths:
        path.write_bytes(encode(document(report())))
    assert command.main(["compare", *map(str, paths), "--all"]) == 0
    assert "4 of 4 measures are shown" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["compare", "FILE", "FILE"], ["report", "FILE"]])
@pytest.mark.parametrize(("content", "said"), [(None, "No such file"), (b"{}", "no JSON of a run")])
def test_a_file_that_cannot_be_read_is_told_in_a_line(
    words: list[str],
    content: bytes | None,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "run.json"
    if content is not None:
        path.write_bytes(content)
    assert command.main([str(path) if word == "FILE" else word for word in words]) == 2
    assert f"{path}: " in (err := capsys.readouterr().err)
    assert said in err


def test_a_report_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    figures, page = tmp_path / "run.json", tmp_path / "page.md"
    figures.write_bytes(encode(document(report())))
    assert command.main(["report", str(figures), "--output", str(page)]) == 0
    assert page.read_text(encoding="utf-8").startswith("# Benchmarks\n")


def test_the_module_runs_from_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "list"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "roundtrip" in done.stdout


async def _fails(scale: Scale) -> Report:
    raise OSError("the disk is full")


def test_a_suite_that_fails_is_void_and_the_others_are_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Scale, "quick", Scale.tiny)
    load = suites.load

    def loaded(name: str) -> suites.Suite:
        return _fails if name == "codec" else load(name)

    monkeypatch.setattr(suites, "load", loaded)
    target = tmp_path / "out.json"
    assert command.main(["run", "codec", "frames", "--quick", "--json", str(target)]) == 1
    failed, measured = decode(target.read_bytes()).reports
    assert failed.rows[0].void == "OSError: the disk is full"
    assert not measured.voided
    out, err = capsys.readouterr()
    assert "void: OSError: the disk is full" in out
    assert "1 of 2: codec" in err


def test_an_interrupt_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "execute", interrupted)
    assert command.main(["run", "codec"]) == 130
    assert capsys.readouterr().err == "interrupted: no figures were kept\n"
