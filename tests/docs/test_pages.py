"""What happens to a page on its way to the site, and the site itself."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from scripts.docs.pages import prepare
from tests.support.sources import ROOT

DOCS = ROOT / "docs"
HERE = PurePosixPath("tutorial/page.md")


def _prepared(text: str) -> str:
    return prepare(text, HERE, DOCS)


def test_words_for_the_runner_go_and_titles_become_captions() -> None:
    assert _prepared("```python run\nx\n```") == "```python\nx\n```"
    titled = _prepared("```python run title=a.py\nx\n```")
    assert titled == "```{code-block} python\n:caption: a.py\n\nx\n```"


def test_directives_stay_as_they_are() -> None:
    text = "```{toctree}\n:glob:\n\nREADME\n```"

    assert _prepared(text) == text


def test_diagrams_are_drawn() -> None:
    text = _prepared("```mermaid\nsequenceDiagram\nA->>B: hello\n```\nafter")

    assert '<div class="diagram">\n<svg ' in text
    assert text.endswith("</div>\n\nafter")


@pytest.mark.parametrize(
    ("link", "becomes"),
    [
        ("[limits](../reference/limits.md)", "[limits](../reference/limits.md)"),
        ("[a](../spec/rulings.md#r-22-the-gate)", "[a](../spec/rulings.md#r-22-the-gate)"),
        ("[spec](../spec)", "[spec](../spec/README.md)"),
        ("[map](../../AGENTS.md)", "map (`AGENTS.md`)"),
        ("[`tests`](../../tests)", "`tests`"),
        ("[out](https://example.org/)", "[out](https://example.org/)"),
        ("[here](#below)", "[here](#below)"),
    ],
)
def test_links_out_of_the_site_become_paths(link: str, becomes: str) -> None:
    assert _prepared(link) == becomes


def test_a_link_that_leads_nowhere_is_refused() -> None:
    with pytest.raises(ValueError, match="leads nowhere"):
        _prepared("[gone](../no-such-page.md)")


def test_a_link_in_code_is_code() -> None:
    text = "```text\n[gone](../no-such-page.md)\n```"

    assert _prepared(text) == text


def test_every_link_between_files_of_the_repository_leads_somewhere() -> None:
    """The site holds its own links; these are the pages that are read in the repository."""
    patterns = ("*.md", "packages/*/README.md", "docs/**/*.md", "changes/*.md", "tests/*/*.md")
    broken: list[str] = []
    for page in {path for pattern in patterns for path in ROOT.glob(pattern)}:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^()\s]+)\)", text):
            path = target.partition("#")[0]
            if path and ":" not in path and not (page.parent / path).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")

    assert not broken


# --- The site. ---------------------------------------------------------------------------


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_needs_no_network(tmp_path: Path) -> None:
    for library in ("sphinx", "myst_parser", "furo"):
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed here: `uv sync --group docs` brings it")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    done = subprocess.run(
        [*command, str(DOCS), str(tmp_path / "html"), "-d", str(tmp_path / "trees")],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "html").rglob("*.html"))
    assert (tmp_path / "html" / "index.html") in pages
    loaded = re.compile(
        r'(?:<(?:script|img|link|iframe)\b[^>]*\b(?:src|href)="|@import |url\()(?:https?:)?//'
    )
    files = [*pages, *(tmp_path / "html").rglob("*.css")]
    assert not [path.name for path in files if loaded.search(path.read_text(encoding="utf-8"))]
