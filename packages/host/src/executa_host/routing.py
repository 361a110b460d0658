"""The tools of one live plugin, prepared for calls."""

from collections.abc import Mapping

from msgspec import Struct

from executa_host.invocation import InvokeRefused
from executa_protocol import codec
from executa_protocol.codes import wire_error
from executa_protocol.manifest import Manifest, Tool


class ToolRoute(Struct, frozen=True):
    """One tool: its time limit in seconds, and how the params of each invoke of it begin."""

    tool: Tool
    limit: float
    head: bytes


def routes_of(manifest: Manifest, timeouts: Mapping[str, float]) -> dict[str, ToolRoute]:
    """The tools by name. `timeouts` override the manifest's."""
    return {
        tool.name: ToolRoute(
            tool,
            timeouts.get(tool.name, tool.time_limit),
            b'{"tool":%b,"arguments":' % codec.encode(tool.name),
        )
        for tool in manifest.tools
    }


def find_route(routes: Mapping[str, ToolRoute], plugin: str, name: str) -> ToolRoute:
    """The tool's route, or an `InvokeRefused` that names those there are."""
    route = routes.get(name)
    if route is None:
        names = list(routes)
        text = f"{plugin} has no tool {name[:80]!r}; it has {', '.join(names)}"
        error = wire_error("METHOD_NOT_FOUND", text, available_tools=names)
        raise InvokeRefused(error.code, text, error.data)
    return route
