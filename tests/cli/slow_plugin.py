"""A plugin for tests of `executa dev`: tools that wait for a file, or for ever."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any, Literal

from executa_sdk import Context, Plugin

VERSION = "1.0.0"
plugin = Plugin("slow", VERSION)


@plugin.tool(effect="read")
async def until(path: str, ctx: Context) -> str:
    """Wait until a file is there, and give this version.

    Args:
        path: The file.
    """
    await ctx.progress(0, note="waits")
    while not await asyncio.to_thread(Path(path).exists):  # noqa: ASYNC110 - files tell nobody
        await asyncio.sleep(0.02)
    return VERSION


@plugin.tool(effect="read")
async def forever(ctx: Context) -> None:
    """Never end."""
    await ctx.progress(0, note="waits")
    await asyncio.Event().wait()


@plugin.tool(effect="read")
def typed(
    count: int,
    ratio: float = 1.0,
    loud: bool = False,
    mode: Literal["fast", "slow"] = "fast",
    tags: list[str] | None = None,
) -> dict[str, Any]:
    """Give the arguments back.

    Args:
        count: An integer.
        ratio: A number.
        loud: A flag.
        mode: One of two.
        tags: Some words.
    """
    return {"count": count, "ratio": ratio, "loud": loud, "mode": mode, "tags": tags}


@plugin.tool(effect="read", inline=True)
def grumble(text: str) -> None:
    """Write to stderr.

    Args:
        text: What to write.
    """
    sys.stderr.write(f"{text}\n")


@plugin.tool
def vanish() -> None:
    """Exit at once."""
    os._exit(9)


if __name__ == "__main__":
    plugin.run()
