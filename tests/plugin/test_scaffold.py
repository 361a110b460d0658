"""`executa new` writes a plugin project that passes its own test."""

import os
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from executa_protocol.errors import UsageError
from executa_sdk.scaffold import FILES, new


def test_the_project_passes_its_own_test(tmp_path: Path) -> None:
    folder = new("tea-notes", tmp_path / "tea")
    # The workers of a run like this one are no business of the project's own.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_the_project_is_named_and_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = new("notes")

    assert folder == Path("notes")
    assert {path.name for path in folder.iterdir()} == set(FILES)
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == "notes"
    assert project["dependencies"] == ["executa-sdk"]
    for path in folder.iterdir():
        text = path.read_text(encoding="utf-8")
        assert "{{" not in text


@pytest.mark.parametrize("name", ["", "two words", "-a", "a--b", "a/b", "9a", "ü"])
def test_a_name_that_would_not_work_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="plugin name"):
        new(name, tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_nothing_is_ever_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious", encoding="utf-8")
    with pytest.raises(UsageError, match="not an empty folder"):
        new("notes", tmp_path)
    with pytest.raises(UsageError, match="not an empty folder"):
        new("notes", tmp_path / "mine.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_the_command_is_found_by_its_entry_point() -> None:
    (found,) = [point for point in entry_points(group="executa.commands") if point.name == "new"]

    assert found.load() is new
