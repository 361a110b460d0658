"""The code in README.md, packages/*/README.md and docs/ is held to what it says.

The info string of a fenced block decides:

- `python`: it compiles; `await` may stand outside a function.
- `python run`: it is also run, as a script of its own, and must exit 0 within a minute.
- any language with `title=NAME`: it is written to NAME first, for the blocks that run to find.
  `python run title=NAME` is both.

All blocks of one document share one temporary directory, which is the working directory of those
that run; they run in the order in which they stand, and what one writes the next one sees.
"""

import ast
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.sources import ROOT

RUN_SECONDS = 60

_FENCE = re.compile(r"(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)")


@dataclass(frozen=True)
class Block:
    """One fenced block; `line` is that of its first line of code."""

    document: Path
    line: int
    info: tuple[str, ...]
    code: str

    @property
    def is_python(self) -> bool:
        return self.info[:1] == ("python",)

    @property
    def runs(self) -> bool:
        return self.is_python and "run" in self.info

    @property
    def title(self) -> str | None:
        titles = [word.partition("=")[2] for word in self.info if word.startswith("title=")]
        return titles[0] if titles else None

    def __str__(self) -> str:
        return f"{self.document.relative_to(ROOT).as_posix()}:{self.line}"


def blocks_of(document: Path) -> list[Block]:
    """Every fenced block of a document, in order."""
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
    assert opening is None, f"{document}:{start - 1}: this block is never closed"
    return found


def _documents() -> list[Path]:
    patterns = ("README.md", "packages/*/README.md", "docs/**/*.md")
    return [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]


BLOCKS = {document: blocks_of(document) for document in _documents()}


@pytest.mark.parametrize(
    "block", [block for found in BLOCKS.values() for block in found if block.is_python], ids=str
)
def test_python_in_the_docs_compiles(block: Block) -> None:
    # The empty lines in front make an error name the line of the document.
    source = "\n" * (block.line - 1) + block.code

    compile(source, str(block.document), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize(
    "document",
    [document for document, found in BLOCKS.items() if any(block.runs for block in found)],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_code_in_the_docs_that_says_it_runs_does(document: Path, tmp_path: Path) -> None:
    for block in BLOCKS[document]:
        path = tmp_path / (block.title or f"line_{block.line}.py")
        if block.title or block.runs:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.code, encoding="utf-8")
        if block.runs:
            status, output = _run(path, tmp_path)
            assert status == 0, f"{block} exited {status}:\n{output}"


def test_the_readme_opens_with_code_that_runs() -> None:
    assert any(block.runs for block in BLOCKS.get(ROOT / "README.md", []))


def test_code_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    script = tmp_path / "hangs.py"
    script.write_text(
        "import subprocess, sys\n"
        "child = [sys.executable, '-c', 'import threading; threading.Event().wait()']\n"
        "subprocess.run(child)\n"
    )

    status, _ = _run(script, tmp_path, seconds=1)

    assert status == "not within 1 s"


def test_blocks_are_found_with_their_language_title_and_line(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text(
        "```python title=plugin.py\none = 1\n```\n"
        "- an item\n\n  ~~~python run\n  if one:\n      two\n  ~~~\n"
        "````md\n```python\n```\n````\n"
    )

    first, second, third = blocks_of(document)

    assert (first.title, first.runs, first.line, first.code) == ("plugin.py", False, 2, "one = 1\n")
    assert (second.runs, second.line, second.code) == (True, 7, "if one:\n    two\n")
    assert (third.is_python, third.code) == (False, "```python\n```\n")


def _run(script: Path, folder: Path, seconds: float = RUN_SECONDS) -> tuple[int | str, str]:
    """Run it bounded; whatever it started ends with it, or the pipes would stay open."""
    process = subprocess.Popen(
        [sys.executable, str(script)],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    status: int | str
    try:
        output, _ = process.communicate(timeout=seconds)
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        status = f"not within {seconds} s"
    return status, output
