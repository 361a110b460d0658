"""The plugin of the round trip: gives a text back, inline, on the loop, or in a thread."""

from executa_sdk import Plugin

plugin = Plugin("echo", "0.1.0")


@plugin.tool(inline=True)
def echo(text: str) -> str:
    """Give the text back without a task or a thread."""
    return text


@plugin.tool
async def echo_task(text: str) -> str:
    """Give the text back from a coroutine."""
    return text


@plugin.tool
def echo_thread(text: str) -> str:
    """Give the text back from a thread."""
    return text


if __name__ == "__main__":
    plugin.run()
