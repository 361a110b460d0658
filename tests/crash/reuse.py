"""Resume tokens after everything: those that were used give nothing, the last of a chain once."""

import random
from pathlib import Path

from executa_host.actions.engine import Engine
from executa_host.actions.faults import ActionsError
from executa_host.actions.sqlite import SqliteStore
from tests.crash import journal
from tests.crash.life import ANA, SETTINGS
from tests.crash.plugins import Catalog, Poster, Runner


async def reuse(folder: Path) -> list[str]:
    """Use every token that was used before, by another attempt. What gives one is a finding."""
    facts = journal.read(folder / "journal.jsonl")
    findings: list[str] = []
    notes = journal.Journal(folder / "reuse.jsonl")
    chance = random.Random(0)  # noqa: S311 - never drawn from
    async with await SqliteStore.open(folder / "a.db") as store:
        engine = Engine(
            store, Runner(notes, chance), Catalog(0), SETTINGS, poster=Poster(notes, chance)
        )
        async with engine:
            for fact in facts:
                if fact["what"] != "resumed":
                    continue
                try:
                    await engine.sessions.resume(ANA, fact["old"], attempt_id="thief")
                except ActionsError:
                    continue
                findings.append(f"a resume token of {fact['session']} was usable twice")
        findings += await store.check()
    notes.close()
    return findings
