"""The OpenAPI 3.1 document, made of the table in `routes` and the structs it names.

``python -m executa_host.api FILE`` writes it; a test holds the checked-in copy
current.
"""

import re
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from executa_host.api.endpoint import BASE, Endpoint, full_path
from executa_host.api.reading import IDEMPOTENCY_KEY
from executa_host.api.refusal import ErrorAnswer
from executa_host.api.routes import ENDPOINTS
from executa_protocol.actions import UNKNOWN
from executa_protocol.limits import IDEMPOTENCY_KEY_CHARS

_REF: Final = "#/components/schemas/{name}"
_JSON: Final = "application/json"
_IDS: Final = {
    "action_id": {"type": "string", "pattern": "^act_[0-7][0-9A-HJKMNP-TV-Z]{25}$"},
    "session_id": {"type": "string", "pattern": "^ses_[0-7][0-9A-HJKMNP-TV-Z]{25}$"},
}
_WORDS: Final = {
    400: "The request is wrong; `path` says where.",
    401: "No key, or none that is valid.",
    403: "The key does not allow it.",
    404: "Not there, or not to be seen by this key.",
    408: "The body took too long.",
    409: "The record is in a state that the request does not fit.",
    410: "It was there: removed, spent or revoked.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    503: "Not now; try again later.",
}


def document(release: str) -> dict[str, Any]:
    """The whole document, as plain JSON values."""
    kinds = [each for endpoint in ENDPOINTS for each in (endpoint.body, endpoint.answer) if each]
    unique = list(dict.fromkeys([*kinds, ErrorAnswer]))
    schemas, components = msgspec.json.schema_components(unique, ref_template=_REF)
    by_type = dict(zip(unique, schemas, strict=True))
    components |= _shared(components)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        operations = paths.setdefault(full_path(endpoint), {})
        operations[endpoint.method.lower()] = _operation(endpoint, by_type)
    paths[f"{BASE}/openapi.json"] = {"get": _itself()}
    found = {
        "openapi": "3.1.0",
        "info": {
            "title": "Executa host",
            "version": release,
            "description": "Durable actions and sessions on the tools of a host's plugins. Times "
            "are epoch milliseconds. Every refusal has the one body, ErrorAnswer.",
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }
    return cast("dict[str, Any]", msgspec.json.decode(msgspec.json.encode(found)))


def _shared(components: dict[str, Any]) -> dict[str, Any]:
    """Answers that no struct describes: an unknown action is told beside the refusal."""
    return {
        "UnknownAction": {
            "title": "UnknownAction",
            "type": "object",
            "properties": {
                "action": {
                    "type": "object",
                    "properties": {
                        "action_id": {"type": "string"},
                        "state": {"const": UNKNOWN},
                    },
                    "required": ["action_id", "state"],
                },
                "error": components["ErrorAnswer"]["properties"]["error"],
            },
            "required": ["action", "error"],
        }
    }


def _operation(endpoint: Endpoint, by_type: dict[Any, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": f"{endpoint.group}_{endpoint.handler}",
        "tags": [endpoint.group],
        "summary": endpoint.summary,
        "parameters": _parameters(endpoint),
        "responses": _responses(endpoint, by_type),
    }
    if endpoint.body is not None:
        content = {_JSON: {"schema": by_type[endpoint.body]}}
        required = bool(_properties(endpoint.body)[1])
        operation["requestBody"] = {"required": required, "content": content}
    if endpoint.scope is not None:
        operation["security"] = [{"bearer": []}]
        operation["description"] = f"Scope `{endpoint.scope}`."
    return operation


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": _IDS.get(name, {"type": "string", "minLength": 1}),
        }
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]
    properties, required = _properties(endpoint.query)
    for name, schema in properties.items():
        parameter: dict[str, Any] = {"name": name, "in": "query", "schema": schema}
        if text := schema.pop("description", ""):
            parameter["description"] = text
        if name in required:
            parameter["required"] = True
        if schema.get("type") == "array":
            parameter |= {"style": "form", "explode": False}
        found.append(parameter)
    if endpoint.stream:
        text = "Where a stream goes on: the id of the last event that was taken."
        header = {"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"}}
        found.append({**header, "description": text})
    if endpoint.keyed:
        text = "The same as `idempotency_key` in the body, for clients that send it here."
        schema = {"type": "string", "maxLength": IDEMPOTENCY_KEY_CHARS}
        header = {"name": IDEMPOTENCY_KEY, "in": "header", "schema": schema}
        found.append({**header, "description": text})
    return found


def _properties(kind: type[Struct]) -> tuple[dict[str, Any], list[str]]:
    """The members of a struct, each with its schema written out."""
    (_,), components = msgspec.json.schema_components([kind], ref_template=_REF)
    own = components[kind.__name__]
    properties: dict[str, Any] = {
        name: _written_out(schema, components) for name, schema in own["properties"].items()
    }
    return properties, own["required"]


def _written_out(schema: Any, components: dict[str, Any]) -> Any:
    if isinstance(schema, dict):
        members = cast("dict[str, Any]", schema)
        if "$ref" in members:
            target = components[members["$ref"].rpartition("/")[2]]
            rest = {key: value for key, value in members.items() if key != "$ref"}
            return {**_written_out(target, components), **rest}
        return {key: _written_out(value, components) for key, value in members.items()}
    if isinstance(schema, list):
        return [_written_out(item, components) for item in cast("list[Any]", schema)]
    return schema


def _responses(endpoint: Endpoint, by_type: dict[Any, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {_JSON: {"schema": by_type[endpoint.answer]}}
    found: dict[str, Any] = {}
    for status in endpoint.statuses:
        found[str(status)] = {"description": "Done.", "content": content}
    if endpoint.stream:
        stream = {"text/event-stream": {"schema": {"type": "string"}}}
        found["200"] = {"description": "Events.", "content": content | stream}
        found["204"] = {"description": "The log has ended, and nothing follows the cursor."}
    statuses = {400, *endpoint.refusals}
    if endpoint.scope is not None:
        statuses |= {401, 403, 503}
    if endpoint.body is not None:
        statuses |= {408, 413, 415}
    for status in sorted(statuses - set(endpoint.statuses)):
        schema: Any = by_type[ErrorAnswer]
        if endpoint.handler == "get" and endpoint.group == "actions" and status == 404:
            schema = {"$ref": _REF.format(name="UnknownAction")}
        found[str(status)] = {
            "description": _WORDS[status],
            "content": {_JSON: {"schema": schema}},
        }
    return found


def _itself() -> dict[str, Any]:
    content = {_JSON: {"schema": {"type": "object"}}}
    return {
        "operationId": "openapi",
        "tags": ["health"],
        "summary": "This document.",
        "responses": {"200": {"description": "Done.", "content": content}},
    }


def write(path: Path) -> None:
    """Write the document of this version."""
    text = msgspec.json.format(msgspec.json.encode(document(version("executa-host"))), indent=2)
    path.write_bytes(text + b"\n")
