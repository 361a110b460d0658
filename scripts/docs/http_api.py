"""`docs/reference/http-api.md`: the endpoints of a running host, from its OpenAPI document."""

from importlib.metadata import version
from typing import Any, cast

from executa_host.api.endpoint import full_path
from executa_host.api.openapi import document
from executa_host.api.routes import ENDPOINTS
from scripts.docs.api_codes import CODES
from scripts.docs.markdown import bounds_of, code, page, schema_table, table, type_of

_REFUSAL = "[ErrorAnswer](#erroranswer)"

_INTRO = """\
`executa serve` offers this API. The OpenAPI 3.1 document is
[actions.json](../openapi/actions.json), and a running host serves it at `/v1/openapi.json`.
Bodies are JSON. A key goes into `Authorization: Bearer KEY`; `executa keys create` makes one.
Every refusal has one body, [ErrorAnswer](#erroranswer), with one of the
[codes](#error-codes) below and the status that belongs to it.

Streams are server-sent events. `Last-Event-ID` says where one goes on, and an event's `id` is
the cursor behind it, so that a client that comes back misses nothing and gets nothing twice.
"""


def api_page() -> str:
    """Every endpoint, then the error codes and the shapes."""
    spec = document(version("executa-host"))
    schemas: dict[str, Any] = {
        name: _short(schema) for name, schema in spec["components"]["schemas"].items()
    }
    parts: list[str] = [*_INTRO.splitlines(), "", "## Endpoints", ""]
    parts += table(
        ("Endpoint", "Scope", "Does"),
        (
            (f"{code(f'{e.method} {full_path(e)}')}", code(e.scope or ""), e.summary)
            for e in ENDPOINTS
        ),
    )
    for path, operations in spec["paths"].items():
        for method, operation in operations.items():
            parts += _operation(f"{method.upper()} {path}", operation)
    parts += ["## Error codes", ""]
    parts += table(
        ("Status", "Code", "What helps"),
        ((str(status), code(name), advice) for name, (status, advice) in CODES.items()),
    )
    parts += ["## Shapes", ""]
    for name in sorted(schemas):
        parts += [f"### {name}", "", *schema_table(schemas[name])]
    return page("HTTP API", parts)


def _operation(title: str, operation: dict[str, Any]) -> list[str]:
    lines = [f"### {title}", "", operation["summary"], ""]
    if text := operation.get("description"):
        lines += [text, ""]
    rows = [
        (
            code(each["name"]),
            each["in"],
            type_of(_short(each["schema"])),
            "yes" if each.get("required") else "",
            " ".join(filter(None, (each.get("description", ""), bounds_of(each["schema"])))),
        )
        for each in operation.get("parameters", ())
    ]
    if rows:
        lines += table(("Parameter", "In", "Type", "Required", "Meaning and bounds"), rows)
    if body := operation.get("requestBody"):
        lines += [f"Body: {_content(body['content'])}.", ""]
    plain: list[str] = []
    refusals: list[str] = []
    for status, response in operation["responses"].items():
        told = _content(response.get("content", {}))
        if told == _REFUSAL:
            refusals.append(status)
        else:
            plain.append(f"{status} {told}".strip())
    refused = f" Refusals: {', '.join(refusals)}." if refusals else ""
    return [*lines, f"Answers: {', '.join(plain)}.{refused}", ""]


def _content(content: dict[str, Any]) -> str:
    kinds = [
        "events" if media == "text/event-stream" else type_of(_short(value["schema"]))
        for media, value in content.items()
    ]
    return " or ".join(kinds)


def _short(schema: Any) -> Any:
    """The same schema with references by their plain names."""
    if isinstance(schema, dict):
        members = cast("dict[str, Any]", schema)
        return {
            key: value.rpartition("/")[2] if key == "$ref" else _short(value)
            for key, value in members.items()
        }
    if isinstance(schema, list):
        return [_short(each) for each in cast("list[Any]", schema)]
    return schema
