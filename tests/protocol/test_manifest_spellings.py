"""Spellings of a manifest that tolerant mode reads, each by its requirement (R-03)."""

from typing import Any

import pytest
from msgspec import UNSET

from executa_protocol.manifest import (
    Items,
    ManifestError,
)
from executa_protocol.manifest_reading import read_manifest
from executa_protocol.readings import STRICT
from tests.protocol.manifests import MANIFEST, PARAMETER, TOOL, only, parameter, tool
from tests.protocol.reading import Listening, encoded, without

TOLERATED: list[tuple[dict[str, Any], str, str]] = [
    ({"manifest": MANIFEST}, "MANI-001", "manifest"),
    (without(MANIFEST, "version"), "MANI-003", "version"),
    (without(MANIFEST, "description"), "MANI-003", "description"),
    (tool() | {"tools": [without(TOOL, "description")]}, "MANI-003", "tools[0].description"),
    (
        MANIFEST | {"tools": [without(TOOL, "parameters") | {"input_schema": {}}]},
        "MANI-004",
        "tools[0].input_schema",
    ),
    (MANIFEST | {"host_capabilities": ["aps"]}, "MANI-005", "host_capabilities[0]"),
    (MANIFEST | {"host_capabilities": ["x.y"]}, "MANI-006", "host_capabilities[0]"),
    (MANIFEST | {"host_capabilities": ["sampling"]}, "MANI-006", "host_capabilities[0]"),
    (MANIFEST | {"credentials": [{"name": "key"}]}, "MANI-007", "credentials[0].name"),
    (
        without(MANIFEST, "host_capabilities") | {"hostCapabilities": ["llm.sample"]},
        "MANI-008",
        "hostCapabilities",
    ),
    (MANIFEST | {"host_capabilities": {"llm.sample": True}}, "MANI-009", "host_capabilities"),
    (MANIFEST | {"host_capabilities": ["llm.complete"]}, "MANI-010", "host_capabilities"),
    (tool(parameters={"properties": {}}), "MANI-011", "tools[0].parameters"),
    (parameter(default=5), "MANI-012", "tools[0].parameters[0].default"),
    (
        tool(parameters=[without(PARAMETER, "type")]),
        "MANI-013",
        "tools[0].parameters[0].type",
    ),
    (parameter(type="str"), "MANI-014", "tools[0].parameters[0].type"),
    (parameter(type="array"), "MANI-015", "tools[0].parameters[0].items"),
]


@pytest.mark.parametrize(
    ("manifest", "requirement", "path"),
    TOLERATED,
)
def test_a_tolerated_spelling_is_a_finding_and_in_strict_mode_a_fault(
    manifest: dict[str, Any], requirement: str, path: str
) -> None:
    reader = Listening()
    read_manifest(encoded(manifest), reader=reader)
    assert reader.ids == [requirement]
    assert reader.findings[0].message.startswith(f"{path}: ")
    with pytest.raises(ManifestError) as caught:
        read_manifest(encoded(manifest), reader=STRICT)
    assert [(f.path, f.requirement) for f in caught.value.faults] == [(path, requirement)]


def test_an_absent_name_is_taken_from_the_configuration() -> None:
    reader = Listening()
    nameless = without(MANIFEST, "name")
    assert read_manifest(nameless, reader=reader, fallback_name="tool-x").name == "tool-x"
    assert reader.ids == ["MANI-002"]
    with pytest.raises(ManifestError, match="MANI-002"):
        read_manifest(nameless, reader=STRICT, fallback_name="tool-x")


def test_an_empty_name_is_not_taken_from_the_configuration() -> None:
    with pytest.raises(ManifestError, match="name"):
        read_manifest(MANIFEST | {"name": ""}, fallback_name="tool-x")


def test_capabilities_that_an_object_switches_off_are_not_declared() -> None:
    switches: dict[str, Any] = {
        "llm.sample": True,
        "aps.kv": {},
        "aps.files": False,
        "web.fetch": None,
    }
    manifest = read_manifest(MANIFEST | {"host_capabilities": switches})
    assert manifest.declared() == {"llm.sample", "aps.kv"}


def test_llm_complete_beside_llm_sample_is_no_departure() -> None:
    words = ["llm.complete", "llm.sample"]
    read_manifest(MANIFEST | {"host_capabilities": words}, reader=STRICT)


def test_null_members_are_as_good_as_absent() -> None:
    nulls = {"author": None, "credentials": None, "runtime": None, "storage": None}
    manifest = read_manifest(MANIFEST | nulls | tool(timeout=None, effect=None, parameters=None))
    assert (manifest.author, manifest.credentials, manifest.runtime) == (UNSET, [], UNSET)
    assert manifest.tools[0].parameters == []


def test_items_type_is_read_as_items() -> None:
    assert only(read_manifest(parameter(type="array", items_type="integer"))).items == Items(
        "integer"
    )


@pytest.mark.parametrize(
    ("word", "kind"),
    [("str", "string"), ("int", "integer"), ("float", "number"), ("bool", "boolean")],
)
def test_python_s_names_of_types_are_understood(word: str, kind: str) -> None:
    assert only(read_manifest(parameter(type=word))).type == kind
