"""What can be typed at the prompt of `executa dev`, and what it does.

A line is a command or a tool with its arguments. Each gives an exit code, so that lines from
a pipe have one.
"""

import shlex
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from executa_host.cli import exits
from executa_host.cli.arguments import read_object, read_words, remarks, usage
from executa_host.cli.dev.session import DevSession
from executa_host.cli.dev.show import Show
from executa_host.cli.dev.storage_words import storage
from executa_host.cli.faults import nearest
from executa_host.cli.oneshot import told_outcome
from executa_host.cli.plugin_views import show_grant, show_status
from executa_host.cli.timeline import clean
from executa_host.cli.views import show_data, show_manifest, show_verdicts
from executa_host.cli.why import check_method, refused
from executa_protocol.errors import ExecutaError, RpcError

_ALIASES: Final = {"exit": "quit", "?": "help", "tools": "describe"}


class Command(Struct, frozen=True):
    """One command: what follows it, and what it does."""

    takes: str
    says: str
    run: Callable[[str], Awaitable[int]]


class Commands:
    """Does what is typed."""

    def __init__(self, session: DevSession, show: Show) -> None:
        self._session = session
        self._show = show
        self.left = False
        """Whether somebody said that it is enough."""
        self.busy = False
        """Whether a line is being done."""
        self.known: dict[str, Command] = {
            "invoke": Command("TOOL {...} | TOOL name=value", "run a tool", self._invoke),
            "describe": Command("", "the manifest", self._describe),
            "health": Command("", "ask the plugin how it is", self._health),
            "status": Command("", "its process and state", self._status),
            "grants": Command("", "what the user allows it", self._grants),
            "why": Command("METHOD", "whether it may make a reverse call", self._why),
            "storage": Command(
                "ls [PREFIX] | get KEY | rm KEY", "what it keeps in storage", self._storage
            ),
            "reload": Command("", "start it anew once what runs has ended", self._reload),
            "restart": Command("", "start it anew at once", self._restart),
            "help": Command("", "this list", self._help),
            "quit": Command("", "leave; so does Ctrl-D", self._quit),
        }

    async def run(self, line: str) -> int:
        """Do what a line says, whatever it is; its exit code."""
        self.busy = True
        try:
            return await self._run(line)
        except (exits.Stop, ExecutaError) as fault:
            return self._show.fault(fault)
        finally:
            self.busy = False

    async def _run(self, line: str) -> int:
        word, _, rest = line.strip().partition(" ")
        if not word or word.startswith("#"):
            return exits.OK
        command = self.known.get(_ALIASES.get(word, word))
        if command is not None:
            return await command.run(rest.strip())
        if self._session.tool(word) is not None:
            return await self._invoke(line.strip())
        names = [*self.known, *(tool.name for tool in self._session.tools())]
        near = nearest(word, names) or "`help` lists what there is."
        raise exits.Stop(f"{word[:40]!r} is no command and no tool. {near}", exits.USAGE)

    # --- The plugin ---------------------------------------------------------------------------

    async def _invoke(self, text: str) -> int:
        name, _, rest = text.partition(" ")
        if not name:
            raise exits.Stop("which tool? invoke TOOL {...}, or TOOL name=value", exits.USAGE)
        tool = self._session.tool(name)
        if tool is None:
            self._session.running_manifest()
            known = [each.name for each in self._session.tools()]
            near = nearest(name, known) or f"It has {', '.join(known)}."
            raise exits.Stop(f"{self._session.name} has no tool {name[:40]!r}. {near}", exits.USAGE)
        rest = rest.strip()
        as_json = rest.startswith(("{", "["))
        arguments = read_object(rest, name) if as_json else read_words(_split(rest), tool)
        try:
            with self._show.running(f"{name} runs; Ctrl-C cancels it") as shown:
                outcome = await self._session.invoke(name, arguments, shown)
        except RpcError:
            self._remark(remarks(tool, arguments))
            raise
        if not outcome.success and not self._show.json:
            self._remark(remarks(tool, arguments))
            raise exits.Stop(f"{name} failed: {outcome.error}", exits.FAILED)
        self._show.result(told_outcome(outcome), lambda console: show_data(console, outcome))
        self._show.hint(f"{outcome.duration_ms:.1f} ms")
        return exits.OK if outcome.success else exits.FAILED

    def _remark(self, texts: list[str]) -> None:
        for text in texts:
            self._show.warn(f"the manifest says: {text}")

    async def _describe(self, _: str) -> int:
        manifest = self._session.running_manifest()
        self._show.result(
            {"ok": True, "manifest": manifest}, lambda console: show_manifest(console, manifest)
        )
        return exits.OK

    async def _health(self, _: str) -> int:
        answer = await self._session.host.health(self._session.name)
        ready = answer.status == "ready"
        text = f"{answer.status}: {clean(answer.message)}" if answer.message else answer.status
        self._show.result(
            {"ok": ready, "health": answer}, lambda console: console.print(text, markup=False)
        )
        return exits.OK if ready else exits.FAILED

    async def _status(self, _: str) -> int:
        status = self._session.host.status(self._session.name)
        self._show.result(
            {"ok": True, "status": status}, lambda console: show_status(console, status)
        )
        return exits.OK

    async def _reload(self, _: str) -> int:
        await self._session.reload()
        return exits.OK

    async def _restart(self, _: str) -> int:
        await self._session.restart()
        return exits.OK

    # --- What it may ----------------------------------------------------------------------------

    async def _grants(self, _: str) -> int:
        manifest = self._session.running_manifest()
        grant = await self._session.cloud.grant(manifest)
        document = {
            "ok": True,
            "grants": grant.grants,
            "caps": grant.caps,
            "granted_tools": grant.granted_tools,
            "declared": manifest.host_capabilities,
        }
        self._show.result(document, lambda console: show_grant(console, grant, manifest))
        return exits.OK

    async def _why(self, method: str) -> int:
        check_method(method)
        verdicts = await self._session.host.ask_why(self._session.name, method)
        document = {"ok": not refused(verdicts), "method": method, "steps": verdicts}
        self._show.result(document, lambda console: show_verdicts(console, verdicts))
        return exits.REFUSED if refused(verdicts) else exits.OK

    async def _storage(self, text: str) -> int:
        return await storage(_split(text), self._session, self._show)

    # --- The prompt -------------------------------------------------------------------------------

    async def _help(self, _: str) -> int:
        document = {
            "ok": True,
            "commands": {name: command.says for name, command in self.known.items()},
            "tools": [usage(tool) for tool in self._session.tools()],
        }
        self._show.result(document, self._draw_help)
        return exits.OK

    def _draw_help(self, console: Console) -> None:
        for name, command in self.known.items():
            console.print(Text(name, style="bold") + Text(f" {command.takes}", style="cyan"))
            console.print(Padding(Text(command.says, style="dim"), (0, 0, 0, 4), expand=False))
        for tool in self._session.tools():
            console.print(Text(usage(tool), style="cyan"))

    async def _quit(self, _: str) -> int:
        self.left = True
        return exits.OK


def _split(text: str) -> list[str]:
    """Words as a shell has them. Raises `exits.Stop`."""
    try:
        return shlex.split(text)
    except ValueError as fault:
        reason = str(fault)
        where = len(text)
        raise exits.Stop(f"{reason.lower()}\n{text}\n{' ' * where}^", exits.USAGE) from None
