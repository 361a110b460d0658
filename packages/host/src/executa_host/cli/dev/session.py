"""The plugin that is being written: started, called, and started anew when its source changes.

Owns the order of these. One restart or reload is under way at a time; invokes that run are
let end first, and new ones wait for the new process, both by the host.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from msgspec import structs

from executa_host.cli import exits
from executa_host.cli.dev.changes import changes, watched
from executa_host.cli.dev.cloud import Cloud
from executa_host.cli.dev.show import Show
from executa_host.cli.views import changes as manifest_changes
from executa_host.cli.views import show_manifest
from executa_host.cli.working import Working
from executa_host.handle import InvokeHandle
from executa_host.host import Host
from executa_host.invocation import InvokeOutcome
from executa_host.spec import PluginSpec
from executa_protocol.errors import ExecutaError
from executa_protocol.manifest import Manifest, Tool
from executa_protocol.nexus import Nexus

_NAMES_SHOWN = 3


class DevSession:
    """One plugin at one host. `find` says anew how it is started, as its files have it now."""

    def __init__(
        self, host: Host, nexus: Nexus, spec: PluginSpec, find: Callable[[], PluginSpec], show: Show
    ) -> None:
        self.host = host
        self.name = spec.name
        self.manifest: Manifest | None = None
        self.cloud = Cloud(nexus, spec)
        self.keys: list[str] = []
        """Keys of its storage as they were last listed, for completion."""
        self._spec = spec
        self._find = find
        self._show = show
        self._handle: InvokeHandle | None = None
        self._changing = asyncio.Lock()

    # --- Up --------------------------------------------------------------------------------

    async def start(self) -> bool:
        """Start it and show what it is. False, once the reason has been told, if it fails."""
        try:
            with self._show.running(f"{self.name} starts"):
                self.manifest = await self.host.start(self.name)
        except ExecutaError as fault:
            self._show.fault(fault)
            return False
        self._tell_manifest(self.manifest)
        return True

    async def restart(self) -> None:
        """Start it anew; what runs is cut off. Raises as `Host.start`."""
        async with self._changing:
            self._take(await self.host.restart(self.name))

    async def reload(self) -> None:
        """Start it anew once what runs has ended. Raises as `Host.start`, and `exits.Stop`."""
        async with self._changing:
            spec = structs.replace(self._find(), name=self.name)
            if self._handle is not None:
                self._show.say(f"waits for {self._handle.tool} to end")
            await self.host.reload(spec)
            self._spec = spec
            self._take(await self.host.start(self.name))

    async def follow_source(self, words: Sequence[str]) -> None:
        """Reload whenever the source changes, for as long as this is not cancelled."""
        folders, programs = watched(words)
        if not folders:
            self._show.hint("no file of the plugin is in the command; `reload` starts it anew")
            return
        try:
            async with aclosing(changes(folders, programs)) as saved:
                async for found in saved:
                    await self._changed(found)
        except (OSError, RuntimeError) as fault:  # no watches are left, or the folder is gone
            self._show.warn(f"the source is no longer watched: {fault}; `reload` starts it anew")

    async def _changed(self, found: Sequence[Path]) -> None:
        self._show.say(f"{_named(found)} changed: reloads")
        try:
            await self.reload()
        except (ExecutaError, exits.Stop) as fault:
            self._show.fault(fault)
            self._show.hint("it is tried again with the next change")

    def _take(self, manifest: Manifest) -> None:
        old, self.manifest = self.manifest, manifest
        if old is None:
            self._tell_manifest(manifest)
        else:
            self._show.changed(manifest_changes(old, manifest))
            self._show.say(f"{self.name} is ready")

    def _tell_manifest(self, manifest: Manifest) -> None:
        document = {"event": "ready", "plugin": self.name, "manifest": manifest}
        self._show.result(document, lambda console: show_manifest(console, manifest))

    # --- Calls -----------------------------------------------------------------------------

    def tool(self, name: str) -> Tool | None:
        """Its tool of this name."""
        return None if self.manifest is None else self.manifest.tool(name)

    def tools(self) -> list[Tool]:
        """Its tools; none before it was started."""
        return [] if self.manifest is None else self.manifest.tools

    async def invoke(
        self, tool: str, arguments: Mapping[str, Any], shown: Working
    ) -> InvokeOutcome:
        """Run a tool. Raises as `Host.invoke`."""
        handle = self.host.begin(self.name, tool, arguments, on_progress=shown.on_progress)
        self._handle = handle
        try:
            return await handle.result()
        finally:
            self._handle = None

    async def cancel(self) -> None:
        """End the invoke that runs, and say what became of it."""
        handle = self._handle
        if handle is not None:
            outcome = await handle.cancel("cancelled at the prompt")
            self._show.hint(f"the cancellation of {handle.tool}: {outcome.replace('_', ' ')}")

    @property
    def busy(self) -> bool:
        """Whether an invoke runs."""
        return self._handle is not None

    def running_manifest(self) -> Manifest:
        """The manifest. Raises `exits.Stop` while there is none."""
        if self.manifest is None:
            msg = f"{self.name} has not started yet; `restart` tries again"
            raise exits.Stop(msg, exits.BROKEN)
        return self.manifest


def _named(paths: Sequence[Path]) -> str:
    """Some of them by name."""
    names = sorted({path.name for path in paths})
    more = len(names) - _NAMES_SHOWN
    shown = ", ".join(names[:_NAMES_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown
