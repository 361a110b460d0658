"""From the lines of a transcript to a tree: action → invoke → reverse call → frames.

Owns how the parts become one, and what there is of everything; what a line means is
`building`'s business.
"""

from msgspec import Struct

from executa_host.transcripts.building import Builder
from executa_host.transcripts.items import Item
from executa_host.transcripts.reading import Transcript


class Tree(Struct):
    """All items of a transcript, and how much there is of everything."""

    roots: list[Item]
    seconds: float
    totals: dict[str, int]


def build_tree(found: Transcript) -> Tree:
    """Make the tree of a whole transcript."""
    began = found.parts[0].header.at
    roots: list[Item] = []
    end = 0.0
    for number, part in enumerate(found.parts):
        builder = Builder(number, max(0.0, part.header.at - began))
        for line in part.lines:
            builder.take(line)
        builder.finish()
        roots += builder.roots
        end = max(end, builder.now)
    roots.sort(key=lambda item: item.start)
    return Tree(roots, end, _totals(roots))


def _totals(roots: list[Item]) -> dict[str, int]:
    names = {"process": "processes", "action": "actions", "invoke": "invokes"}
    names |= {"reverse": "reverse_calls", "frame": "frames"}
    totals: dict[str, int] = dict.fromkeys((*names.values(), "refused", "failed"), 0)
    for root in roots:
        for item in root.walk():
            if item.kind in names:
                totals[names[item.kind]] += 1
            if item.kind in ("invoke", "reverse") and item.status in ("refused", "failed"):
                totals[item.status] += 1
    return totals
