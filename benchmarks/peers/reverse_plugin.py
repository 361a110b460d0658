"""A plugin whose tools call the host back: for completions, and for a run of an agent session."""

import asyncio
from typing import Any

from executa_sdk import Context, Plugin

plugin = Plugin("reverse", "0.1.0")

MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": {"type": "text", "text": "Say a sentence."}}
]


@plugin.tool
async def sample(text: str, count: int, ctx: Context) -> str:
    """Ask for `count` completions at once, and give the text and what they said."""
    asking = [ctx.sampling.create_message(messages=MESSAGES, max_tokens=64) for _ in range(count)]
    results = [await asking[0]] if count == 1 else await asyncio.gather(*asking)
    return text + "".join(result["content"]["text"] for result in results)


@plugin.tool
async def agent(count: int, ctx: Context) -> list[Any]:
    """One run of `count` frames: how many came, and the text of the last."""
    async with ctx.agent() as session:
        frames = await session.run(str(count)).frames()
    return [len(frames), frames[-1]["text"]]


if __name__ == "__main__":
    plugin.run()
