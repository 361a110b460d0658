"""A plugin with a plain function for its tool, which runs in a thread."""

from executa_sdk import Plugin

plugin = Plugin("threaded", "0.1.0")


@plugin.tool
def thread(text: str) -> str:
    """Give the text back from a thread."""
    return text


if __name__ == "__main__":
    plugin.run()
