"""`executa sessions`: resume tokens live in files, and a lost answer can be asked for again."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.served import Served
from tests.api.shell import Shell


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


def test_a_session_is_resumed_from_a_file_that_only_its_owner_reads(
    shell: Shell, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    told = shell.json("sessions", "open", "agent", "--token-file", str(file))
    assert "resume_token" not in told
    session_id = told["session"]["session_id"]
    assert file.stat().st_mode & 0o777 == 0o600
    first = file.read_text()
    shell.json("actions", "submit", "raw.echo", "--session", session_id, "--mode", "sync")
    assert shell.run("sessions", "resume", str(file), "--after", "") == 0
    assert "completed" in shell.out
    assert first.strip() not in shell.out + shell.err
    assert file.read_text() != first
    assert file.stat().st_mode & 0o777 == 0o600
    cursor = shell.out.rpartition("--after ")[2].strip()
    later = shell.json("sessions", "resume", str(file), "--after", cursor)
    assert later["replay"]["events"] == []
    assert [path.name for path in tmp_path.iterdir()] == ["token"]


def test_a_resume_whose_answer_was_lost_can_be_repeated(shell: Shell, tmp_path: Path) -> None:
    file, lost = tmp_path / "token", tmp_path / "lost"
    shell.json("sessions", "open", "agent", "--token-file", str(file))
    shutil.copy(file, lost)
    shell.json("sessions", "resume", str(file))
    shell.json("sessions", "resume", str(lost))
    assert file.read_text() == lost.read_text()


def test_a_token_that_was_spent_is_refused_and_the_file_is_left(
    shell: Shell, tmp_path: Path
) -> None:
    file, spent = tmp_path / "token", tmp_path / "spent"
    shell.json("sessions", "open", "agent", "--token-file", str(file))
    shutil.copy(file, spent)
    shell.json("sessions", "resume", str(file))
    shell.json("sessions", "resume", str(file))  # what came of the first is used now
    before = spent.read_text()
    told = shell.json("sessions", "resume", str(spent), code=2)
    assert told["error"]["code"] == "RESUME_SPENT"
    assert spent.read_text() == before


def test_a_party_without_a_token_attaches(shell: Shell, served: Served, tmp_path: Path) -> None:
    assert shell.run("sessions", "open", "agent") == 0
    assert "sessions attach" in shell.said
    session_id = shell.out.split()[0]
    file = tmp_path / "token"
    attached = shell.json("sessions", "attach", session_id, "--token-file", str(file))
    assert attached["session"]["session_id"] == session_id
    shell.json("sessions", "resume", str(file))
    assert shell.json("sessions", "attach", session_id)["resume_token"]


def test_a_replay_that_cannot_be_had_is_told_and_the_token_is_kept(
    shell: Shell, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    shell.json("sessions", "open", "agent", "--token-file", str(file))
    before = file.read_text()
    assert shell.run("sessions", "resume", str(file), "--after", "s99") == 1
    assert "CURSOR_AHEAD" in shell.said
    assert file.read_text() != before
    told = shell.json("sessions", "resume", str(file), "--after", "s99")
    assert told["replay_error"]["code"] == "CURSOR_AHEAD"


@pytest.mark.parametrize("content", [None, b"", b"\xff", b"x" * 600])
def test_a_file_without_a_token_is_a_sentence(
    shell: Shell, tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    assert shell.run("sessions", "resume", str(file)) == 2
    assert str(file) in shell.said


def test_a_token_that_cannot_be_kept_is_a_sentence(shell: Shell, tmp_path: Path) -> None:
    nowhere = tmp_path / "no" / "token"
    assert shell.run("sessions", "open", "agent", "--token-file", str(nowhere)) == 2
    assert "cannot be kept" in shell.said
    assert json.dumps("resume_token") not in shell.out
