"""One TOML file for a host: its plugins, its nexus, its limits, its durable actions and its API.

Owns what may stand in the file and what it means; `config_actions` and `config_serve` own a
table each, `config_reading` words the faults, and `config_secrets` finds what the file only
names. Relative paths are relative to the file's folder, which is also where plugins run unless
they say otherwise. ``examples/host.toml`` shows every name.
"""

import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import Struct

from executa_host.config_actions import ActionsConfig, read_actions
from executa_host.config_reading import ConfigError, Fault, Table
from executa_host.config_secrets import Secrets
from executa_host.config_serve import ServeConfig, read_serve
from executa_host.nexus.direct import in_process
from executa_host.nexus.http import KEY_ENV, HttpNexus, NexusTimeouts, read_base
from executa_host.nexus.narrowed import NarrowedNexus, Narrowing
from executa_host.patience import Patience
from executa_host.spec import PluginSpec
from executa_host.transcripts.recorder import Recorder
from executa_protocol.errors import UsageError
from executa_protocol.limits import MAX_TOOL_TIMEOUT, STARTS_AT_ONCE
from executa_protocol.nexus import Caps, Nexus
from executa_protocol.transcript import Trace

if TYPE_CHECKING:
    from executa_host.host import Host

_LEAST_SECONDS: Final = 0.001
_MOST_COUNTED: Final = 2**31
_NAMES: Final = '["AWS_PROFILE"]'
_CHAPTERS: Final = ("sampling", "agent", "storage", "files")


