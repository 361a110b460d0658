"""The OpenAPI 3.1 document, made of the table in `routes` and the structs it names."""

import re
from typing import Any, Final

import msgspec
from msgspec import Raw

from executa_nexus_stub.files import BLOB_PATH
from executa_nexus_stub.http.routes import BASE, ENDPOINTS, Endpoint, ErrorAnswer

_REF: Final = "#/components/schemas/{name}"
_JSON: Final = "application/json"


def document(version: str) -> dict[str, Any]:
    """The whole document, as plain JSON values."""
    types = [endpoint.body for endpoint in ENDPOINTS if endpoint.body is not None]
    types += [endpoint.answer for endpoint in ENDPOINTS if endpoint.answer not in (None, Raw)]
    types.append(ErrorAnswer)
    unique = list(dict.fromkeys(types))
    schemas, components = msgspec.json.schema_components(unique, ref_template=_REF)
    by_type = dict(zip(unique, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        operations = paths.setdefault(BASE + endpoint.path, {})
        operations[endpoint.method.lower()] = _operation(endpoint, by_type)
    paths[f"{BLOB_PATH}/{{name}}"] = _blobs(by_type)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Executa nexus stub",
            "version": version,
            "description": "The cloud side of the Executa protocol, at home. Each operation says "
            "in x-source whether it is stated in a seed, observed in the field or assumed.",
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint, by_type: dict[Any, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": f"{endpoint.method.lower()}_{re.sub(r'[^a-z0-9]+', '_', endpoint.path[1:])}",
        "summary": endpoint.summary,
        "x-source": endpoint.source,
        "responses": _responses(endpoint, by_type),
    }
    names = re.findall(r"{(\w+)}", endpoint.path)
    if names:
        operation["parameters"] = [_parameter(name, "path") for name in names]
    if endpoint.body is not None:
        content = {_JSON: {"schema": by_type[endpoint.body]}}
        operation["requestBody"] = {"required": True, "content": content}
    if endpoint.bearer == "host key":
        operation["security"] = [{"bearer": []}, {}]
    elif endpoint.bearer != "none":
        operation["security"] = [{"bearer": []}]
        operation["description"] = f"Bearer: {endpoint.bearer}."
    return operation


def _responses(endpoint: Endpoint, by_type: dict[Any, Any]) -> dict[str, Any]:
    refusals = {"description": "Refused.", "content": {_JSON: {"schema": by_type[ErrorAnswer]}}}
    if endpoint.stream:
        text = {"schema": {"type": "string"}}
        done = {"description": "The run's frames.", "content": {"text/event-stream": text}}
        return {"200": done, "4XX": refusals, "5XX": refusals}
    if endpoint.answer is None:
        return {"204": {"description": "Done."}, "4XX": refusals, "5XX": refusals}
    schema = {"type": "object"} if endpoint.answer is Raw else by_type[endpoint.answer]
    done = {"description": "Done.", "content": {_JSON: {"schema": schema}}}
    return {"200": done, "4XX": refusals, "5XX": refusals}


def _blobs(by_type: dict[Any, Any]) -> dict[str, Any]:
    signed = [_parameter("name", "path"), _parameter("expires", "query")]
    signed.append(_parameter("signature", "query"))
    refusals = {"description": "Refused.", "content": {_JSON: {"schema": by_type[ErrorAnswer]}}}
    octets = {"*/*": {"schema": {"type": "string", "format": "binary"}}}
    return {
        "put": {
            "operationId": "put_blob",
            "summary": "Land the bytes of an upload, at the URL that upload_begin gave.",
            "x-source": "observed",
            "parameters": signed,
            "requestBody": {"required": True, "content": octets},
            "responses": {"200": {"description": "Landed."}, "4XX": refusals},
        },
        "get": {
            "operationId": "get_blob",
            "summary": "A file's bytes, at the URL that download_url gave.",
            "x-source": "observed",
            "parameters": signed,
            "responses": {
                "200": {"description": "The file.", "content": octets},
                "206": {"description": "A range of it.", "content": octets},
                "416": {"description": "The range lies beyond the file."},
                "4XX": refusals,
            },
        },
    }


def _parameter(name: str, where: str) -> dict[str, Any]:
    return {"name": name, "in": where, "required": True, "schema": {"type": "string"}}
