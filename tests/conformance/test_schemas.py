"""The kit's JSON Schema validator, held against a library's."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from executa_conformance import schemas
from executa_conformance.schemas import UnknownKeyword, validate
from executa_protocol.schema import schemas as protocol_schemas

NAMES = sorted(protocol_schemas())

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner)
)


def members_of(name: str) -> list[str]:
    """Every member that a schema knows anywhere."""
    document = protocol_schemas()[name]
    definitions = [document, *document.get("$defs", {}).values()]
    found = {key for part in definitions for key in part.get("properties", {})}
    return sorted(found) or ["nothing"]


def objects_for(name: str) -> st.SearchStrategy[Any]:
    """Objects that use the schema's own names, right and wrong."""
    keys = st.sampled_from(members_of(name))
    inner = st.recursive(
        scalars,
        lambda part: st.lists(part, max_size=3) | st.dictionaries(keys, part, max_size=4),
        max_leaves=8,
    )
    return st.dictionaries(keys, inner, max_size=6)


@pytest.mark.parametrize("name", NAMES)
def test_the_validator_agrees_with_a_library_on_every_schema(name: str) -> None:
    document = protocol_schemas()[name]
    library: Any = Draft202012Validator(document)

    @settings(max_examples=15)
    @given(objects_for(name) | values)
    def agree(value: Any) -> None:
        assert (not schemas.faults(value, name)) == library.is_valid(value)

    agree()


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, True),
        ({"type": "integer"}, 1.5),
        ({"type": ["string", "null"]}, 3),
        ({"enum": [1]}, True),
        ({"const": 0}, False),
        ({"pattern": "^a"}, "b"),
        ({"minimum": 1}, 0),
        ({"maximum": 1}, 2),
        ({"minLength": 1}, ""),
        ({"maxLength": 1}, "ab"),
        ({"minItems": 1}, []),
        ({"maxItems": 0}, [1]),
        ({"additionalProperties": False, "properties": {"a": True}}, {"b": 1}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1),
        (False, 1),
    ],
)
def test_each_keyword_can_fail(schema: Any, value: Any) -> None:
    root: dict[str, Any] = {}
    library: Any = Draft202012Validator(schema)

    assert list(validate(value, schema, root, "$"))
    assert not library.is_valid(value)


def test_a_keyword_that_is_not_known_is_an_error_and_no_pass() -> None:
    with pytest.raises(UnknownKeyword, match="uniqueItems"):
        list(validate([1, 1], {"uniqueItems": True}, {}, "$"))


def test_a_fault_says_where_it_is() -> None:
    found = schemas.faults({"key": "k", "value": 1, "tags": ["a", 7]}, "storage.set.params")

    assert found == ["$.tags[1]: expected string, got integer"]
