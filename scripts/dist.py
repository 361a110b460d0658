"""Build every distribution, and try the wheels where nothing else of ours is.

``python scripts/dist.py [--tutorial]``. Wheels and source archives go to `dist/`. Each case
is an environment of its own with what one kind of user installs; what is run in it runs in an
empty folder, so that nothing is found in this checkout.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
DIST: Final = ROOT / "dist"
VERSION: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
NAMES: Final = ("protocol", "sdk", "host", "nexus_stub", "conformance")

PLUGIN: Final = '''\
from executa_sdk import Plugin

plugin = Plugin("alone", "1.0.0")


@plugin.tool
def double(n: int) -> int:
    """Twice as much."""
    return 2 * n


if __name__ == "__main__":
    plugin.run()
'''

CALL: Final = """\
from executa_sdk.testing import PluginProcess

with PluginProcess("plugin.py") as process:
    process.initialize()
    process.describe()
    assert process.invoke("double", n=21) == 42
"""

ENTRY_POINTS: Final = """\
from importlib.metadata import entry_points

for group in ("console_scripts", "executa.commands", "executa.nexus", "pytest11"):
    ours = [each for each in entry_points(group=group) if each.value.startswith("executa_")]
    assert ours, group
    for each in ours:
        each.load()
"""


class Failed(Exception):
    """A distribution is not as it should be; the words say which and how."""


@dataclass
class Environment:
    """A virtual environment with some of our wheels, and an empty folder to run things in."""

    folder: Path
    wanted: Sequence[str]
    here: Path = field(init=False)

    def __post_init__(self) -> None:
        self.here = self.folder / "here"
        self.here.mkdir(parents=True)
        venv = self.folder / "venv"
        _run("uv", "venv", "--quiet", "--python", sys.executable, str(venv))
        install = ["uv", "pip", "install", "--quiet", "--python", str(self.python)]
        install += ["--find-links", str(DIST), "--reinstall", *map(_pinned, self.wanted)]
        try:
            _run(*install)
        except Failed:
            # Without a network: what an earlier install has left in the cache may do.
            _run(*install, "--offline")

    @property
    def python(self) -> Path:
        return self.folder / "venv" / "bin" / "python"

    def installed(self) -> set[str]:
        """The names of all distributions in it."""
        told = _run("uv", "pip", "list", "--format", "json", "--python", str(self.python))
        return {each["name"] for each in json.loads(told)}

    def run(self, *words: str, code: int = 0) -> str:
        """Run a program of the environment in its empty folder; standard output is given."""
        program = self.folder / "venv" / "bin" / words[0]
        return _run(str(program), *words[1:], cwd=self.here, code=code)

    def write(self, name: str, text: str) -> None:
        (self.here / name).write_text(text, encoding="utf-8")


# --- The cases. --------------------------------------------------------------------------


def protocol_alone(folder: Path) -> None:
    """The protocol brings msgspec and nothing else."""
    env = Environment(folder, ["executa-protocol"])
    _same(env.installed(), {"executa-protocol", "msgspec"})
    env.run("python", "-m", "executa_protocol.schema", "--docs", "schemas")


def plugin_alone(folder: Path) -> None:
    """A plugin brings the protocol and msgspec, and works."""
    env = Environment(folder, ["executa-sdk"])
    _same(env.installed(), {"executa-protocol", "executa-sdk", "msgspec"})
    env.write("plugin.py", PLUGIN)
    env.write("call.py", CALL)
    env.run("python", "call.py")


def stub_alone(folder: Path) -> None:
    """The stand-in for nexus runs without a host."""
    env = Environment(folder, ["executa-nexus-stub"])
    document = json.loads(env.run("python", "-m", "executa_nexus_stub", "--openapi"))
    if document["info"]["version"] != VERSION:
        raise Failed(f"the stub's OpenAPI document has version {document['info']['version']}")


def host_without_commands(folder: Path) -> None:
    """Without the extra `cli` the command says what is missing, and the library works."""
    env = Environment(folder, ["executa-host"])
    env.run("python", "-c", "import executa_host, executa_host.client, executa_host.actions")
    env.run("executa", "--version", code=2)


def everything(folder: Path) -> None:
    """Commands, demo, a new project with its tests, and every entry point."""
    env = Environment(
        folder,
        ["executa-host[cli]", "executa-sdk[testing]", "executa-conformance", "pytest-asyncio"],
    )
    if env.run("executa", "--version").strip() != VERSION:
        raise Failed(f"executa --version does not say {VERSION}")
    env.run("python", "-c", ENTRY_POINTS)
    for command in ("check", "nexus", "new", "serve"):
        env.run("executa", command, "--help")
    env.run("executa", "new", "fresh", "--directory", ".")
    env.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider")
    totals = json.loads(env.run("executa", "demo", "--json").splitlines()[-1])
    if not totals["ok"]:
        raise Failed(f"executa demo: {totals['failures']}")


def tutorial(folder: Path) -> None:
    """The tutorial, as a newcomer follows it."""
    env = Environment(folder, ["executa-host[cli]", "executa-sdk[testing]", "pytest-asyncio"])
    sys.path.insert(0, str(ROOT))
    from tests.support.snippets import SnippetError, run_documents  # noqa: PLC0415 - from the line above

    pages = sorted((ROOT / "docs" / "tutorial").glob("*.md"))
    try:
        count = run_documents(pages, env.folder / "tutorial", python=str(env.python))
    except SnippetError as fault:
        raise Failed(str(fault)) from None
    sys.stdout.write(f"    {count} blocks\n")


CASES: Final[tuple[Callable[[Path], None], ...]] = (
    protocol_alone,
    plugin_alone,
    stub_alone,
    host_without_commands,
    everything,
)


def main() -> int:
    """The command. Returns its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tutorial", action="store_true", help="follow the tutorial, too")
    options = parser.parse_args()
    cases = (*CASES, tutorial) if options.tutorial else CASES
    try:
        build()
        with tempfile.TemporaryDirectory(prefix="executa-dist-") as place:
            for case in cases:
                started = time.monotonic()
                case(Path(place) / case.__name__)
                name = case.__name__.replace("_", " ")
                sys.stdout.write(f"{name}: fine, {time.monotonic() - started:.1f} s\n")
                sys.stdout.flush()
    except Failed as fault:
        sys.stderr.write(f"{fault}\n")
        return 1
    return 0


