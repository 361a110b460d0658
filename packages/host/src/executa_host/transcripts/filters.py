"""Parts of a tree: the items that someone wants to see, with what they stand in. Pure."""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import structs

from executa_host.transcripts.items import BAD, Item
from executa_protocol.errors import UsageError

_CALLS: Final = frozenset({"invoke", "reverse"})

Wanted = Callable[[Item], bool]


def pick(roots: Iterable[Item], wanted: Wanted) -> list[Item]:
    """The items that are wanted, all below them, and all that they stand in."""
    picked: list[Item] = []
    for item in roots:
        if wanted(item):
            picked.append(item)
            continue
        below = pick(item.children, wanted)
        if below:
            picked.append(structs.replace(item, children=below))
    return picked


def of_plugins(roots: list[Item], names: Iterable[str]) -> list[Item]:
    """What belongs to these plugins. Raises `UsageError` for one that is not there."""
    known = {item.plugin for root in roots for item in root.walk() if item.plugin}
    asked = set(names)
    for name in sorted(asked - known):
        msg = f"no plugin {name!r} in this transcript; there are {', '.join(sorted(known))}"
        raise UsageError(msg)
    return pick(roots, lambda item: item.plugin in asked)


def of_invoke(roots: list[Item], invoke: str) -> list[Item]:
    """One invoke, by its id, the beginning of that, or ``PLUGIN.TOOL``. Raises `UsageError`."""

    def wanted(item: Item) -> bool:
        named = item.label == invoke or item.invoke_id.startswith(invoke)
        return item.kind == "invoke" and named

    found = pick(roots, wanted)
    if not found or not invoke:
        labels = {i.label for root in roots for i in root.walk() if i.kind == "invoke"}
        known = ", ".join(sorted(labels)) or "none"
        msg = f"no invoke {invoke!r} in this transcript; there are {known}, each with its id"
        raise UsageError(msg)
    return found


def with_errors(roots: list[Item]) -> list[Item]:
    """What was refused, failed, or never answered, and where."""

    def bad(item: Item) -> bool:
        return item.status in BAD or (item.status == "open" and item.kind in _CALLS)

    def wanted(item: Item) -> bool:
        # What failed because of something within it is where that stands.
        return bad(item) and not any(bad(each) for child in item.children for each in child.walk())

    return pick(roots, wanted)


def to_depth(roots: Iterable[Item], depth: int) -> list[Item]:
    """The upper `depth` levels."""
    return [
        structs.replace(item, children=to_depth(item.children, depth - 1) if depth > 1 else [])
        for item in roots
    ]
