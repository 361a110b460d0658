"""How the project starts on a machine that has nothing of it: Makefile, scripts/uv and .ci/run.

The scripts run here against stand-ins for uv, Python and make on a PATH that holds nothing else of
that kind, so that no test installs anything. The real install is CI's first step on a new machine.
"""

import os
import re
import shutil
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.sources import ROOT

# What the scripts may count on wherever there is a POSIX shell, and make for the Makefile.
_TOOLS = ("awk", "bash", "cat", "chmod", "cp", "dirname", "head", "mkdir", "rm", "sed", "sh")

_UV = """\
#!/bin/sh
case $1 in --version) echo "uv {version} (stand-in)" ;; *) printf '<%s>' "{version}" "$@" ;; esac
"""

# Knows just what scripts/uv asks of a Python. `-m venv` and `-m pip` work if the variable says so.
_PYTHON = """\
#!/bin/sh
case $*  in
*version_info*) echo {version} ;;
-c*) exec {real} "$@" ;;
"-m venv "*)
    [ -n "${{VENV_WORKS:-}}" ] || {{ echo "ensurepip is not available" >&2; exit 1; }}
    mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
"-m pip install --quiet --target "*)
    [ -n "${{TARGET_WORKS:-}}" ] || {{ echo "no index within reach" >&2; exit 1; }}
    mkdir -p "$6/bin" && cp "$UV_WHEEL" "$6/bin/uv" ;;
"-m pip install --quiet uv>="*)
    cp "$UV_WHEEL" "${{0%/*}}/uv" ;;
*) exit 1 ;;
esac
"""


def _script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


