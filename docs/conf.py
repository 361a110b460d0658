"""How Sphinx builds the site: `make docs`.

The pages are plain Markdown that also reads well in the repository; `scripts/docs/pages.py`
says what is changed on the way. Nothing is loaded from elsewhere, so the built site works
from a folder without a network.
"""

import sys
import tomllib
from pathlib import Path, PurePosixPath

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT))

from scripts.docs.pages import prepare  # noqa: E402 - found by the line above

project = "Executa"
author = "The Executa authors"
copyright = "The Executa authors, MIT licence"  # noqa: A001 - the name that Sphinx reads
release = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
version = release

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_*"]
nitpicky = True

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "attrs_inline"]

html_theme = "furo"
html_title = f"Executa {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False


def _prepare(app, docname, source):
    source[0] = prepare(source[0], PurePosixPath(f"{docname}.md"), DOCS)


def setup(app):
    app.connect("source-read", _prepare)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
