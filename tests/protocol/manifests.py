"""A manifest for tests, and ways to vary it."""

from typing import Any

from executa_protocol.manifest import Manifest, Parameter

PARAMETER: dict[str, Any] = {"name": "text", "type": "string", "description": "What to read."}
TOOL: dict[str, Any] = {
    "name": "summarize",
    "description": "Summarizes.",
    "parameters": [PARAMETER],
}
MANIFEST: dict[str, Any] = {
    "name": "my-tool",
    "version": "0.1.0",
    "description": "Reads.",
    "host_capabilities": ["llm.sample", "aps.kv"],
    "tools": [TOOL],
}


def tool(**members: Any) -> dict[str, Any]:
    """A manifest whose one tool has these members too."""
    return MANIFEST | {"tools": [TOOL | members]}


def parameter(**members: Any) -> dict[str, Any]:
    """A manifest whose one tool has one parameter with these members too."""
    return tool(parameters=[PARAMETER | members])


def only(manifest: Manifest) -> Parameter:
    """The one parameter of the one tool."""
    return manifest.tools[0].parameters[0]
