"""The manifest: what a plugin says about itself in answer to `describe`.

Owns the structs. They hold the one spelling that we emit; `manifest_reading` brings
the field's spellings to it, `manifest_schema` turns tools into JSON Schema and
back, and `arguments` holds a call against a tool. Members that no struct has are
ignored.
"""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

from executa_protocol.errors import DecodeFailure
from executa_protocol.limits import INVOKE_TIMEOUT

ParameterType = Literal["string", "integer", "number", "boolean", "array", "object"]
Effect = Literal["read", "idempotent", "mutating"]
Access = Literal["r", "w", "rw"]


class Fault(Struct, frozen=True):
    """One thing that is wrong: where (``tools[0].parameters[2].type``) and what.

    `requirement` is set when strict mode refused a tolerated spelling.
    """

    path: str
    message: str
    requirement: str = ""

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.message}"


class ManifestError(DecodeFailure):
    """A manifest that cannot be used. `faults` are all that were found."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(map(str, faults)), path=faults[0].path)
        self.faults = tuple(faults)


class Items(Struct):
    """What an array parameter holds."""

    type: ParameterType = "string"


class Parameter(Struct, omit_defaults=True, kw_only=True):
    """One argument of a tool. It is required unless it says otherwise.

    `enum` are the only values allowed. `items` belongs to type ``array``.
    """

    name: str
    type: ParameterType
    description: str = ""
    required: bool = True
    default: Any = UNSET
    enum: list[Any] | UnsetType = UNSET
    items: Items | UnsetType = UNSET


class Tool(Struct, omit_defaults=True, kw_only=True):
    """One callable of a plugin.

    `timeout` is seconds; 60 when absent (seed lifecycle, Five phases). `streaming` says
    that the mode is offered (R-52), `effect` what a retry may do (R-45), `approval`
    that a person decides first (R-46). `multi_account` adds an optional argument
    ``account``.
    """

    name: str
    description: str = ""
    parameters: list[Parameter] = field(default_factory=list[Parameter])
    timeout: float | UnsetType = UNSET
    streaming: bool = False
    multi_account: bool = False
    effect: Effect = "mutating"
    approval: bool = False

    @property
    def time_limit(self) -> float:
        """Seconds that an invoke of this tool may take."""
        return INVOKE_TIMEOUT if self.timeout is UNSET else self.timeout


class Credential(Struct, omit_defaults=True, kw_only=True):
    """A secret that the plugin wants with each invoke, in ``UPPER_SNAKE`` case."""

    name: str
    display_name: str = ""
    description: str = ""
    required: bool = True
    sensitive: bool = True
    default: str | UnsetType = UNSET


class Runtime(Struct, omit_defaults=True, kw_only=True):
    """How the plugin is started: ``uv``, ``npm``, ``binary`` and the like."""

    type: str
    min_version: str | UnsetType = UNSET


class StorageBlock(Struct, omit_defaults=True, kw_only=True):
    """The field's other way to declare storage; never beside an ``aps.`` capability."""

    kv: bool = False
    files: bool = False
    scopes: dict[str, Access] | UnsetType = UNSET


class Manifest(Struct, omit_defaults=True, kw_only=True):
    """A plugin's manifest (seed lifecycle, Manifest declarations vs. runtime capabilities).

    `host_capabilities` are the strings as declared; `declared()` is what counts.
    """

    name: str
    version: str
    description: str = ""
    display_name: str | UnsetType = UNSET
    author: str | UnsetType = UNSET
    homepage: str | UnsetType = UNSET
    license: str | UnsetType = UNSET
    icon: str | UnsetType = UNSET
    category: str | UnsetType = UNSET
    tools: list[Tool]
    credentials: list[Credential] = field(default_factory=list[Credential])
    host_capabilities: list[str] = field(default_factory=list[str])
    runtime: Runtime | UnsetType = UNSET
    storage: StorageBlock | UnsetType = UNSET

    def tool(self, name: str) -> Tool | None:
        """The tool of this name, or None."""
        for tool in self.tools:
            if tool.name == name:
                return tool
        return None

    def declared(self) -> frozenset[str]:
        """The capability strings that count, those that the storage block stands for included."""
        strings = set(self.host_capabilities)
        if self.storage is not UNSET:
            strings.update(["aps.kv"] * self.storage.kv)
            strings.update(["aps.files"] * self.storage.files)
        return frozenset(strings)
