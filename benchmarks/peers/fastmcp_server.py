"""The echo tool over fastmcp, as its documentation shows it."""

from importlib import import_module
from typing import Any

fastmcp: Any = import_module("fastmcp")  # an extra that type checkers pass without
server = fastmcp.FastMCP("echo")


@server.tool
async def echo(text: str) -> str:
    """Give the text back."""
    return text


if __name__ == "__main__":
    server.run(show_banner=False)
