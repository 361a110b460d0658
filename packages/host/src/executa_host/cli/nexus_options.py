"""Which nexus a plugin is tried against, and what it may there: the options for that.

Owns their words and what they stand for. By default nexus is the stub in this process, which
grants everything and keeps storage in memory. A nexus that is somebody else's is only taken
away from: its models, faults and storage are its own.
"""

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter
from msgspec import structs

from executa_host.cli import exits
from executa_host.cli.nexuses import open_cloud, over_http
from executa_host.cli.recording import recording
from executa_host.host import Host
from executa_host.nexus.narrowed import NarrowedNexus, Narrowing
from executa_host.patience import Patience
from executa_host.spec import PluginSpec
from executa_protocol.nexus import Nexus
from executa_protocol.transcript import AnyEvent

MODEL_KEY_ENV: Final = "EXECUTA_MODEL_KEY"
"""The key of an OpenAI-compatible endpoint; no plugin inherits it (R-27)."""

_SWITCHES: Final = ("sampling", "agent", "storage", "files")
_CAPS: Final = ("sampling_calls", "tokens_per_call", "tokens", "storage_calls")
_ON_OFF: Final = {"on": True, "yes": True, "true": True, "off": False, "no": False, "false": False}
_GRANT_HELP: Final = (
    "sampling=off and the like for agent, storage and files; tools=PLUGIN.TOOL,...; "
    f"or a cap, {', '.join(_CAPS)}=NUMBER. May be given again."
)


@Parameter(name="*", group="Nexus")
@dataclass(frozen=True)
class NexusOptions:
    """What `dev` and the one-shot commands share."""

    nexus: Annotated[
        str,
        Parameter(
            help="direct: in this process. http: a stub of its own. Or an address; the key for "
            "it is in EXECUTA_NEXUS_KEY."
        ),
    ] = "direct"
    model: Annotated[
        str,
        Parameter(
            help="offline, or NAME@URL for an OpenAI-compatible endpoint; its key is in "
            f"{MODEL_KEY_ENV}."
        ),
    ] = "offline"
    fixture: Annotated[Path | None, Parameter(help="A JSONL file that answers for the model.")] = (
        None
    )
    no_sampling: Annotated[bool, Parameter(help="As if the user allowed no sampling.")] = False
    no_agent: Annotated[bool, Parameter(help="As if the user allowed no agent sessions.")] = False
    storage: Annotated[
        str, Parameter(help="off, memory, or a folder that keeps it between runs.")
    ] = "memory"
    grant: Annotated[tuple[str, ...], Parameter(help=_GRANT_HELP)] = ()
    faults: Annotated[str, Parameter(help="Have nexus fail on purpose, such as seed=7.")] = ""
    credential: Annotated[
        tuple[str, ...],
        Parameter(
            help="A credential of the plugin: NAME takes it from that environment variable, "
            "NAME=@FILE from a file. May be given again."
        ),
    ] = ()
    tool_id: Annotated[str, Parameter(help="The id that nexus knows the plugin by.")] = ""

    def narrowing(self) -> Narrowing:
        """What the user does not allow. Raises `exits.Stop`."""
        found: dict[str, Any] = dict(map(_granted, self.grant))
        if self.no_sampling:
            found["sampling"] = False
        if self.no_agent:
            found["agent"] = False
        if self.storage == "off":
            found["storage"] = found["files"] = False
        return Narrowing(**found)

    def stub_settings(self) -> dict[str, Any]:
        """The same as settings of the stub. Raises `exits.Stop`."""
        narrowing = self.narrowing()
        given = {
            name: value
            for name, value in structs.asdict(narrowing).items()
            if value is not None and value is not True
        }
        grant: dict[str, Any] = {name: given[name] for name in _SWITCHES if name in given}
        caps = {name: given[name] for name in _CAPS if name in given}
        if caps:
            grant["caps"] = caps
        if narrowing.tools is not None:
            grant["granted_tools"] = list(narrowing.tools)
        settings: dict[str, Any] = {"grant": grant} if grant else {}
        models = self._models()
        if models:
            settings["models"] = models
        if self.storage not in ("off", "memory"):
            settings["data_dir"] = str(Path(self.storage).absolute())
        return settings

    def equip(self, spec: PluginSpec) -> PluginSpec:
        """The plugin with its id and its credentials. Raises `exits.Stop`."""
        if self.tool_id:
            spec = structs.replace(spec, executa_tool_id=self.tool_id)
        if not self.credential:
            return spec
        found = dict(map(_credential, self.credential))
        return structs.replace(
            spec,
            credentials={**spec.credentials, **found},
            hide_env=(*spec.hide_env, *found),
        )

    @asynccontextmanager
    async def open(self, plugin: str) -> AsyncGenerator[Nexus]:
        """The nexus for this plugin, and its clean end. Raises `exits.Stop`, `UsageError`."""
        if self.nexus in ("direct", "http"):
            kind = "http" if self.nexus == "http" else "direct"
            async with open_cloud(kind, self.faults, self.stub_settings()) as cloud:
                yield cloud.nexus
            return
        if not self.nexus.startswith(("http://", "https://")):
            msg = f"--nexus: {self.nexus!r} is neither direct nor http nor an address"
            raise exits.Stop(msg, exits.USAGE)
        self._refuse_stub_options()
        nexus = over_http(self.nexus, show_key=True)
        try:
            yield NarrowedNexus(nexus, {plugin: self.narrowing()})
        finally:
            await nexus.aclose()

    def _models(self) -> list[dict[str, Any]]:
        if self.fixture is not None:
            if not self.fixture.is_file():
                raise exits.Stop(f"--fixture: {self.fixture} is no file", exits.USAGE)
            path = str(self.fixture.absolute())
            return [{"name": "fixture", "kind": "fixture", "path": path}]
        if self.model == "offline":
            return []
        name, found, url = self.model.partition("@")
        if not found or not name or not url.startswith(("http://", "https://")):
            msg = f"--model: {self.model!r} is neither offline nor NAME@URL"
            raise exits.Stop(msg, exits.USAGE)
        key_env = MODEL_KEY_ENV if os.environ.get(MODEL_KEY_ENV) else ""
        return [{"name": name, "kind": "openai", "base_url": url, "key_env": key_env}]

    def _refuse_stub_options(self) -> None:
        given = {
            "--model": self.model != "offline",
            "--fixture": self.fixture is not None,
            "--faults": bool(self.faults),
            "--storage": self.storage not in ("off", "memory"),
        }
        for option, there in given.items():
            if there:
                msg = f"{option} is for the stub; the nexus at {self.nexus} has its own"
                raise exits.Stop(msg, exits.USAGE)


