"""Fenced code in Markdown that is run as it stands: the READMEs and `docs/`.

The words behind the language decide what becomes of a block:

- `run`: it is run and must exit 0 within a minute. `python` and `sh` can be run.
- `serve` (`sh`): it is started and runs beside the blocks that follow, until the document ends.
  The next block waits for its first line.
- `title=NAME`: it is first written to NAME. `python run title=NAME` is both.
- `output`: what the block before it printed. `...` stands for anything within a line, and for
  any lines where it stands alone on one.
- `shown`: it is not run here, and the text around it says why or where it is.

All blocks of a document share a folder, in which they run, in the order in which they stand.
What a shell exports, and where it goes, the next one finds. Of `PORTS` each document gets a
free one of its own, so that documents run beside each other.
"""

import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

RUN_SECONDS: Final = 60.0
START_SECONDS: Final = 30.0
STOP_SECONDS: Final = 10.0

LANGUAGES: Final = ("python", "sh")
"""What is run or says that it is not."""

PORTS: Final = ("8717", "8460")
"""The ports of the API and of the stand-in for nexus, as the documents write them."""

_FENCE: Final = re.compile(r"(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)")

_SHELL: Final = """\
set -eu
if [ -f "$SNIPPET_STATE" ]; then . "$SNIPPET_STATE"; cd "$SNIPPET_FOLDER"; fi
{code}
export SNIPPET_FOLDER="$PWD"
export -p > "$SNIPPET_STATE"
"""


class SnippetError(AssertionError):
    """A block did not do what its document says."""


@dataclass(frozen=True)
class Block:
    """One fenced block; `line` is that of its first line of code."""

    document: Path
    line: int
    info: tuple[str, ...]
    code: str

    @property
    def language(self) -> str:
        return self.info[0] if self.info else ""

    @property
    def runs(self) -> bool:
        return self.language in LANGUAGES and ("run" in self.info or "serve" in self.info)

    @property
    def title(self) -> str | None:
        titles = [word.partition("=")[2] for word in self.info if word.startswith("title=")]
        return titles[0] if titles else None

    @property
    def settled(self) -> bool:
        """Whether it is said what becomes of it."""
        return self.runs or self.title is not None or "shown" in self.info

    def __str__(self) -> str:
        return f"{self.document.name}:{self.line}"


def blocks_of(document: Path) -> list[Block]:
    """Every fenced block of a document, in order. Raises `SnippetError` for one without end."""
    found: list[Block] = []
    opening: re.Match[str] | None = None
    start = 0
    code: list[str] = []
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), start=1):
        fence = _FENCE.fullmatch(line)
        if opening is None:
            if fence:
                opening, start, code = fence, number + 1, []
        elif fence and fence["fence"].startswith(opening["fence"]) and not fence["info"].strip():
            info = tuple(opening["info"].split())
            found.append(Block(document, start, info, "\n".join([*code, ""])))
            opening = None
        else:
            code.append(line.removeprefix(opening["indent"]))
    if opening is not None:
        raise SnippetError(f"{document}:{start - 1}: this block is never closed")
    return found


def run_documents(
    documents: Sequence[Path],
    folder: Path,
    *,
    python: str = sys.executable,
    environment: Mapping[str, str] | None = None,
    seconds: float = RUN_SECONDS,
) -> int:
    """Run the blocks of documents that build on each other, and give how many were run.

    `python` is the interpreter, whose folder also comes first on the path of shells.
    Raises `SnippetError` that names the block.
    """
    session = _Session(folder, python, environment or {}, seconds)
    try:
        for document in documents:
            for block in blocks_of(document):
                session.take(block)
    finally:
        session.stop()
    return session.count


