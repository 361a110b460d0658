"""A plugin whose tools do what durable actions must live with: they stream, hang, fail and die."""

import asyncio
import os
from pathlib import Path
from typing import Any

from executa_sdk import Context, Plugin, ToolError

plugin = Plugin("worker", "0.1.0", host_capabilities=["llm.sample", "llm.agent.auto"])


@plugin.tool(effect="idempotent", streaming=True)
async def count(to: int, ctx: Context) -> int:
    """Count, and say so."""
    for number in range(to):
        await ctx.progress(number, to, f"at {number}")
    return to


@plugin.tool(streaming=True)
async def think(text: str, ctx: Context) -> str:
    """Let an agent session think, which calls a tool of this plugin."""
    async with await ctx.agent() as agent:
        frames = [frame async for frame in agent.run(f'Use worker.flip with "{text}".')]
    return frames[-1]["text"]


@plugin.tool(effect="read")
def flip(text: str) -> str:
    """Turn a text around."""
    return text[::-1]


@plugin.tool
async def hang(text: str, ctx: Context) -> str:
    """Say that it has begun, and never come back."""
    await ctx.progress(0, 1, text)
    await asyncio.Event().wait()
    return text


@plugin.tool(effect="read")
async def die_once(marker: str) -> str:
    """Take the whole process down, the first time."""
    path = Path(marker)
    if not path.exists():
        path.write_text("died")
        os._exit(3)
    return "alive"


@plugin.tool
async def die(text: str) -> str:
    """Take the whole process down."""
    del text
    os._exit(3)


@plugin.tool
def fail(text: str) -> str:
    """Fail in words of its own."""
    raise ToolError(f"no {text} today")


@plugin.tool(timeout=0.3)
async def dawdle(text: str) -> str:
    """Take longer than it may."""
    await asyncio.Event().wait()
    return text


@plugin.tool(approval=True)
def pay(amount: float) -> dict[str, Any]:
    """Pay, if somebody allows it."""
    return {"paid": amount}


if __name__ == "__main__":
    plugin.run()
