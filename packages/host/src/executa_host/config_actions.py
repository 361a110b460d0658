"""What a host's configuration file says about durable actions: the table ``[actions]``.

Owns its names and bounds. Times are seconds in the file, as in all of it, and milliseconds in
the settings of the engine. What a setting does is the engine's business.
"""

from pathlib import Path
from typing import Any, Final, cast

from msgspec import UNSET, Struct, UnsetType

from executa_host.actions import limits
from executa_host.actions.addresses import check_allowed
from executa_host.actions.records import Effect, Mode, Retry
from executa_host.actions.settings import (
    CallbackSettings,
    CapabilityConfig,
    Delegation,
    EngineSettings,
    Retention,
    Slots,
    Synchronous,
)
from executa_host.config_reading import Table
from executa_host.config_secrets import Secrets
from executa_protocol.errors import UsageError
from executa_protocol.limits import MAX_TOOL_TIMEOUT

_SECOND: Final = 1000
_LEAST: Final = 0.001
_LONGEST: Final = limits.EXPIRY_MAX / _SECOND
_MOST: Final = 2**31
_CAPABILITY: Final = '["notebook.recall", "brief.*"]'


class ActionsConfig(Struct, frozen=True, kw_only=True):
    """`settings` are the engine's. `store` is the file of durable work, None for the user's own.

    `synchronous` ``FULL`` has what is answered on the disk; ``NORMAL`` is faster, and a power
    cut may take the last of it.
    """

    settings: EngineSettings = EngineSettings()
    store: Path | None = None
    synchronous: Synchronous = "FULL"


def read_actions(table: Table, secrets: Secrets, base: Path, *, strict: bool) -> ActionsConfig:
    """Read the table; faults are remembered by it. Relative paths are relative to `base`."""
    store = table.text("store")
    settings = EngineSettings(
        slots=_slots(table.table("slots")),
        open_actions=_count(table, "open_actions", limits.OPEN_ACTIONS),
        capabilities=_capabilities(table.table("capabilities")),
        delegations=tuple(_delegation(each) for each in table.tables("delegations")),
        callbacks=_callbacks(table.table("callbacks"), secrets),
        retention=_retention(table.table("retention")),
        settle_after_ms=_time(table, "settle_after", limits.SETTLE_AFTER),
        housekeeping_every_ms=_time(table, "housekeeping_every", limits.HOUSEKEEPING_EVERY),
        expires_after_ms=_time(table, "expires_after", 0),
        own_approvals=table.flag("own_approvals", default=True),
        strict=strict,
    )
    synchronous = table.choice("synchronous", ("FULL", "NORMAL"), "FULL")
    table.finish()
    return ActionsConfig(
        settings=settings,
        store=base / Path(store).expanduser() if store else None,
        synchronous=cast("Synchronous", synchronous),
    )


def _slots(table: Table) -> Slots:
    default = Slots()
    found = {name: _count(table, name, getattr(default, name)) for name in Slots.__struct_fields__}
    table.finish()
    return Slots(**found)


def _retention(table: Table) -> Retention:
    kept = Retention(
        age_ms=_time(table, "age", limits.RETAIN_AGE),
        count=_count(table, "count", limits.RETAIN_COUNT, least=0),
        key_outlives_ms=_time(table, "key_outlives", limits.KEY_OUTLIVES),
        marker_age_ms=_time(table, "marker_age", limits.MARKER_AGE),
    )
    table.finish()
    return kept


def _callbacks(table: Table, secrets: Secrets) -> CallbackSettings:
    allow = table.texts("allow", '["hooks.internal:8443", "10.0.0.0/8"]')
    for place, entry in enumerate(allow):
        try:
            check_allowed(entry)
        except UsageError as fault:
            table.fault(f"allow[{place}]", str(fault))
    given = table.table("secrets")
    settings = CallbackSettings(
        secrets={
            tenant: secret.encode()
            for tenant in given.names()
            if (secret := secrets.wanted(given, tenant))
        },
        allow=allow,
        timeout_ms=_time(table, "timeout", limits.CALLBACK_TIMEOUT),
        attempts=_count(table, "attempts", limits.CALLBACK_ATTEMPTS),
        base_ms=_time(table, "base", limits.CALLBACK_BASE),
        max_ms=_time(table, "max", limits.CALLBACK_MAX),
    )
    table.finish()
    return settings


def _delegation(table: Table) -> Delegation:
    for name in ("actor", "subject"):
        if name not in table:
            table.fault(name, "expected a principal")
    found = Delegation(
        actor=table.text("actor"),
        subject=table.text("subject"),
        tenant=table.text("tenant", "default"),
        capabilities=table.texts("capabilities", _CAPABILITY) or ("*",),
        user_id=table.text("user_id"),
    )
    table.finish()
    return found


def _capabilities(table: Table) -> dict[str, CapabilityConfig]:
    found: dict[str, CapabilityConfig] = {}
    for name in table.names():
        plugin, _, tool = name.partition(".")
        if name != "*" and not (plugin and tool):
            table.fault(name, 'expected "PLUGIN.TOOL", "PLUGIN.*" or "*"')
        found[name] = _capability(table.table(name))
    return found


def _capability(table: Table) -> CapabilityConfig:
    given: dict[str, Any] = {"approvers": table.texts("approvers", '["ada"]')}
    if "effect" in table:
        given["effect"] = Effect(table.choice("effect", tuple(Effect), Effect.MUTATING))
    if "approval" in table:
        given["approval"] = table.flag("approval", default=False)
    if "modes" in table:
        given["modes"] = _modes(table)
    given["timeout_ms"] = _set_time(table, "timeout", MAX_TOOL_TIMEOUT)
    given["approval_ttl_ms"] = _set_time(table, "approval_ttl", _LONGEST)
    if "retry" in table:
        given["retry"] = _retry(table.table("retry"))
    table.finish()
    return CapabilityConfig(**given)


def _modes(table: Table) -> tuple[Mode, ...]:
    words = table.texts("modes", '["sync", "async"]')
    unknown = [word for word in words if word not in set(Mode)]
    if unknown or not words:
        table.fault("modes", f"expected some of {', '.join(Mode)}")
        return ()
    return tuple(Mode(word) for word in words)


def _retry(table: Table) -> Retry:
    default = Retry()
    retry = Retry(
        attempts=_count(table, "attempts", default.attempts),
        base_ms=_time(table, "base", default.base_ms),
        max_ms=_time(table, "max", default.max_ms),
    )
    table.finish()
    return retry


# --- Members ---------------------------------------------------------------------------------


def _count(table: Table, name: str, default: int, least: int = 1) -> int:
    value = table.number(name, least, _MOST, whole=True)
    return default if value is None else int(value)


def _time(table: Table, name: str, default_ms: int) -> int:
    """Milliseconds of a time in seconds."""
    value = _set_time(table, name, _LONGEST)
    return default_ms if isinstance(value, UnsetType) else value


def _set_time(table: Table, name: str, longest: float) -> int | UnsetType:
    seconds = table.number(name, _LEAST, longest)
    return UNSET if seconds is None else round(seconds * _SECOND)
