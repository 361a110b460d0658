"""A transcript as one HTML page: nothing is loaded, and nothing in it can run as code.

Owns how the data gets into the page. The page's own scripts, style and skeleton are in `viewer`;
a content security policy allows these by their digests, and nothing else.
"""

import base64
import hashlib
import html
from importlib.resources import files
from typing import Any, Final

import msgspec

from executa_host.transcripts.items import Item
from executa_host.transcripts.model import Tree
from executa_host.transcripts.reading import Transcript

_SCRIPTS: Final = ("tree.js", "rows.js", "time.js", "details.js", "keys.js", "tools.js")

_ESCAPED: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)
"""What might end a script element, as JSON writes it: the same strings once they are read."""


def make_page(found: Transcript, tree: Tree, roots: list[Item]) -> str:
    """The page of these items, and of the lines that tell of them."""
    script, style = _script(), _asset("page.css")
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            f"style-src '{_digest(style)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    parts = {
        "{{policy}}": html.escape(policy, quote=True),
        "{{title}}": html.escape(found.path.name),
        "{{style}}": style,
        "{{data}}": _data(found, tree, roots),
        "{{script}}": script,
    }
    # Split at the marks, so that a mark within the data is only text.
    page = _asset("page.html")
    made: list[str] = []
    for mark, content in parts.items():
        before, _, page = page.partition(mark)
        made += [before, content]
    return "".join([*made, page])


def _script() -> str:
    """The scripts as one, which sees everything of its own and leaves nothing behind."""
    parts = "\n".join(map(_asset, _SCRIPTS))
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


def _asset(name: str) -> str:
    return (files("executa_host.transcripts") / "viewer" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _data(found: Transcript, tree: Tree, roots: list[Item]) -> str:
    items = list(_flat(roots))
    wanted = {row for item in items for row in item["rows"]}
    lines = {
        line.row: line.raw.decode(errors="replace")
        for part in found.parts
        for line in part.lines
        if line.row in wanted
    }
    document = {
        "file": found.path.name,
        "at": found.parts[0].header.at,
        "host": found.parts[0].header.host,
        "command": " ".join(found.parts[0].header.command),
        "seconds": tree.seconds,
        "totals": tree.totals,
        "remarks": found.remarks,
        "cut": found.cut,
        "items": items,
        "lines": lines,
    }
    return msgspec.json.encode(document).decode().translate(_ESCAPED)


def _flat(roots: list[Item]) -> Any:
    """Items from top to bottom, each with its depth; short names, because there are many."""
    waiting = [(root, 0) for root in reversed(roots)]
    while waiting:
        item, depth = waiting.pop()
        yield {
            "kind": item.kind,
            "label": item.label,
            "start": round(item.start, 6),
            "end": round(item.end, 6),
            "plugin": item.plugin,
            "status": item.status,
            "detail": item.detail,
            "invoke": item.invoke_id,
            "arrow": item.arrow,
            "depth": depth,
            "rows": item.rows,
        }
        waiting += [(child, depth + 1) for child in reversed(item.children)]
