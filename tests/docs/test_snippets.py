"""The code in README.md, packages/*/README.md and docs/ is held to what it says.

`tests/support/snippets.py` says what the words behind a fence's language mean.
"""

import ast
from pathlib import Path

import pytest

from tests.support.snippets import (
    LANGUAGES,
    Block,
    SnippetError,
    blocks_of,
    matches,
    run_documents,
)
from tests.support.sources import ROOT

TUTORIAL = "docs/tutorial"


def _documents() -> list[Path]:
    patterns = ("*.md", "packages/*/README.md", "docs/**/*.md", "benchmarks/*.md")
    return [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]


BLOCKS = {document: blocks_of(document) for document in _documents()}
TUTORIAL_PAGES = [page for page in BLOCKS if page.parent == ROOT / TUTORIAL]


def _name(value: object) -> str:
    return value.relative_to(ROOT).as_posix() if isinstance(value, Path) else str(value)


@pytest.mark.parametrize(
    "block",
    [block for found in BLOCKS.values() for block in found if block.language == "python"],
    ids=lambda block: f"{_name(block.document)}:{block.line}",
)
def test_python_in_the_docs_compiles(block: Block) -> None:
    # The empty lines in front make an error name the line of the document.
    source = "\n" * (block.line - 1) + block.code

    compile(source, str(block.document), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize("document", BLOCKS, ids=_name)
def test_code_in_the_docs_runs_or_says_that_it_is_only_shown(document: Path) -> None:
    unsettled = [
        str(block)
        for block in BLOCKS[document]
        if block.language in LANGUAGES and not block.settled
    ]

    assert not unsettled


@pytest.mark.parametrize(
    "document",
    [
        document
        for document, found in BLOCKS.items()
        if document not in TUTORIAL_PAGES and any(block.runs for block in found)
    ],
    ids=_name,
)
def test_code_in_the_docs_that_says_it_runs_does(document: Path, tmp_path: Path) -> None:
    assert run_documents([document], tmp_path) > 0


@pytest.mark.slow
def test_the_tutorial_works_from_its_first_page_to_its_last(tmp_path: Path) -> None:
    assert run_documents(TUTORIAL_PAGES, tmp_path) > 0


def test_the_readme_opens_with_code_that_runs() -> None:
    assert any(block.runs for block in BLOCKS.get(ROOT / "README.md", []))


# --- The runner itself. -----------------------------------------------------------------


def _page(folder: Path, text: str) -> Path:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


def test_blocks_are_found_with_their_language_title_and_line(tmp_path: Path) -> None:
    document = _page(
        tmp_path,
        "```python title=plugin.py\none = 1\n```\n"
        "- an item\n\n  ~~~python run\n  if one:\n      two\n  ~~~\n"
        "````md\n```python\n```\n````\n",
    )

    first, second, third = blocks_of(document)

    assert (first.title, first.runs, first.line, first.code) == ("plugin.py", False, 2, "one = 1\n")
    assert (second.runs, second.line, second.code) == (True, 7, "if one:\n    two\n")
    assert (third.language, third.code) == ("md", "```python\n```\n")


def test_a_block_without_end_is_a_fault_of_its_document(tmp_path: Path) -> None:
    with pytest.raises(SnippetError, match="never closed"):
        blocks_of(_page(tmp_path, "```python\none = 1\n"))


def test_code_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    page = _page(
        tmp_path,
        "```python run\nimport subprocess, sys\n"
        "child = [sys.executable, '-c', 'import threading; threading.Event().wait()']\n"
        "subprocess.run(child)\n```\n",
    )

    with pytest.raises(SnippetError, match="not within 1 s"):
        run_documents([page], tmp_path, seconds=1)


@pytest.mark.parametrize("language", LANGUAGES)
def test_code_that_fails_fails_with_what_it_printed(tmp_path: Path, language: str) -> None:
    code = "print('why'); raise SystemExit(3)" if language == "python" else "echo why; exit 3"

    with pytest.raises(SnippetError, match=r"exited 3:\s+why"):
        run_documents([_page(tmp_path, f"```{language} run\n{code}\n```\n")], tmp_path)


def test_shells_of_a_document_share_folder_exports_and_files(tmp_path: Path) -> None:
    page = _page(
        tmp_path,
        "```sh run\nmkdir in && cd in\nexport WORD='two words'\n```\n"
        "```toml title=a.toml\nport = 8717\n```\n"
        '```sh run\necho "$WORD"\ngrep -c port a.toml\nbasename "$PWD"\n```\n'
        "```text output\ntwo words\n1\nin\n```\n",
    )

    assert run_documents([page], tmp_path) == 2
    assert "8717" not in (tmp_path / "here" / "in" / "a.toml").read_text()


def test_what_serves_runs_beside_the_rest_and_ends_with_the_document(tmp_path: Path) -> None:
    page = _page(
        tmp_path,
        "```sh serve\nsh -c 'echo $$; mkfifo pipe; echo ready; cat pipe > got'\n```\n"
        "```sh run\nuntil [ -p pipe ]; do :; done; echo hello > pipe\n```\n",
    )

    assert run_documents([page], tmp_path) == 2


def test_what_should_serve_and_ends_at_once_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(SnippetError, match="ended at once, with 7"):
        run_documents([_page(tmp_path, "```sh serve\nsh -c 'exit 7'\n```\n")], tmp_path)


def test_output_that_differs_from_what_is_shown_is_a_fault(tmp_path: Path) -> None:
    text = "```sh run\necho 1 of 2\n```\n```text output\n{}\n```\n"

    assert run_documents([_page(tmp_path, text.format("1 of ..."))], tmp_path / "a") == 1
    with pytest.raises(SnippetError, match="but it printed"):
        run_documents([_page(tmp_path, text.format("2 of ..."))], tmp_path / "b")


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\nb", "a\nb", True),
        ("a", "a\nb", False),
        ("a\n...", "a\nb\nc", True),
        ("...\nc", "a\nb\nc", True),
        ("...\nc", "a\nb", False),
        ("a ... c", "a b c", True),
        ("a.c", "abc", False),
        ("", "", True),
    ],
)
def test_dots_in_shown_output_stand_for_anything(shown: str, printed: str, same: bool) -> None:
    assert matches(shown.splitlines(), printed.splitlines()) is same
