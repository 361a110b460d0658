"""The manifest: every fault by its path, every tolerated spelling by its requirement."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executa_protocol.capabilities import ALLOWED
from executa_protocol.manifest import (
    Credential,
    Fault,
    Items,
    Manifest,
    ManifestError,
    Parameter,
    Runtime,
    Tool,
)
from executa_protocol.manifest_reading import read_manifest
from executa_protocol.readings import STRICT, TOLERANT, Reader
from tests.protocol.manifests import MANIFEST, PARAMETER, TOOL, only, parameter, tool
from tests.protocol.reading import encoded, without


def faults(manifest: Any, reader: Reader = TOLERANT) -> dict[str, str]:
    """Read, be refused, and hand over the faults by their paths."""
    with pytest.raises(ManifestError) as caught:
        read_manifest(encoded(manifest), reader=reader)
    assert caught.value.path == caught.value.faults[0].path
    return {fault.path: fault.message for fault in caught.value.faults}


# --- What is read ---------------------------------------------------------------------


def test_the_seed_s_manifest_is_read_in_strict_mode() -> None:
    """Seed lifecycle, Manifest declarations vs. runtime capabilities."""
    manifest = read_manifest(encoded(MANIFEST), reader=STRICT)
    assert (manifest.name, manifest.version) == ("my-tool", "0.1.0")
    assert manifest.declared() == {"llm.sample", "aps.kv"}
    assert manifest.tool("summarize") is manifest.tools[0]
    assert manifest.tool("other") is None
    assert only(manifest).required
    assert manifest.tools[0].effect == "mutating"
    assert manifest.tools[0].time_limit == 60.0


def test_a_full_manifest_survives_the_round_trip() -> None:
    manifest = Manifest(
        name="n",
        version="1.0.0",
        description="d",
        display_name="N",
        icon="🔧",
        tools=[
            Tool(
                name="t",
                description="d",
                timeout=90.0,
                streaming=True,
                multi_account=True,
                effect="read",
                approval=True,
                parameters=[
                    Parameter(name="a", type="array", items=Items("integer"), required=False),
                    Parameter(name="b", type="string", enum=["x", "y"], default="x"),
                ],
            )
        ],
        credentials=[Credential(name="API_KEY", default="k", required=False)],
        host_capabilities=["llm.sample"],
        runtime=Runtime(type="uv", min_version="1"),
    )
    assert read_manifest(msgspec.json.encode(manifest), reader=STRICT) == manifest


def test_a_decoded_manifest_is_read_as_well() -> None:
    assert read_manifest(MANIFEST, reader=STRICT) == read_manifest(encoded(MANIFEST))


def test_members_that_nobody_knows_are_ignored() -> None:
    read_manifest(encoded(MANIFEST | {"x": 1, "tools": [TOOL | {"y": 2}]}), reader=STRICT)


def test_every_allowed_capability_is_read_in_strict_mode() -> None:
    strings = sorted(ALLOWED)
    manifest = read_manifest(encoded(MANIFEST | {"host_capabilities": strings}), reader=STRICT)
    assert manifest.host_capabilities == strings


def test_a_storage_block_counts_as_its_capabilities() -> None:
    block = {"kv": True, "files": True, "scopes": {"user": "rw", "tool": "r"}}
    members = without(MANIFEST, "host_capabilities") | {"storage": block}
    assert read_manifest(encoded(members)).declared() == {"aps.kv", "aps.files"}
    assert read_manifest(encoded(members | {"storage": {}})).declared() == frozenset()


# --- Faults -----------------------------------------------------------------------------


FAULTS: list[tuple[dict[str, Any], str]] = [
    (MANIFEST | {"name": ""}, "name"),
    (MANIFEST | {"name": 5}, "name"),
    (MANIFEST | {"name": None}, "name"),
    (MANIFEST | {"tools": None}, "tools"),
    (without(MANIFEST, "name"), "name"),
    (MANIFEST | {"version": 1}, "version"),
    (MANIFEST | {"author": 1}, "author"),
    (without(MANIFEST, "tools"), "tools"),
    (MANIFEST | {"tools": []}, "tools"),
    (MANIFEST | {"tools": {}}, "tools"),
    (MANIFEST | {"tools": [TOOL, 5]}, "tools[1]"),
    (MANIFEST | {"tools": [TOOL, TOOL]}, "tools[1].name"),
    (MANIFEST | {"tools": [without(TOOL, "name")]}, "tools[0].name"),
    (tool(name=5), "tools[0].name"),
    (tool(timeout="60"), "tools[0].timeout"),
    (tool(timeout=True), "tools[0].timeout"),
    (tool(timeout=0), "tools[0].timeout"),
    (tool(timeout=86_401), "tools[0].timeout"),
    (tool(streaming="yes"), "tools[0].streaming"),
    (tool(effect="writes"), "tools[0].effect"),
    (tool(approval=1), "tools[0].approval"),
    (tool(parameters=5), "tools[0].parameters"),
    (tool(parameters=[PARAMETER, 5]), "tools[0].parameters[1]"),
    (tool(parameters=[PARAMETER, PARAMETER]), "tools[0].parameters[1].name"),
    (tool(parameters={"properties": 5}), "tools[0].parameters.properties"),
    (tool(parameters={"properties": {"a": 5}}), "tools[0].parameters.properties.a"),
    (parameter(type="text"), "tools[0].parameters[0].type"),
    (parameter(type=["string"]), "tools[0].parameters[0].type"),
    (parameter(required="yes"), "tools[0].parameters[0].required"),
    (parameter(enum=[]), "tools[0].parameters[0].enum"),
    (parameter(enum="a"), "tools[0].parameters[0].enum"),
    (parameter(type="array", items=5), "tools[0].parameters[0].items"),
    (parameter(type="array", items={"type": "x"}), "tools[0].parameters[0].items.type"),
    (parameter(type="array", items_type="x"), "tools[0].parameters[0].items_type"),
    (MANIFEST | {"credentials": [{}]}, "credentials[0].name"),
    (MANIFEST | {"credentials": {"A": {}}}, "credentials"),
    (MANIFEST | {"credentials": [{"name": "A"}] * 2}, "credentials[1].name"),
    (MANIFEST | {"credentials": [{"name": "A", "default": 5}]}, "credentials[0].default"),
    (MANIFEST | {"host_capabilities": "llm.sample"}, "host_capabilities"),
    (MANIFEST | {"host_capabilities": ["llm.sample", 5]}, "host_capabilities[1]"),
    (MANIFEST | {"runtime": "uv"}, "runtime"),
    (MANIFEST | {"runtime": {"type": 5}}, "runtime.type"),
    (MANIFEST | {"storage": {"kv": True}}, "storage"),
    (MANIFEST | {"host_capabilities": [], "storage": {"kv": 1}}, "storage.kv"),
    (
        MANIFEST | {"host_capabilities": [], "storage": {"scopes": {"x": "r"}}},
        "storage.scopes.x",
    ),
    (
        MANIFEST | {"host_capabilities": [], "storage": {"scopes": {"user": "x"}}},
        "storage.scopes.user",
    ),
]


@pytest.mark.parametrize(
    ("manifest", "path"),
    FAULTS,
)
def test_a_fault_is_named_by_its_path(manifest: Any, path: str) -> None:
    assert path in faults(manifest)


def test_all_faults_are_named_at_once() -> None:
    items = [PARAMETER | {"type": "text"}, PARAMETER | {"name": "b"}, {"name": "c", "type": "x"}]
    broken = tool(parameters=items) | {"name": 5, "host_capabilities": ["storage.user"]}
    assert faults(broken).keys() == {
        "name",
        "tools[0].parameters[0].type",
        "tools[0].parameters[2].type",
        "host_capabilities[0]",
    }


def test_the_message_of_the_error_names_every_path() -> None:
    with pytest.raises(ManifestError, match=r"tools\[0\]\.timeout: .*; tools\[0\]\.approval: "):
        read_manifest(encoded(tool(timeout=-1, approval="x")))


@pytest.mark.parametrize("word", ["storage.user", "storage.app", "storage.tool"])
def test_the_seed_s_invalid_strings_are_refused_with_a_hint(word: str) -> None:
    """R-29."""
    found = faults(MANIFEST | {"host_capabilities": [word]})
    assert 'write "aps.kv"' in found["host_capabilities[0]"]


@pytest.mark.parametrize("text", [b"[]", b"null", b"5", b"{", b"", b"\xff", b'{"name":NaN}'])
def test_what_is_no_object_is_no_manifest(text: bytes) -> None:
    with pytest.raises(ManifestError):
        read_manifest(text)


def test_a_fault_without_a_path_is_only_its_message() -> None:
    assert str(Fault("", "expected an object")) == "expected an object"
    assert str(Fault("a", "b")) == "a: b"


MEMBERS = (
    "name",
    "version",
    "tools",
    "credentials",
    "host_capabilities",
    "hostCapabilities",
    "runtime",
    "storage",
    "manifest",
)

junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "type", "items", "enum", "properties", "parameters", "kv"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(MEMBERS, junk),
    ),
    st.booleans(),
)
def test_any_manifest_is_read_or_refused_with_its_faults(
    manifest: dict[str, Any], strict: bool
) -> None:
    try:
        read = read_manifest(manifest, reader=STRICT if strict else TOLERANT, fallback_name="f")
    except ManifestError:
        return
    assert read_manifest(msgspec.json.encode(read), fallback_name="f") == read


@given(st.binary(max_size=60))
def test_any_bytes_raise_nothing_but_a_manifest_error(data: bytes) -> None:
    with pytest.raises(ManifestError):
        read_manifest(data)
