"""A tool as JSON Schema, for models and for clients of the host.

Owns the direction from a tool to a schema; `parameters` owns the other one.
"""

from typing import Any

from msgspec import UNSET

from executa_protocol.manifest import Parameter, Tool
from executa_protocol.parameters import parameters_from_json_schema

__all__ = ["parameters_from_json_schema", "tool_to_json_schema"]


def tool_to_json_schema(tool: Tool) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the tool's arguments object."""
    properties = {parameter.name: _property(parameter) for parameter in tool.parameters}
    if tool.multi_account:
        properties.setdefault(
            "account", {"type": "string", "description": "Which connected account to use."}
        )
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    required = [parameter.name for parameter in tool.parameters if parameter.required]
    if required:
        schema["required"] = required
    return schema


def _property(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": parameter.type}
    if parameter.description:
        schema["description"] = parameter.description
    if parameter.enum is not UNSET:
        schema["enum"] = parameter.enum
    if parameter.default is not UNSET:
        schema["default"] = parameter.default
    if parameter.items is not UNSET:
        schema["items"] = {"type": parameter.items.type}
    return schema
