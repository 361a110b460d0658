"""The same tools over MCP's low-level server on stdio.

The tool's completion goes over the client's sampling callback, and several at once, as in
`reverse_plugin`. With `--uvloop` on that loop, which is faster once it is there.
"""

import asyncio
import sys
import warnings
from importlib import import_module
from typing import Any

types: Any = import_module("mcp_types")  # an extra that type checkers pass without
lowlevel: Any = import_module("mcp.server.lowlevel")
stdio: Any = import_module("mcp.server.stdio")

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["text"],
}
MESSAGES = [
    types.SamplingMessage(
        role="user", content=types.TextContent(type="text", text="Say a sentence.")
    )
]


async def list_tools(ctx: Any, params: Any) -> Any:
    """Both tools."""
    return types.ListToolsResult(
        tools=[
            types.Tool(name=name, description=f"The tool {name}.", input_schema=SCHEMA)
            for name in ("echo", "sample")
        ]
    )


async def call_tool(ctx: Any, params: Any) -> Any:
    """Give the text back, with what the client's model said if it was asked."""
    given: dict[str, Any] = params.arguments or {}
    text = str(given["text"])
    if params.name == "sample":
        asking = [
            ctx.session.create_message(messages=MESSAGES, max_tokens=64)
            for _ in range(int(given["count"]))
        ]
        results = [await asking[0]] if len(asking) == 1 else await asyncio.gather(*asking)
        text += "".join(result.content.text for result in results)
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def main() -> None:
    server = lowlevel.Server("echo", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio.stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run = import_module("uvloop").run if "--uvloop" in sys.argv else asyncio.run
    run(main())
