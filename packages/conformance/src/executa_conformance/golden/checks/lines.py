"""Registers every golden line as a check of its chapter's requirement."""

from executa_conformance.golden.rows import Row, chapters, rows
from executa_conformance.golden.target import Reading
from executa_conformance.registry import check

REQUIREMENTS = {
    "framing": "GOLD-001",
    "wire": "GOLD-002",
    "handshake": "GOLD-003",
    "methods": "GOLD-004",
    "manifest": "GOLD-005",
    "gate": "GOLD-006",
    "frames": "GOLD-007",
    "sse": "GOLD-008",
    "filetransport": "GOLD-009",
    "actions": "GOLD-010",
}
"""The requirement of each chapter."""


def _register(chapter: str, row: Row) -> None:
    name = f"{chapter}/{row['name']}"

    async def read(scene: Reading) -> None:
        await scene.judge(name, row)

    check(REQUIREMENTS[chapter], role="parser", level=chapter, name=name)(read)


for _chapter in chapters():
    for _row in rows(_chapter):
        _register(_chapter, _row)
