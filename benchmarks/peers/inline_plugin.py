"""A plain plugin with one inline tool, as small as the SDK lets it be."""

from executa_sdk import Plugin

plugin = Plugin("small", "0.1.0")


@plugin.tool(inline=True)
def inline(text: str) -> str:
    """Give the text back."""
    return text


if __name__ == "__main__":
    plugin.run()
