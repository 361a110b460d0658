"""Writes what other implementations read: JSON Schemas of the wire, and the page of error codes.

``python -m executa_protocol.schema`` writes ``docs/schema/*.json`` (draft 2020-12) and
``docs/errors.md``; with ``--check`` it writes nothing, lists what differs and exits 1.
The structs and `codes.TABLE` are the source, so nothing here knows a field or a code.
This is the one module outside `aio` that opens files, and nothing imports it.
"""

import argparse
import sys
from pathlib import Path
from typing import Any, Final, get_args

import msgspec
from msgspec import Raw

from executa_protocol.code_table import Chapter, Disposition
from executa_protocol.codes import TABLE, ErrorObject
from executa_protocol.frames import Frame
from executa_protocol.manifest import Manifest
from executa_protocol.methods import METHODS
from executa_protocol.methods.agent_results import RunResult

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"

_OTHERS: Final[dict[str, tuple[str, Any]]] = {
    "manifest": ("The manifest of a plugin", Manifest),
    "frame": ("One frame of an agent run", Frame),
    "error": ("The error member of a response", ErrorObject),
}

# The seed's bare array and the object that tolerant mode answers with.
_BOTH_ANSWERS: Final = {"agent/session.run": list[Raw] | RunResult}

_DISPOSITIONS: Final[dict[Disposition, str]] = {
    "retry": "the same call may succeed later",
    "terminal": "nothing helps within this invoke",
    "fix": "the author has something to change",
}


def schemas() -> dict[str, dict[str, Any]]:
    """Every schema by its file name without the suffix."""
    found = {name: _document(title, kind) for name, (title, kind) in _OTHERS.items()}
    for info in METHODS.values():
        stem = info.name.replace("/", ".")
        if info.params is not None:
            found[f"{stem}.params"] = _document(f"The params of {info.name}", info.params)
        if info.result is not None:
            result = _BOTH_ANSWERS.get(info.name, info.result)
            found[f"{stem}.result"] = _document(f"The result of {info.name}", result)
    return found


def _document(title: str, kind: Any) -> dict[str, Any]:
    return {"$schema": DRAFT, "title": title, **msgspec.json.schema(kind)}


def errors_page() -> str:
    """``docs/errors.md``."""
    lines = [
        "# Error codes",
        "",
        "Generated from `executa_protocol.codes.TABLE` by `python -m executa_protocol.schema`.",
        "",
        "`error.code` is the number and `error.data.errorCode` the symbol. Several symbols may",
        "share a number, and several chapters a symbol; the name is unique and is what",
        "`codes.by_symbol` takes. What helps is one of:",
        "",
        *(f"- *{word}*: {meaning}." for word, meaning in _DISPOSITIONS.items()),
    ]
    for chapter in get_args(Chapter):
        lines += [
            "",
            f"## {chapter}",
            "",
            "| Code | Symbol | Name | Helps | Advice | Source |",
            "|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {row.number} | `{row.symbol}` | `{row.name}` | {row.disposition} "
            f"| {row.advice} | {row.source} |"
            for row in TABLE
            if row.chapter == chapter
        ]
    return "\n".join(lines) + "\n"


def files() -> dict[str, str]:
    """The content of every generated file by its path below the docs folder."""
    content = {
        f"schema/{name}.json": msgspec.json.format(
            msgspec.json.encode(schema, order="deterministic"), indent=2
        ).decode()
        + "\n"
        for name, schema in schemas().items()
    }
    return {"errors.md": errors_page(), **content}


def differences(docs: Path) -> list[str]:
    """What is not as it would be written, one line a file."""
    wanted = files()
    found: list[str] = []
    for name, content in wanted.items():
        path = docs / name
        if not path.is_file():
            found.append(f"missing: {path}")
        elif path.read_text(encoding="utf-8") != content:
            found.append(f"differs: {path}")
    found += [
        f"not ours: {path}"
        for path in sorted((docs / "schema").glob("*.json"))
        if f"schema/{path.name}" not in wanted
    ]
    return found


def write(docs: Path) -> None:
    """Write every file and remove the schemas of messages that are no more."""
    wanted = files()
    (docs / "schema").mkdir(parents=True, exist_ok=True)
    for path in (docs / "schema").glob("*.json"):
        if f"schema/{path.name}" not in wanted:
            path.unlink()
    for name, content in wanted.items():
        (docs / name).write_text(content, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """The command. Returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m executa_protocol.schema",
        description="Write docs/schema/*.json and docs/errors.md, or check that they are current.",
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="the folder (docs)")
    options = parser.parse_args(arguments)
    if not options.check:
        write(options.docs)
        return 0
    found = differences(options.docs)
    for line in found:
        sys.stderr.write(f"{line}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
