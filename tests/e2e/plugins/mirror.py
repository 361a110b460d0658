"""A plugin that calls itself: an agent session runs its own plain function."""

from typing import Any

from executa_sdk import Context, Plugin, SyncContext

plugin = Plugin("mirror", "0.1.0")


@plugin.tool
async def look(text: str, ctx: Context) -> dict[str, Any]:
    """Ask an agent session that calls `mirror.flip`, a coroutine waiting for a plain function."""
    async with await ctx.agent() as agent:
        frames = [frame async for frame in agent.run(f'Use mirror.flip with "{text}".')]
    return {"frames": frames}


@plugin.tool
def gaze(text: str, ctx: SyncContext) -> dict[str, Any]:
    """The same from a plain function: a thread waits for another call of this plugin."""
    with ctx.agent() as agent:
        frames = list(agent.run(f'Use mirror.flip with "{text}".'))
    return {"frames": frames}


@plugin.tool
def flip(text: str) -> str:
    """Turn a text around.

    Args:
        text: What to turn.
    """
    return text[::-1]


if __name__ == "__main__":
    plugin.run()
