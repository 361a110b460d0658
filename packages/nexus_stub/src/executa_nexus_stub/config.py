"""The stub's settings: one struct, read from a mapping, every member with a default.

Owns names, types and defaults. The defaults let a demo run without any file. Keys and
secrets of models come from the environment and never from here.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from executa_nexus_stub.fault_text import read_faults
from executa_nexus_stub.faults import FaultConfig
from executa_nexus_stub.grants import Plan, PluginGrant, User
from executa_nexus_stub.models.base import Format
from executa_protocol.errors import UsageError
from executa_protocol.limits import AGENT_RUN_TIMEOUT, TOKEN_TTL


class ModelSpec(Struct, kw_only=True, forbid_unknown_fields=True):
    """One model of the catalogue.

    `kind` ``fixture`` needs `path`, a file in the field's JSONL format. `kind` ``openai`` needs
    `base_url`, and `key_env`, the name of the environment variable with its key;
    `upstream_model` is its name there. `record` is a file that answers are appended to,
    in the format that `fixture` reads.
    """

    name: str
    kind: Literal["offline", "fixture", "openai"] = "offline"
    cost: float = 1.0
    formats: tuple[Format, ...] = ("text", "json_object", "json_schema")
    active: bool = True
    path: str = ""
    base_url: str = ""
    key_env: str = ""
    upstream_model: str = ""
    record: str = ""


class AgentLimits(Struct, kw_only=True, forbid_unknown_fields=True):
    """Lives and bounds of agent sessions, in seconds, tokens and messages.

    *Observed*: idle 30 min, at most 24 h, ten runs a user, 4,096 tokens a run unless it
    asks for more. *Assumed*: how long a run waits for a host's tool, and how much of a
    thread is remembered.
    """

    idle: float = 1800.0
    max_life: float = 86_400.0
    run_max_tokens: int = 4096
    tool_wait: float = AGENT_RUN_TIMEOUT
    thread_messages: int = 200


class StubConfig(Struct, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be set.

    `grant` is what a plugin gets that no user configured; `users` override it by plugin
    name. With `open_to_all` false only configured users may come in. `lookup_tokens`
    recognises tokens of this process without verifying their signature (R-39).
    `public_url` is what signed file URLs begin with; empty: a server on loopback that
    starts with the first upload or download. `data_dir` is a folder that keeps keys and
    files between runs; empty: they are kept in memory alone. `host_key_env` names the environment
    variable with the key that hosts must show at the HTTP door; empty: none is asked for.
    """

    grant: PluginGrant = PluginGrant()
    users: dict[str, User] = msgspec.field(default_factory=dict[str, User])
    plans: dict[str, Plan] = msgspec.field(default_factory=dict[str, Plan])
    open_to_all: bool = True
    models: list[ModelSpec] = msgspec.field(default_factory=list[ModelSpec])
    agent: AgentLimits = msgspec.field(default_factory=AgentLimits)
    token_ttl: float = TOKEN_TTL
    lookup_tokens: bool = True
    public_url: str = ""
    data_dir: str = ""
    host_key_env: str = ""
    faults: FaultConfig = FaultConfig()


def read_config(values: Mapping[str, Any] | StubConfig | None) -> StubConfig:
    """The settings in `values`. Raises `UsageError` that names what is wrong.

    `faults` may also be the text that a person types, such as ``seed=7``.
    """
    if isinstance(values, StubConfig):
        return values
    given = dict(values or {})
    if isinstance(given.get("faults"), str):
        given["faults"] = read_faults(given["faults"])
    try:
        return msgspec.convert(given, StubConfig)
    except msgspec.ValidationError as fault:
        msg = f"nexus stub configuration: {fault}"
        raise UsageError(msg) from None