class _Session:
    """The blocks of one document, or of several that belong together."""

    def __init__(
        self, folder: Path, python: str, environment: Mapping[str, str], seconds: float
    ) -> None:
        self._folder = folder / "here"
        self._folder.mkdir(parents=True)
        self._python = python
        self._seconds = seconds
        self._ports = {port: str(_free_port()) for port in PORTS}
        self._state = folder / "shell-state"
        self._printed = ""
        self._servers: list[tuple[Block, subprocess.Popen[str], threading.Thread]] = []
        self.count = 0
        own = {name: value for name, value in os.environ.items() if _is_neutral(name)}
        self._environment = {
            **own,
            "HOME": str(folder),
            "NO_COLOR": "1",
            "COLUMNS": "100",
            "XDG_STATE_HOME": str(folder / "state"),
            "PATH": os.pathsep.join([str(Path(python).parent), own.get("PATH", os.defpath)]),
            "SNIPPET_STATE": str(self._state),
            **environment,
        }

    def take(self, block: Block) -> None:
        if block.title is not None:
            path = self._now() / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._own_ports(block.code), encoding="utf-8")
        if "output" in block.info:
            self._compare(block)
        elif "serve" in block.info:
            self._serve(block)
        elif block.runs:
            self._printed = self._run(block)
            self.count += 1

    def stop(self) -> None:
        """End what serves, the last one first, as a supervisor would."""
        for _, process, drain in reversed(self._servers):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            drain.join()
            if process.stdout is not None:
                process.stdout.close()

    # --- One block ---------------------------------------------------------------------

    def _run(self, block: Block) -> str:
        process = self._start(block)
        status: int | str
        try:
            output, _ = process.communicate(timeout=self._seconds)
            status = process.returncode
        except subprocess.TimeoutExpired:
            # What it started ends with it, or the pipe would stay open.
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            status = f"not within {self._seconds:g} s"
        if status != 0:
            raise SnippetError(f"{block} exited {status}:\n{output}")
        return output

    def _serve(self, block: Block) -> None:
        process = self._start(block)
        lines: queue.Queue[str] = queue.Queue()

        def drain() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                lines.put(line)
            lines.put("")

        thread = threading.Thread(target=drain, name=f"output of {block}")
        thread.start()
        self._servers.append((block, process, thread))
        try:
            first = lines.get(timeout=START_SECONDS)
        except queue.Empty:
            raise SnippetError(f"{block} said nothing within {START_SECONDS:g} s") from None
        if not first:
            raise SnippetError(f"{block} ended at once, with {process.wait(STOP_SECONDS)}")
        self._printed = first
        self.count += 1

    def _start(self, block: Block) -> "subprocess.Popen[str]":
        code = self._own_ports(block.code)
        opened = _SHELL.partition("{code}")[0]
        if block.language == "python":
            path = self._now() / (block.title or f"line_{block.line}.py")
            path.write_text(code, encoding="utf-8")
            command = ["sh", "-c", f'{opened}exec "$0" "$1"', self._python, str(path)]
        elif "serve" in block.info:
            # In place of the shell, so that ending it ends the program.
            command = ["sh", "-c", f"{opened}exec {code.strip()}"]
        else:
            command = ["sh", "-c", _SHELL.replace("{code}", code)]
        return subprocess.Popen(
            command,
            cwd=self._now(),
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def _compare(self, block: Block) -> None:
        printed = [line.rstrip() for line in self._printed.splitlines()]
        if not matches(block.code.splitlines(), printed):
            raise SnippetError(f"{block} shows\n{block.code}but it printed\n{self._printed}")

    def _now(self) -> Path:
        """The folder that the shell is in, relative to which files are written too."""
        if self._state.exists():
            text = self._state.read_text(encoding="utf-8")
            if found := re.search(r"SNIPPET_FOLDER=(['\"])(.*)\1$", text, re.MULTILINE):
                return Path(found[2])
        return self._folder

    def _own_ports(self, text: str) -> str:
        for written, own in self._ports.items():
            text = re.sub(rf"\b{written}\b", own, text)
        return text


def matches(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether `printed` is what `shown` says, with its ``...``."""
    if not shown:
        return not printed
    if shown[0].strip() == "...":
        return any(matches(shown[1:], printed[skip:]) for skip in range(len(printed) + 1))
    if not printed:
        return False
    pattern = ".*".join(re.escape(part) for part in shown[0].rstrip().split("..."))
    return re.fullmatch(pattern, printed[0]) is not None and matches(shown[1:], printed[1:])


def _is_neutral(name: str) -> bool:
    """Whether a variable says nothing to the programs that are shown."""
    return not name.startswith(
        ("EXECUTA_", "XDG_", "COV", "PYT", "UV_", "VIRTUAL_ENV", "FORCE_COLOR")
    )


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
