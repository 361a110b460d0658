"""A plugin that gives another text back once in a while, or nothing any more."""

import os

from executa_sdk import Plugin

plugin = Plugin("lying", "0.1.0")


@plugin.tool(inline=True)
def inline(text: str) -> str:
    """Give the text back, except number 3."""
    return "something else" if text.startswith("00000003") else text


@plugin.tool(name="async")
async def give_up(text: str) -> str:
    """Give the text back, and end at number 3."""
    if text.startswith("00000003"):
        os._exit(1)
    return text


if __name__ == "__main__":
    plugin.run()
