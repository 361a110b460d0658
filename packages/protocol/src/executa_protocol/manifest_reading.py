"""A manifest from JSON, with every fault that it has named by its path.

Owns what a manifest must say and which other spellings are read (R-03). The walk
goes on after a fault, so that an author sees all of them at once; in strict mode a
tolerated spelling is one fault more.
"""

import re
from typing import Any, Final, cast, get_args

from msgspec import UNSET, Raw, UnsetType

from executa_protocol import capabilities as caps
from executa_protocol import codec
from executa_protocol.errors import DecodeFailure
from executa_protocol.faults import Collector, Object, as_object
from executa_protocol.limits import MAX_TOOL_TIMEOUT
from executa_protocol.manifest import (
    Access,
    Credential,
    Effect,
    Fault,
    Manifest,
    ManifestError,
    Runtime,
    StorageBlock,
    Tool,
)
from executa_protocol.parameters import read_parameters
from executa_protocol.readings import TOLERANT, Reader

_EFFECTS: Final = get_args(Effect)
_ACCESS: Final = get_args(Access)
_CREDENTIAL_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]*")
_TEXTS: Final = ("display_name", "author", "homepage", "license", "icon", "category")


def read_manifest(
    data: bytes | Raw | Object, *, reader: Reader = TOLERANT, fallback_name: str | None = None
) -> Manifest:
    """Read a manifest, encoded or decoded.

    A manifest without a name takes `fallback_name` in tolerant mode. Raises
    `ManifestError` with all faults.
    """
    out = Collector(reader)
    try:
        value: Any = data if isinstance(data, dict) else codec.decode_any(data)
    except DecodeFailure as failure:
        raise ManifestError([Fault(failure.path, str(failure))]) from None
    root = as_object(value)
    if root is None:
        raise ManifestError([Fault("", "expected an object")])
    manifest = _manifest(_unwrapped(root, out), out, fallback_name)
    if out.faults:
        raise ManifestError(out.faults)
    return manifest


def _unwrapped(root: Object, out: Collector) -> Object:
    inner = as_object(root.get("manifest"))
    if inner is None or "tools" in root:
        return root
    out.tolerate("MANI-001", "manifest", "the manifest is wrapped in another object")
    return inner


def _manifest(root: Object, out: Collector, fallback_name: str | None) -> Manifest:
    name = out.text(root, "name", "")
    if root.get("name") is None and fallback_name:
        out.tolerate("MANI-002", "name", f"absent; {fallback_name!r} is taken")
        name = fallback_name
    elif root.get("name") in (None, ""):
        out.fault("name", "required")
    for member in ("version", "description"):
        if root.get(member) is None:
            out.tolerate("MANI-003", member, "absent")
    manifest = Manifest(
        name=name or "",
        version=out.text(root, "version", "") or "0.0.0",
        description=out.text(root, "description", "") or "",
        tools=_tools(root, out),
        credentials=_credentials(root, out),
        host_capabilities=_capabilities(root, out),
        runtime=_runtime(root, out),
        storage=_storage(root, out),
    )
    for member in _TEXTS:
        text = out.text(root, member, "")
        if text is not None:
            setattr(manifest, member, text)
    stores = [word for word in manifest.host_capabilities if word.split(".")[0] == caps.BARE_APS]
    if stores and manifest.storage is not UNSET:
        out.fault("storage", f"cannot stand beside the capability {stores[0]!r}")
    return manifest


def _tools(root: Object, out: Collector) -> list[Tool]:
    found = out.objects(root, "tools", "")
    if found is None:
        if root.get("tools") is None:
            out.fault("tools", "required")
        return []
    if not found and not root["tools"]:
        out.fault("tools", "expected at least one")
    tools = [_tool(item, path, out) for path, item in found]
    out.unique(((path, item) for path, item in found), "name")
    return tools


