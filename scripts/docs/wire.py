"""`docs/reference/wire.md` and `manifest.md`: every method, and the shapes on the wire."""

from typing import Any, get_args

import msgspec

from executa_protocol import capabilities
from executa_protocol.capabilities import Need
from executa_protocol.codes import by_symbol
from executa_protocol.manifest import Manifest
from executa_protocol.methods import METHODS
from executa_protocol.methods.extensions import OLD_STORAGE_NAMES
from executa_protocol.methods.info import MethodInfo
from scripts.docs.markdown import (
    code,
    members,
    page,
    prose,
    schema_table,
    table,
)

_INTRO = """\
Both sides speak JSON-RPC 2.0, one object a line, over the plugin's stdin and stdout
([R-10](../spec/rulings.md#r-10-lines)). A method's full JSON Schemas are in `docs/schema`;
[error codes](../errors.md) have their advice on a page of their own.
"""


def wire_page() -> str:
    """Every method by direction and chapter, then the shapes they share."""
    shapes: dict[str, Any] = {}
    served = [info for info in METHODS.values() if info.served]
    parts: list[str] = [*_INTRO.splitlines(), "", "## Overview", ""]
    parts += table(
        ("Method", "From", "Kind", "Chapter", "Time-out"),
        (
            (f"[{code(info.name)}](#{_anchor(info.name)})", _caller(info), info.kind, info.chapter,
             _seconds(info.timeout))
            for info in served
        ),
    )  # fmt: skip
    for info in served:
        parts += _method(info, shapes)
    parts += ["## Known and not served", ""]
    parts += [
        "The host knows these methods of the field and answers `UNMAPPED_METHOD` (R-04).",
        "",
    ]
    parts += table(
        ("Method", "Chapter", "Manifest declares"),
        ((code(i.name), i.chapter, _need(i.need)) for i in METHODS.values() if not i.served),
    )
    parts += ["## Older names", "", "Read in tolerant mode, never sent (STOR-006).", ""]
    parts += table(
        ("Older name", "Means"), ((code(old), code(new)) for old, new in OLD_STORAGE_NAMES.items())
    )
    parts += _shapes(shapes)
    return page("Wire messages", parts)


def manifest_page() -> str:
    """The manifest, and the capability strings it may declare."""
    shapes: dict[str, Any] = {}
    parts = [
        "A plugin answers `describe` with its manifest. The SDK derives it from the code; whoever",
        "writes one by hand finds every member here. Its JSON Schema is",
        "[manifest.json](../schema/manifest.json).",
        "",
        "## Manifest",
        "",
        *members(Manifest, shapes),
        *_shapes(shapes),
        "## Capability strings",
        "",
        "What `host_capabilities` may hold. A string that is not here unlocks nothing (R-29).",
        "",
        *table(
            ("Capability", "Unlocks"),
            ((code(name), _unlocked(name)) for name in sorted(capabilities.ALLOWED)),
        ),
    ]
    return page("Manifest", parts)


def _method(info: MethodInfo, shapes: dict[str, Any]) -> list[str]:
    facts = [f"{_caller(info)} → {'plugin' if _caller(info) == 'host' else 'host'}, {info.kind}"]
    if info.negotiation:
        facts.append(f"negotiated as {code(info.negotiation)}")
    if info.need:
        facts.append(f"manifest declares {_need(info.need)}")
    if info.grant:
        facts.append(f"the user grants {info.grant}")
    if info.token:
        facts.append(f"the host adds the {info.token} token")
    if info.timeout is not None:
        facts.append(f"time-out {_seconds(info.timeout)}")
    lines = [f"## {info.name}", "", "; ".join(facts) + ".", ""]
    if info.params is not None:
        lines += [f"**Params.** {prose(info.params.__doc__)}", "", *members(info.params, shapes)]
    if info.result is not None:
        lines += _result(info.result, shapes)
    if info.errors:
        rows = {by_symbol(name) for name in info.errors}
        words = [f"{row.number} {code(row.symbol)}" for row in sorted(rows, key=_order)]
        lines += [f"**Errors.** {', '.join(words)}.", ""]
    return lines


def _order(row: Any) -> tuple[int, str]:
    return -row.number, row.symbol


def _result(kind: Any, shapes: dict[str, Any]) -> list[str]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if kind is Manifest:
            return ["**Result.** The [manifest](manifest.md).", ""]
        return [f"**Result.** {prose(kind.__doc__)}", "", *members(kind, shapes)]
    return [f"**Result.** An array of {'frames' if get_args(kind) else 'values'}.", ""]


def _shapes(shapes: dict[str, Any]) -> list[str]:
    """Structs that members mention, each once."""
    lines: list[str] = []
    for name in sorted(shapes):
        schema = shapes[name]
        lines += [f"## {name}", ""]
        if text := prose(schema.get("description")):
            lines += [text, ""]
        lines += schema_table(schema)
    return lines


def _unlocked(name: str) -> str:
    methods = [
        code(info.name)
        for info in METHODS.values()
        if info.need and not _needs_more(info.need, name)
    ]
    together = [
        code(info.name)
        for info in METHODS.values()
        if len(info.need) > 1 and any(name in group for group in info.need)
    ]
    words = ", ".join(methods)
    if together:
        words += f"{'; ' if words else ''}with the others it needs: {', '.join(together)}"
    return words or "nothing that this host serves"


def _needs_more(need: Need, name: str) -> bool:
    return bool(capabilities.missing((name,), need, strict=True))


def _need(need: Need) -> str:
    def word(text: str) -> str:
        return f"any {code(text + '…')}" if text.endswith(".") else code(text)

    return " and ".join(" or ".join(map(word, group)) for group in need)


def _caller(info: MethodInfo) -> str:
    return "host" if info.direction == "host_to_plugin" else "plugin"


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:g} s"


def _anchor(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum() or c in "-_")
