"""Markdown as it stands in the repository, made ready for the site.

Three things differ. The words that say what runs become captions or go; diagrams are drawn;
and a link that leads out of `docs/` becomes the path it names, because a site has no
repository behind it. Everything else is left to the reader of Markdown.
"""

import re
from pathlib import Path, PurePosixPath
from typing import Final

from scripts.docs.sequence import draw

_FENCE: Final = re.compile(r"(?P<indent> *)(?P<fence>`{3,})(?P<info>[^`]*)")
_LINK: Final = re.compile(r"(?<!!)\[(?P<text>[^]\[]*)\]\((?P<target>[^()\s]+)\)")


def prepare(source: str, page: PurePosixPath, docs: Path) -> str:
    """The text of one page; `page` is its path below the folder `docs`."""
    lines: list[str] = []
    fence = ""
    drawing: list[str] | None = None
    for line in source.split("\n"):
        found = _FENCE.fullmatch(line)
        if fence:
            closes = found and not found["info"].strip() and found["fence"].startswith(fence)
            if drawing is None:
                lines.append(line)
            elif closes:
                lines += ["", '<div class="diagram">', draw("\n".join(drawing)), "</div>", ""]
            else:
                drawing.append(line)
            if closes:
                fence, drawing = "", None
        elif found and found["info"].strip():
            fence = found["fence"]
            words = found["info"].split()
            if words[0] == "mermaid":
                drawing = []
            else:
                lines += _opening(found["indent"] + fence, words)
        elif found:
            fence = found["fence"]
            lines.append(line)
        else:
            lines.append(_LINK.sub(lambda link: _resolved(link, page, docs), line))
    return "\n".join(lines)


def _opening(fence: str, words: list[str]) -> list[str]:
    """A block's first line, and its caption if it has a title."""
    indent = fence[: len(fence) - len(fence.lstrip())]
    titles = [word.partition("=")[2] for word in words[1:] if word.startswith("title=")]
    if not titles or words[0].startswith("{"):
        return [f"{fence}{words[0]}" if not words[0].startswith("{") else fence + " ".join(words)]
    return [f"{fence}{{code-block}} {words[0]}", f"{indent}:caption: {titles[0]}", ""]


def _resolved(link: re.Match[str], page: PurePosixPath, docs: Path) -> str:
    """The link, or the words and the path where it leads out of the site."""
    target, _, anchor = link["target"].partition("#")
    if not target or ":" in target:
        return link[0]
    path = (docs / page.parent / target).resolve()
    inside = path.is_relative_to(docs.resolve())
    if inside and (path.is_file() or (path / "README.md").is_file()):
        file = f"{target.rstrip('/')}/README.md" if path.is_dir() else target
        return f"[{link['text']}]({file}{'#' + anchor if anchor else ''})"
    root = docs.resolve().parent
    if not path.exists() or not path.is_relative_to(root):
        raise ValueError(f"{page}: {link['target']} leads nowhere")
    name = f"`{path.relative_to(root).as_posix()}`"
    text = link["text"]
    return text if text.strip("`") == name.strip("`") else f"{text} ({name})"
