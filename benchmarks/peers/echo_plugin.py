"""A plugin that gives a text back: inline, in a coroutine, and in a thread."""

from executa_sdk import Plugin

plugin = Plugin("echo", "0.1.0")


@plugin.tool(name="inline", inline=True)
def give_inline(text: str) -> str:
    """Give the text back without a task or a thread."""
    return text


@plugin.tool(name="async")
async def give_async(text: str) -> str:
    """Give the text back from a coroutine."""
    return text


@plugin.tool(name="thread")
def give_thread(text: str) -> str:
    """Give the text back from a thread."""
    return text


if __name__ == "__main__":
    plugin.run()
