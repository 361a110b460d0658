"""The tools of one live plugin, prepared for calls."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from executa_host.invocation import InvokeRefused
from executa_protocol import codec
from executa_protocol.codes import wire_error
from executa_protocol.manifest import Manifest, Tool

PLAIN_TAIL: Final = b',"context":{"invoke_id":"%b","deadline_ms":%d},"invoke_id":"%b"}'
"""How the params of most invokes end, after the arguments."""

_LINE: Final = b'{"jsonrpc":"2.0","id":%%d,"method":"invoke","params":%b%%b%b}\n'


class ToolRoute(Struct, frozen=True):
    """One tool: its time limit in seconds, and how the params of each invoke of it begin.

    `line` is a template for the whole request where nothing else is in its context: it takes
    the request's number, the arguments, the invoke's id, the deadline and the id again.
    `around` is how long its params are without the arguments, both ids and the deadline.
    """

    tool: Tool
    limit: float
    head: bytes
    line: bytes
    around: int

    @staticmethod
    def of(tool: Tool, limit: float) -> "ToolRoute":
        """The route of a tool."""
        head = b'{"tool":%b,"arguments":' % codec.encode(tool.name)
        line = _LINE % (head.replace(b"%", b"%%"), PLAIN_TAIL)
        return ToolRoute(tool, limit, head, line, len(head) + len(PLAIN_TAIL) - len(b"%b%d%b"))


def routes_of(manifest: Manifest, timeouts: Mapping[str, float]) -> dict[str, ToolRoute]:
    """The tools by name. `timeouts` override the manifest's."""
    return {
        tool.name: ToolRoute.of(tool, timeouts.get(tool.name, tool.time_limit))
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