DEFAULT: Final = NexusOptions()


@asynccontextmanager
async def open_host(
    spec: PluginSpec,
    options: NexusOptions = DEFAULT,
    *,
    trace: Callable[[AnyEvent], None] | None = None,
    patience: Patience | None = None,
    record: Path | None = None,
) -> AsyncGenerator[tuple[Host, Nexus]]:
    """A host that knows this plugin, over the nexus of the options, recorded to a file if named."""
    with recording(record) as recorder:
        async with (
            options.open(spec.name) as nexus,
            Host(nexus, trace=trace, patience=patience, recorder=recorder) as host,
        ):
            host.add(spec)
            yield host, nexus


def _granted(text: str) -> tuple[str, Any]:
    """One ``--grant``. Raises `exits.Stop`."""
    name, found, value = text.partition("=")
    if found and name in _SWITCHES and value.lower() in _ON_OFF:
        return name, _ON_OFF[value.lower()]
    if found and name in _CAPS and value.isdecimal() and len(value) < 10:
        return name, int(value)
    if found and name == "tools":
        return name, tuple(filter(None, (word.strip() for word in value.split(","))))
    raise exits.Stop(f"--grant: {text!r} is not {_GRANT_HELP}", exits.USAGE)


def _credential(text: str) -> tuple[str, str]:
    """One ``--credential`` and its value. Raises `exits.Stop`, which names no value."""
    name, found, where = text.partition("=")
    if not found:
        value = os.environ.get(name)
        if value is None:
            msg = f"--credential: the environment variable {name} is not set"
            raise exits.Stop(msg, exits.USAGE)
        return name, value
    if not where.startswith("@"):
        msg = f"--credential: write {name} or {name}=@FILE; a command line can be read by others"
        raise exits.Stop(msg, exits.USAGE)
    try:
        return name, Path(where[1:]).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "it is no text"
        raise exits.Stop(f"--credential: {where[1:]}: {reason}", exits.USAGE) from None