class Machine:
    """A checkout with scripts/uv in it and a PATH of our making."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.checkout = folder / "a checkout"
        self.env = {"PATH": str(self.bin), "UV_WHEEL": str(_script(folder / "wheel", _uv("99.0")))}
        self.bin.mkdir()
        for tool in _TOOLS:
            found = shutil.which(tool)
            assert found, f"these tests need {tool} on PATH"
            (self.bin / tool).symlink_to(found)
        for name in ("scripts/uv", ".ci/run", "pyproject.toml"):
            copy = self.checkout / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy)

    def put_uv(self, version: str) -> Path:
        return _script(self.bin / "uv", _uv(version))

    def put_python(self, version: str = "3.12", name: str = "python3") -> None:
        _script(self.bin / name, _PYTHON.format(version=version, real=sys.executable))

    def uv(self, *arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
        return self.run("scripts/uv", *arguments, **env)

    def run(self, *command: str, **env: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [self.checkout / command[0], *command[1:]],
            cwd=self.checkout.parent,
            env=self.env | env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def tools(self) -> list[str]:
        return sorted(path.name for path in (self.checkout / ".tools").glob("*"))


def _uv(version: str) -> str:
    return _UV.format(version=version)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


# --- Makefile. ------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [[], ["help"]], ids=["make", "make help"])
def test_make_help_names_every_target_and_is_the_default(arguments: list[str]) -> None:
    targets = re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)

    done = subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert re.findall(r"^  make (\S+) +\S", done.stdout, re.MULTILINE) == targets
    assert {"help", "demo", "test", "lint", "format", "types", "bench"} <= set(targets)


def test_every_target_is_phony() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)

    assert phony
    assert phony[1].split() == re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE)


# --- scripts/uv finds uv. -------------------------------------------------------------------------


def test_a_new_enough_uv_on_path_is_run_silently_with_the_arguments_as_they_are(
    machine: Machine,
) -> None:
    machine.put_uv("5.1.0")

    done = machine.uv("run", "a b", "")

    assert (done.returncode, done.stdout, done.stderr) == (0, "<5.1.0><run><a b><>", "")
    assert machine.tools() == []


def test_uv_in_the_environment_goes_before_uv_on_path(machine: Machine, tmp_path: Path) -> None:
    machine.put_uv("5.1.0")
    other = _script(tmp_path / "other", _uv("6.0"))

    assert machine.uv("run", UV=str(other)).stdout == "<6.0><run>"


@pytest.mark.parametrize(
    ("version", "sentence"),
    [(None, "does not run; set UV to a working uv"), ("0.1.2", "upgrade it, or unset UV")],
)
def test_an_unusable_uv_in_the_environment_is_refused_with_what_to_do(
    machine: Machine, tmp_path: Path, version: str | None, sentence: str
) -> None:
    named = tmp_path / "named"
    if version:
        _script(named, _uv(version))

    done = machine.uv("run", UV=str(named))

    assert done.returncode == 1
    assert sentence in done.stderr


def test_its_own_folder_on_path_does_not_make_it_call_itself(machine: Machine) -> None:
    machine.put_python()

    done = machine.uv("run", PATH=f"{machine.checkout}/scripts:{machine.bin}", VENV_WORKS="1")

    assert done.stdout == "<99.0><run>"


# --- scripts/uv installs uv. ----------------------------------------------------------------------


def test_a_missing_uv_is_installed_in_the_checkout_and_found_there_again(machine: Machine) -> None:
    machine.put_python()

    first = machine.uv("run", VENV_WORKS="1")
    (machine.bin / "python3").unlink()
    second = machine.uv("run")

    assert (first.returncode, first.stdout) == (0, "<99.0><run>")
    assert "installing uv >=" in first.stderr
    assert (second.returncode, second.stdout, second.stderr) == (0, "<99.0><run>", "")
    assert machine.tools() == ["uv"]


def test_where_venv_is_missing_pip_installs_into_a_folder(machine: Machine) -> None:
    machine.put_python()

    done = machine.uv("run", TARGET_WORKS="1")

    assert (done.returncode, done.stdout) == (0, "<99.0><run>")
    assert "pip install --target" in done.stderr
    assert machine.tools() == ["uv"]


@pytest.mark.parametrize("place", ["on PATH", "in .tools"])
def test_a_uv_older_than_the_project_asks_for_is_replaced(machine: Machine, place: str) -> None:
    machine.put_python()
    if place == "on PATH":
        machine.put_uv("0.1.2")
    else:
        (machine.checkout / ".tools" / "uv" / "bin").mkdir(parents=True)
        _script(machine.checkout / ".tools" / "uv" / "bin" / "uv", _uv("0.1.2"))

    done = machine.uv("run", VENV_WORKS="1")

    assert (done.returncode, done.stdout) == (0, "<99.0><run>")
    assert ("uv on PATH is 0.1.2, this project needs" in done.stderr) == (place == "on PATH")
    assert machine.tools() == ["uv"]


def test_a_python_too_old_is_named_and_a_newer_one_beside_it_is_used(machine: Machine) -> None:
    machine.put_python("3.9")

    refused = machine.uv("run", VENV_WORKS="1")
    machine.put_python("3.11", name="python3.11")
    accepted = machine.uv("run", VENV_WORKS="1")

    assert refused.returncode == 1
    assert "needs Python 3.11 or newer, but on PATH python3 is 3.9; install it" in refused.stderr
    assert accepted.stdout == "<99.0><run>"


def test_without_any_python_it_says_what_to_install(machine: Machine) -> None:
    done = machine.uv("run")

    assert done.returncode == 1
    assert "but on PATH there is no python3; install it" in done.stderr


def test_when_nothing_works_it_shows_why_says_what_to_do_and_leaves_nothing(
    machine: Machine,
) -> None:
    machine.put_python()

    done = machine.uv("run")

    assert (done.returncode, done.stdout) == (1, "")
    assert "| ensurepip is not available" in done.stderr
    assert "| no index within reach" in done.stderr
    assert "install python3-venv and python3-pip" in done.stderr.splitlines()[-1]
    assert machine.tools() == []


def test_installs_at_the_same_time_end_in_one_working_uv(machine: Machine) -> None:
    machine.put_python()

    with ThreadPoolExecutor(4) as pool:
        started = [pool.submit(machine.uv, "run", VENV_WORKS="1") for _ in range(4)]
        runs = [future.result() for future in started]

    assert [(done.returncode, done.stdout) for done in runs] == [(0, "<99.0><run>")] * 4
    assert machine.tools() == ["uv"]


# --- .ci/run. -------------------------------------------------------------------------------------

_MAKE = """\
#!/bin/sh
for target; do :; done
echo "$target ran, CI=$CI"
[ "$target" != test ] || echo "=== 3 passed in 0.1s ==="
case " $FAILING " in
*" $target "*)
    echo "make: *** [Makefile:1: $target] Error 1" >&2
    exit 2 ;;
esac
"""


@pytest.mark.parametrize(
    "failing", ["", "lint", "types", "docs", "dist", "fuzz-short", "test", "lint test"]
)
def test_ci_runs_every_step_ends_with_pytests_line_and_fails_if_any_step_did(
    machine: Machine, failing: str
) -> None:
    machine.put_uv("5.1.0")
    _script(machine.bin / "make", _MAKE)

    done = machine.run(".ci/run", FAILING=failing)

    assert re.findall(r"^([\w-]+) ran, CI=true", done.stdout, re.MULTILINE) == [
        "lint",
        "types",
        "docs",
        "dist",
        "fuzz-short",
        "test",
    ]
    assert done.stdout.splitlines()[-1] == "=== 3 passed in 0.1s ==="
    assert done.stderr == ""
    assert (done.returncode != 0) == bool(failing)
    assert "node: not found" in done.stdout


@pytest.mark.parametrize("name", ["scripts/uv", ".ci/run"])
def test_scripts_are_executable(name: str) -> None:
    assert os.access(ROOT / name, os.X_OK)
