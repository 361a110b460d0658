"""Structured output: the response formats of sampling and the limits of their schemas.

Owns the structs and the bounds on size, depth and number of values. It does not
know whether a schema is a good JSON Schema; the model's provider says that.
"""

import re
from typing import Annotated, Any, Final, cast

from msgspec import Meta, Raw, Struct

from executa_protocol import codec
from executa_protocol.errors import DecodeFailure
from executa_protocol.limits import (
    RESPONSE_SCHEMA_BYTES,
    RESPONSE_SCHEMA_DEPTH,
    RESPONSE_SCHEMA_NODES,
)
from executa_protocol.methods.reading import InvalidParams

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FAULT: Final = "SAMPLING_INVALID_REQUEST"
_PATH: Final = "responseFormat.json_schema"


class JsonObjectFormat(Struct, tag_field="type", tag="json_object"):
    """Any JSON object."""


class JsonSchemaSpec(Struct, kw_only=True):
    """A schema with the name that providers want for it.

    `name` is 1 to 64 of ``A-Z a-z 0-9 _ -``. `schema` is raw JSON of at most 32 KiB,
    8 levels and 512 values.
    """

    name: str
    schema: Annotated[Raw, Meta(extra_json_schema={"type": "object"})]
    strict: bool = True


class JsonSchemaFormat(Struct, tag_field="type", tag="json_schema"):
    """JSON that fits a schema."""

    json_schema: JsonSchemaSpec


ResponseFormat = JsonObjectFormat | JsonSchemaFormat


def check_response_format(response_format: ResponseFormat) -> None:
    """Raise `InvalidParams` if the schema's name or size is outside the limits."""
    if isinstance(response_format, JsonObjectFormat):
        return
    spec = response_format.json_schema
    if not _NAME.fullmatch(spec.name):
        raise _invalid("name", "expected 1 to 64 of A-Z a-z 0-9 _ -")
    encoded = bytes(spec.schema)
    if len(encoded) > RESPONSE_SCHEMA_BYTES:
        raise _invalid("schema", f"{len(encoded):,} bytes, at most {RESPONSE_SCHEMA_BYTES:,}")
    try:
        schema = codec.decode_any(encoded)
    except DecodeFailure as fault:
        raise _invalid("schema", str(fault)) from None
    if not isinstance(schema, dict):
        raise _invalid("schema", "expected an object")
    _measure(cast("dict[str, Any]", schema))


def _measure(schema: dict[str, Any]) -> None:
    """Count values level by level, so that depth costs no recursion."""
    level: list[Any] = [schema]
    nodes, depth = 0, 0
    while level:
        nodes += len(level)
        if nodes > RESPONSE_SCHEMA_NODES:
            raise _invalid("schema", f"more than {RESPONSE_SCHEMA_NODES} values")
        below: list[Any] = []
        nests = False
        for value in level:
            if isinstance(value, dict):
                nests = True
                below.extend(cast("dict[str, Any]", value).values())
            elif isinstance(value, list):
                nests = True
                below.extend(cast("list[Any]", value))
        depth += nests
        if depth > RESPONSE_SCHEMA_DEPTH:
            raise _invalid("schema", f"nests deeper than {RESPONSE_SCHEMA_DEPTH} levels")
        level = below


def _invalid(member: str, message: str) -> InvalidParams:
    path = f"{_PATH}.{member}"
    return InvalidParams(_FAULT, f"{path}: {message}", path=path)
