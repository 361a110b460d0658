"""What whoever runs the engine decides: limits, contracts, delegation, callbacks, retention.

Owns the shapes and their defaults; reading them from a file is the configuration's business.
"""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType, field

from executa_host.actions import limits
from executa_host.actions.records import Effect, Mode, Retry

Synchronous = Literal["FULL", "NORMAL"]
"""FULL: what is answered is on the disk. NORMAL: it survives the process, but not a power cut."""


class CapabilityConfig(Struct, frozen=True, kw_only=True):
    """What is set for a capability beside its manifest entry; UNSET leaves that as it is.

    Keys of `EngineSettings.capabilities` are ``PLUGIN.TOOL``, ``PLUGIN.*`` or ``*``; the most
    exact one counts, alone.
    """

    effect: Effect | UnsetType = UNSET
    approval: bool | UnsetType = UNSET
    approvers: tuple[str, ...] = ()
    approval_ttl_ms: int | UnsetType = UNSET
    modes: tuple[Mode, ...] | UnsetType = UNSET
    timeout_ms: int | UnsetType = UNSET
    retry: Retry | UnsetType = UNSET


class Delegation(Struct, frozen=True, kw_only=True):
    """`actor` may act for `subject`, in these capabilities (``PLUGIN.TOOL``, ``PLUGIN.*``, ``*``).

    `user_id` is whose plugins run then; by default the caller's own.
    """

    actor: str
    subject: str
    tenant: str = "default"
    capabilities: tuple[str, ...] = ("*",)
    user_id: str = ""


class Slots(Struct, frozen=True, kw_only=True):
    """How many actions run at a time (R-42): in all, of one plugin, of one tenant."""

    in_all: int = limits.RUNNING_IN_ALL
    per_plugin: int = limits.RUNNING_PER_PLUGIN
    per_tenant: int = limits.RUNNING_PER_TENANT


class CallbackSettings(Struct, frozen=True, kw_only=True):
    """Delivery of callbacks.

    `secrets` sign them, by tenant, ``*`` for every other one; a tenant without a secret has
    no callbacks. `allow` are hosts, networks (``10.0.0.0/8``) and ``host:port`` that may be
    private or spoken to without TLS.
    """

    secrets: dict[str, bytes] = {}
    allow: tuple[str, ...] = ()
    timeout_ms: int = limits.CALLBACK_TIMEOUT
    attempts: int = limits.CALLBACK_ATTEMPTS
    base_ms: int = limits.CALLBACK_BASE
    max_ms: int = limits.CALLBACK_MAX

    def __repr__(self) -> str:
        return f"CallbackSettings(tenants={sorted(self.secrets)!r}, allow={self.allow!r})"


class Retention(Struct, frozen=True, kw_only=True):
    """How long, and how many, ended actions are kept (R-43)."""

    age_ms: int = limits.RETAIN_AGE
    count: int = limits.RETAIN_COUNT
    key_outlives_ms: int = limits.KEY_OUTLIVES
    marker_age_ms: int = limits.MARKER_AGE


class EngineSettings(Struct, frozen=True, kw_only=True):
    """All of it. `expires_after_ms` bounds an action whose submission says nothing, 0 does not.

    `strict` reads arguments as strict mode does. `own_approvals`: whether a principal may
    decide about what it submitted itself.
    """

    slots: Slots = Slots()
    open_actions: int = limits.OPEN_ACTIONS
    capabilities: dict[str, CapabilityConfig] = field(default_factory=dict[str, CapabilityConfig])
    delegations: tuple[Delegation, ...] = ()
    callbacks: CallbackSettings = CallbackSettings()
    retention: Retention = Retention()
    settle_after_ms: int = limits.SETTLE_AFTER
    housekeeping_every_ms: int = limits.HOUSEKEEPING_EVERY
    expires_after_ms: int = 0
    own_approvals: bool = True
    strict: bool = False