def build() -> None:
    """Build into an empty `dist/`, and look into every wheel."""
    shutil.rmtree(DIST, ignore_errors=True)
    _run("uv", "build", "--quiet", "--all-packages", "--out-dir", str(DIST), cwd=ROOT)
    for name in NAMES:
        wheel = DIST / f"executa_{name}-{VERSION}-py3-none-any.whl"
        if not wheel.is_file():
            raise Failed(f"{wheel.name} was not built")
        files = zipfile.ZipFile(wheel).namelist()
        for needed in ("/py.typed", "/licenses/LICENSE", "/METADATA"):
            if not any(file.endswith(needed) for file in files):
                raise Failed(f"{wheel.name} has no {needed[1:]}")
        sys.stdout.write(f"{wheel.name}: {len(files)} files, {wheel.stat().st_size // 1024} KiB\n")


def _pinned(requirement: str) -> str:
    """Ours by the version that was just built: an index may have another one."""
    return f"{requirement}=={VERSION}" if requirement.startswith("executa-") else requirement


def _same(found: set[str], wanted: set[str]) -> None:
    if found != wanted:
        raise Failed(f"installed are {sorted(found)}, and should be {sorted(wanted)}")


def _run(*words: str, cwd: Path | None = None, code: int = 0) -> str:
    """Run a command outside of whatever environment this one is in."""
    hidden = ("EXECUTA_", "PYTHON", "VIRTUAL_ENV", "COV", "PYTEST")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    program = os.environ.get("UV", "uv") if words[0] == "uv" else words[0]
    done = subprocess.run(  # noqa: S603 - commands of this file
        [program, *words[1:]],
        cwd=cwd,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode != code or "Traceback" in done.stderr:
        raise Failed(f"{' '.join(words)}\nexited {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