def _tool(item: Object, path: str, out: Collector) -> Tool:
    if "input_schema" in item and "parameters" not in item:
        out.tolerate(
            "MANI-004", f"{path}.input_schema", "ignored; describe the arguments in parameters"
        )
    if item.get("description") is None:
        out.tolerate("MANI-003", f"{path}.description", "absent")
    return Tool(
        name=out.required_text(item, "name", path),
        description=out.text(item, "description", path) or "",
        parameters=read_parameters(item.get("parameters", []), f"{path}.parameters", out),
        timeout=_timeout(item, path, out),
        streaming=out.flag(item, "streaming", path, default=False),
        multi_account=out.flag(item, "multi_account", path, default=False),
        effect=out.choice(item, "effect", path, _EFFECTS, "mutating"),
        approval=out.flag(item, "approval", path, default=False),
    )


def _timeout(item: Object, path: str, out: Collector) -> float | UnsetType:
    value = item.get("timeout")
    if value is None:
        return UNSET
    if not isinstance(value, int | float) or isinstance(value, bool):
        out.fault(f"{path}.timeout", "expected a number of seconds")
    elif not 0 < value <= MAX_TOOL_TIMEOUT:
        out.fault(f"{path}.timeout", f"expected more than 0 and at most {MAX_TOOL_TIMEOUT:.0f}")
    else:
        return float(value)
    return UNSET


def _credentials(root: Object, out: Collector) -> list[Credential]:
    found = out.objects(root, "credentials", "") or []
    credentials: list[Credential] = []
    for path, item in found:
        name = out.required_text(item, "name", path)
        if name and not _CREDENTIAL_NAME.fullmatch(name):
            out.tolerate("MANI-007", f"{path}.name", f"{name!r} is not in UPPER_SNAKE case")
        default = out.text(item, "default", path)
        credentials.append(
            Credential(
                name=name,
                display_name=out.text(item, "display_name", path) or "",
                description=out.text(item, "description", path) or "",
                required=out.flag(item, "required", path, default=True),
                sensitive=out.flag(item, "sensitive", path, default=True),
                default=UNSET if default is None else default,
            )
        )
    out.unique(found, "name")
    return credentials


def _capabilities(root: Object, out: Collector) -> list[str]:
    key = "host_capabilities"
    if key not in root and "hostCapabilities" in root:
        key = "hostCapabilities"
        out.tolerate("MANI-008", key, "spelled host_capabilities")
    value = root.get(key)
    declared = as_object(value)
    if declared is not None:
        out.tolerate("MANI-009", key, "an object instead of an array of strings")
        value = [word for word, on in declared.items() if on is not False and on is not None]
    if value is None:
        return []
    if not isinstance(value, list):
        out.fault(key, "expected an array of strings")
        return []
    words: list[str] = []
    for index, word in enumerate(cast("list[Any]", value)):
        path = f"{key}[{index}]"
        if not isinstance(word, str):
            out.fault(path, "expected a string")
        elif caps.is_invalid(word):
            out.fault(path, f"{word!r} is no capability; {caps.hint(word)}")
        else:
            if (departure := caps.departure(word)) is not None:
                out.tolerate(departure[0], path, departure[1])
            words.append(word)
    if "llm.complete" in words and "llm.sample" not in words:
        out.tolerate("MANI-010", key, 'llm.complete unlocks nothing here; write "llm.sample"')
    return words


def _runtime(root: Object, out: Collector) -> Runtime | UnsetType:
    item = out.object(root, "runtime", "")
    if item is None or "type" not in item:
        return UNSET
    version = out.text(item, "min_version", "runtime")
    return Runtime(
        type=out.required_text(item, "type", "runtime"),
        min_version=UNSET if version is None else version,
    )


def _storage(root: Object, out: Collector) -> StorageBlock | UnsetType:
    item = out.object(root, "storage", "")
    if item is None:
        return UNSET
    block = StorageBlock(
        kv=out.flag(item, "kv", "storage", default=False),
        files=out.flag(item, "files", "storage", default=False),
    )
    scopes = out.object(item, "scopes", "storage")
    if scopes is not None:
        block.scopes = {}
        for scope, access in scopes.items():
            if scope not in ("user", "app", "tool") or access not in _ACCESS:
                out.fault(f"storage.scopes.{scope}", "expected user, app or tool with r, w or rw")
            else:
                block.scopes[scope] = access
    return block
