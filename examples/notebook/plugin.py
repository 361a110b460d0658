"""An Executa plugin that keeps notes in persistent storage and finds them again."""

import re
from typing import Any

from executa_sdk import Context, Plugin, ToolError

plugin = Plugin(
    "notebook",
    "0.1.0",
    description="Keeps short notes and finds them again.",
)

KEY = "notes"
MOST_NOTES = 500
MOST_CHARS = 2_000
BEST = 5


@plugin.tool(effect="mutating")
async def remember(text: str, ctx: Context) -> dict[str, Any]:
    """Keep a note.

    Args:
        text: What to keep, up to 2,000 characters.
    """
    note = " ".join(text.split())
    if not note:
        raise ToolError("there is nothing to remember: the text is empty")
    if len(note) > MOST_CHARS:
        raise ToolError(f"the note has {len(note):,} characters; at most {MOST_CHARS:,} are kept")

    def add(notes: Any) -> list[str]:
        kept: list[str] = notes or []
        if note in kept:
            return kept
        if len(kept) >= MOST_NOTES:
            raise ToolError(f"the notebook is full: it holds {MOST_NOTES} notes")
        return [*kept, note]

    # Two calls at once cannot lose a note: `update` retries when the etag has changed.
    notes = await ctx.storage.user.update(KEY, add)
    return {"remembered": note, "notes": len(notes)}


@plugin.tool(effect="read")
async def recall(query: str, ctx: Context) -> list[str]:
    """Find notes, the best match first. No match is an empty list.

    Args:
        query: Words to look for.
    """
    notes: list[str] = await ctx.storage.user.get(KEY) or []
    wanted = _words(query)
    scored = [(len(wanted & _words(note)), note) for note in notes]
    found = sorted((item for item in scored if item[0]), key=lambda item: -item[0])
    return [note for _, note in found[:BEST]]


def _words(text: str) -> set[str]:
    """The words that a match is counted by; short ones say little."""
    return {word for word in re.findall(r"\w+", text.casefold()) if len(word) > 2}


if __name__ == "__main__":
    plugin.run()