class NexusConfig(Struct, frozen=True, kw_only=True):
    """Which nexus: `kind` ``stub`` is one in this process, ``http`` one at `url`.

    `entry` is its name in the entry-point group, `options` are that nexus's own.
    """

    kind: str = "stub"
    entry: str = "stub"
    options: dict[str, Any] = {}
    url: str = ""
    key: str = ""
    timeouts: NexusTimeouts = NexusTimeouts()

    def __repr__(self) -> str:
        return f"NexusConfig(kind={self.kind!r}, entry={self.entry!r}, url={self.url!r})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        """Keeps pretty printers from the key."""
        return [("kind", self.kind), ("entry", self.entry), ("url", self.url)]

    def build(self) -> Nexus:
        """The nexus. Raises `UsageError` if it is not installed or refuses its options."""
        if self.kind == "http":
            return HttpNexus(self.url, key=self.key, timeouts=self.timeouts)
        return in_process(self.entry, self.options)


class HostConfig(Struct, frozen=True, kw_only=True):
    """What a configuration file says, with defaults for what it does not.

    `narrowed` holds what this host takes away from the grants of a plugin. `hide_env` are
    the environment variables that no plugin inherits: those that the file lists, and those
    that it takes secrets from (R-27). `unset` are the latter that are not set.
    """

    file: Path
    plugins: tuple[PluginSpec, ...] = ()
    nexus: NexusConfig = NexusConfig()
    narrowed: dict[str, Narrowing] = {}
    strict: bool = False
    starts_at_once: int = STARTS_AT_ONCE
    idle_after: float | None = None
    patience: Patience = Patience()
    actions: ActionsConfig = ActionsConfig()
    serve: ServeConfig = ServeConfig()
    hide_env: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()

    def build_nexus(self) -> Nexus:
        """The nexus with what the file takes away. Raises `UsageError`."""
        nexus = self.nexus.build()
        return NarrowedNexus(nexus, self.narrowed) if self.narrowed else nexus

    def build(self, *, trace: Trace | None = None, recorder: Recorder | None = None) -> "Host":
        """A host that knows every plugin of the file and closes its nexus with itself.

        `recorder` writes a transcript of it, without the secrets of the file.
        Raises `UsageError` for a nexus that cannot be had.
        """
        # Not above: the host offers `from_config` and would import itself.
        from executa_host.host import Host  # noqa: PLC0415

        if recorder is not None and self.nexus.key:
            recorder.know("key", self.nexus.key)
        host = Host(
            self.build_nexus(),
            strict=self.strict,
            trace=trace,
            closes_nexus=True,
            hide_env=self.hide_env,
            idle_after=self.idle_after,
            starts_at_once=self.starts_at_once,
            patience=self.patience,
            recorder=recorder,
        )
        for spec in self.plugins:
            host.add(spec)
        return host


def read_config(path: str | Path, *, environ: Mapping[str, str] | None = None) -> HostConfig:
    """Read and check a configuration file, and the secrets that it names.

    `environ` is this process's environment unless it is given. Raises `ConfigError` with
    every fault and its path, and `UsageError` for a file that cannot be read at all.
    """
    file = Path(path).absolute()
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as fault:
        msg = f"{file}: the configuration cannot be read: {fault.strerror}"
        raise UsageError(msg) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise ConfigError(file, [Fault("", f"not TOML: {fault}")]) from None
    faults: list[Fault] = []
    found = _Reading(file, faults, os.environ if environ is None else environ).read(values)
    if faults:
        raise ConfigError(file, faults)
    return found


class _Reading:
    """Reads the tables of one file."""

    def __init__(self, file: Path, faults: list[Fault], environ: Mapping[str, str]) -> None:
        self._file = file
        self._base = file.parent
        self._faults = faults
        self._environ = environ
        self._secrets = Secrets(file.parent, environ)
        self._narrowed: dict[str, Narrowing] = {}

    def read(self, values: Mapping[str, Any]) -> HostConfig:
        root = Table(values, "", self._faults)
        host = root.table("host")
        starts = host.number("starts_at_once", 1, _MOST_COUNTED, whole=True)
        found: dict[str, Any] = {
            "strict": host.flag("strict", default=False),
            "starts_at_once": STARTS_AT_ONCE if starts is None else starts,
            "idle_after": host.number("idle_after", _LEAST_SECONDS, MAX_TOOL_TIMEOUT),
        }
        hidden = host.texts("hide_env", _NAMES)
        host.finish()
        patience = _seconds(root.table("limits"), Patience.__struct_fields__)
        nexus = self._nexus(root.table("nexus"))
        actions = read_actions(
            root.table("actions"), self._secrets, self._base, strict=found["strict"]
        )
        serve = read_serve(root.table("serve"), self._base)
        plugins = root.table("plugins")
        specs = [
            spec for name in plugins.names() if (spec := self._plugin(plugins, name)) is not None
        ]
        root.finish()
        return HostConfig(
            file=self._file,
            plugins=tuple(specs),
            nexus=nexus,
            narrowed=self._narrowed,
            patience=Patience(**patience),
            actions=actions,
            serve=serve,
            hide_env=(*hidden, *sorted(self._secrets.named)),
            unset=tuple(sorted(self._secrets.unset)),
            **found,
        )

    # --- Plugins -----------------------------------------------------------------------

    def _plugin(self, plugins: Table, name: str) -> PluginSpec | None:
        before = len(self._faults)
        table = plugins.table(name)
        if not name or "." in name or any(c.isspace() for c in name):
            plugins.fault(name, "expected a name without dots or spaces")
        command = table.texts("command", '["python", "plugin.py"]')
        if "command" not in table or (command and not command[0]):
            table.fault("command", 'expected the program, such as ["python", "plugin.py"]')
        env_mode, env = self._env(table)
        timeouts = table.table("tool_timeouts")
        spec_options: dict[str, Any] = {
            "cwd": str(self._base / Path(table.text("cwd", ".")).expanduser()),
            "env": env,
            "secret_env": tuple(name for name in env if env[name] in self._secrets.given),
            "env_mode": env_mode,
            "hide_env": table.texts("hide_env", _NAMES),
            "type": table.choice("type", ("program", "binary"), "program"),
            "executa_tool_id": table.text("tool_id"),
            "credentials": self._secrets.credentials(table.table("credentials")),
            "tool_timeouts": _seconds(timeouts, timeouts.names()),
            "file_transport": table.flag("file_transport", default=True),
            "idle_after": table.number("idle_after", _LEAST_SECONDS, MAX_TOOL_TIMEOUT),
        }
        if "grants" in table:
            self._narrowed[name] = _narrowing(table.table("grants"))
        table.finish()
        if len(self._faults) > before:
            return None
        return PluginSpec(name=name, command=command, **spec_options)

    def _env(self, table: Table) -> tuple[str, dict[str, str]]:
        """R-27: ``env = "minimal"`` is an allow-list; a table adds variables to either."""
        mode = table.choice("env_mode", ("user", "minimal"), "user")
        if table.take("env") in ("user", "minimal"):
            return cast("str", table.take("env")), {}
        return mode, self._secrets.environment(table.table("env"))

    # --- Nexus -------------------------------------------------------------------------

    def _nexus(self, table: Table) -> NexusConfig:
        kind = table.choice("kind", ("stub", "http"), "stub")
        if kind == "stub":
            options = table.take("options")
            entry = table.text("entry", "stub")
            if options is not None and not isinstance(options, dict):
                table.table("options")
            table.finish()
            return NexusConfig(entry=entry, options=cast("dict[str, Any]", options or {}))
        url = table.text("url")
        if not url:
            table.fault("url", 'expected the address of nexus, such as "https://nexus.example"')
        else:
            try:
                read_base(url)
            except UsageError as fault:
                table.fault("url", str(fault).partition(": ")[2])
        key = self._key(table)
        times = _seconds(table.table("timeouts"), NexusTimeouts.__struct_fields__)
        table.finish()
        return NexusConfig(kind=kind, url=url, key=key, timeouts=NexusTimeouts(**times))

    def _key(self, table: Table) -> str:
        if "key" not in table:
            return self._environ.get(KEY_ENV, "")
        return self._secrets.wanted(table, "key")


def _seconds(table: Table, names: Iterable[str]) -> dict[str, float]:
    """Those of the named members that are there, in seconds."""
    given = {name: table.number(name, _LEAST_SECONDS, MAX_TOOL_TIMEOUT) for name in names}
    table.finish()
    return {name: float(seconds) for name, seconds in given.items() if seconds is not None}


def _narrowing(table: Table) -> Narrowing:
    """What `grants` of a plugin takes away from what nexus grants."""
    found: dict[str, Any] = {name: table.flag(name, default=True) for name in _CHAPTERS}
    found |= {
        name: table.number(name, 0, _MOST_COUNTED, whole=True) for name in Caps.__struct_fields__
    }
    if table.take("tools") != []:
        found["tools"] = table.texts("tools", '["notebook.recall"]') if "tools" in table else None
    else:  # none at all, which is something else than no word about them
        found["tools"] = ()
    table.finish()
    return Narrowing(**found)
