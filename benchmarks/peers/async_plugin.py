"""A plugin with a coroutine for its tool."""

from executa_sdk import Plugin

plugin = Plugin("coroutine", "0.1.0")


@plugin.tool(name="async")
async def give(text: str) -> str:
    """Give the text back from a coroutine."""
    return text


if __name__ == "__main__":
    plugin.run()
