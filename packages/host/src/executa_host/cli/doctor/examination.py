"""The checks in their order, from "can it be started" to "does a reverse call come back".

Owns the order, and that nothing is asked of a plugin that has failed a check.
"""

from collections.abc import AsyncGenerator, Callable
from typing import Any

from msgspec import Struct

from executa_host.cli.doctor import pitfalls, probe
from executa_host.cli.doctor.checks import Check, Finding, verdict
from executa_host.cli.doctor.evidence import Evidence
from executa_host.cli.doctor.trial import candidates, example_arguments
from executa_host.cli.timeline import clean
from executa_host.connection import StartFailed
from executa_host.host import Host
from executa_host.invocation import InvokeTimeout
from executa_host.patience import Patience
from executa_host.process import SpawnFailed
from executa_host.spec import PluginSpec
from executa_protocol import codec, transcript
from executa_protocol.codes import INVALID_PARAMS
from executa_protocol.errors import CallFailed, ExecutaError, RpcError
from executa_protocol.manifest import Manifest

_TRIED = 4
"""Tools that are called in search of one that calls back."""


class Wanted(Struct, frozen=True):
    """What the user asked for: a tool by name with its arguments, or no calls at all.

    `timeout` is how many seconds a call may take.
    """

    tool: str = ""
    arguments: dict[str, Any] = {}
    calls: bool = True
    timeout: float = 30.0


class Examination:
    """Examines one plugin of a host that `evidence` follows. `on` hears what is being done."""

    def __init__(
        self,
        host: Host,
        spec: PluginSpec,
        evidence: Evidence,
        patience: Patience,
        *,
        wanted: Wanted,
        on: Callable[[str], None],
    ) -> None:
        self.name = spec.name
        """What it calls itself, once it has said so."""
        self._host = host
        self._spec = spec
        self._evidence = evidence
        self._patience = patience
        self._wanted = wanted
        self._on = on

    async def run(self) -> AsyncGenerator[Check]:
        """One check after the other; a failure is the last."""
        manifest: Manifest | None = None
        async for check, found in self._up():
            manifest = found or manifest
            yield check
            if check.status == "failed":
                return
        if manifest is None:
            return
        for step in (self._health, self._calls, self._stop):
            async for check in step(manifest):
                yield check
                if check.status == "failed":
                    return

    # --- Up ----------------------------------------------------------------------------------

    async def _up(self) -> AsyncGenerator[tuple[Check, Manifest | None]]:
        self._on("it starts")
        evidence = self._evidence
        try:
            manifest = await self._host.start(self._spec.name)
        except SpawnFailed as fault:
            yield Check("start", "failed", str(fault), "check the command and its PATH"), None
            return
        except (StartFailed, CallFailed) as fault:
            yield await self._not_started(fault), None
            return
        self.name = clean(manifest.name)
        pid = self._host.pid(self._spec.name)
        yield Check("start", "ok", f"it runs as process {pid}"), manifest
        within = self._patience.initialize
        slow = pitfalls.slow_start(evidence, within) or pitfalls.old_protocol(evidence, manifest)
        if slow is not None and self._spec.type == "binary" and evidence.unanswered:
            slow = Finding(slow.found, "", fatal=False)
        spoken = evidence.of(transcript.Negotiated)
        version = f"protocol {spoken[-1].version}" if spoken else "no protocol"
        yield verdict("initialize", slow, version), None
        printed = pitfalls.printed(evidence) or pitfalls.strange_answers(evidence)
        yield verdict("stdout", printed, "messages alone, one a line"), None
        spelled = pitfalls.departures(evidence, "WIRE", "HAND")
        if spelled is not None:
            yield verdict("spelling", spelled, ""), None
        count = len(manifest.tools)
        tools = f"{manifest.name} {manifest.version}, {count} tool{'s' * (count != 1)}"
        yield verdict("describe", pitfalls.departures(evidence, "MANI"), tools), None

    async def _not_started(self, fault: ExecutaError) -> Check:
        """Why it gave a host no manifest."""
        evidence = self._evidence
        words = self._host.status(self._spec.name).last_words
        early = pitfalls.ended_early(evidence, words)
        printed = pitfalls.printed(evidence)
        name = "describe" if evidence.heard else "start"
        if early is not None:
            return verdict("start" if not evidence.heard else "lifetime", early, "")
        if "no answer" not in str(fault):
            return Check(name, "failed", clean(str(fault)), "mend what is named, by its path")
        if printed is not None:
            return verdict("stdout", printed, "")
        return verdict(name, await self._silent(fault), "")

    async def _silent(self, fault: ExecutaError) -> Finding:
        """It runs and says nothing: ask again, without a host, and listen longer."""
        patience = self._patience
        self._on("it is silent: does it answer once its stdin has ended?")
        try:
            after_end = await probe.ask(self._spec, patience.describe_onefile, end=True)
            if after_end.answered and after_end.seconds < patience.initialize:
                return Finding(
                    "it answers only once its stdin has ended: its output is buffered",
                    pitfalls.FLUSH,
                )
            self._on("does it answer if one waits longer?")
            later = await probe.ask(self._spec, patience.describe_onefile, end=False)
        except OSError as failed:
            return Finding(f"{clean(str(fault))}; and then {failed}", "run its command by hand")
        if later.answered:
            found = f"its first answer took {later.seconds:.1f} s, and hosts wait"
            return Finding(f"{found} {patience.initialize:g}: a cold start", pitfalls.BINARY)
        if after_end.answered:
            found = "it answers only once its stdin has ended: its output is buffered"
            return Finding(found, pitfalls.FLUSH)
        return Finding(clean(str(fault)), pitfalls.READ_IN_A_LOOP)

    # --- Calls -------------------------------------------------------------------------------

    async def _health(self, _: Manifest) -> AsyncGenerator[Check]:
        self._on("it is asked how it is")
        try:
            answer = await self._host.health(self._spec.name)
        except ExecutaError as fault:
            yield Check("health", "failed", clean(str(fault)), "answer health within 3 s")
            return
        if answer.status == "ready":
            yield Check("health", "ok", "ready")
        else:
            text = f"{answer.status}: {clean(answer.message or 'it does not say why')}"
            yield Check("health", "warning", text, "hosts do not route calls to it meanwhile")

    async def _calls(self, manifest: Manifest) -> AsyncGenerator[Check]:
        if not self._wanted.calls:
            yield Check("invoke", "skipped", "no tool is called, as asked")
            return
        calls = self._chosen(manifest)
        if not calls:
            advice = "name one: --tool NAME --args JSON"
            yield Check("invoke", "skipped", "no tool that can be tried without asking", advice)
            return
        declared = sorted(manifest.declared())
        called_back = False
        for number, (tool, arguments) in enumerate(calls):
            if number and (called_back or not declared):
                break
            self._evidence.mark()
            check = await self._call(tool, arguments)
            called_back = bool(self._evidence.served)
            if number == 0 or check.status == "failed":
                yield check
            if check.status == "failed":
                return
        if called_back:
            served = self._evidence.served[-1]
            refused = pitfalls.refused_call(self._evidence)
            text = f"{served.method} was served in {served.ms:.0f} ms"
            yield verdict("reverse call", refused, text)
        elif declared:
            found = f"no tool that was tried calls back, and it declares {', '.join(declared)}"
            yield Check("reverse call", "skipped", found, "name one: --tool NAME --args JSON")
        else:
            yield Check("reverse call", "ok", "it declares none, and makes none")

    def _chosen(self, manifest: Manifest) -> list[tuple[str, dict[str, Any]]]:
        if self._wanted.tool:
            return [(self._wanted.tool, self._wanted.arguments)]
        found = [(tool.name, example_arguments(tool)) for tool in candidates(manifest)]
        return found[:_TRIED]

    async def _call(self, tool: str, arguments: dict[str, Any]) -> Check:
        name = self._spec.name
        shown = clean(f"{tool} {codec.encode(arguments).decode()}")
        self._on(f"{shown} is called")
        try:
            outcome = await self._host.invoke(name, tool, arguments, timeout=self._wanted.timeout)
        except InvokeTimeout as fault:
            deaf = pitfalls.deaf_while_calling(self._evidence)
            slow = Finding(
                clean(str(fault)), "give it longer with --timeout, or see where it hangs"
            )
            stray = pitfalls.strange_answers(self._evidence) or pitfalls.printed(self._evidence)
            return verdict("invoke", deaf or stray or slow, "")
        except RpcError as fault:
            return self._error_answer(shown, fault)
        except ExecutaError as fault:
            advice = "see what it said; a tool's fault must not end the process"
            return Check("invoke", "failed", f"{shown}: {clean(str(fault))}", advice)
        finding = pitfalls.printed(self._evidence) or pitfalls.departures(self._evidence, "CORE")
        if finding is None and not await self._lives_on():
            finding = Finding(f"it answered {shown}, and then ended", pitfalls.READ_IN_A_LOOP)
        if finding is None and not outcome.success:
            found = f"{shown} answered that it failed: {clean(outcome.error)}"
            finding = Finding(
                found, "try arguments of your own: --tool NAME --args JSON", fatal=False
            )
        return verdict("invoke", finding, f"{shown} took {outcome.duration_ms:.0f} ms")

    async def _lives_on(self) -> bool:
        """Whether the process that was called goes on answering."""
        launches = self._host.status(self._spec.name).launches
        try:
            await self._host.health(self._spec.name)
        except ExecutaError:
            return False
        return self._host.status(self._spec.name).launches == launches

    def _error_answer(self, shown: str, fault: RpcError) -> Check:
        printed = pitfalls.printed(self._evidence)
        if printed is not None:
            return verdict("invoke", printed, "")
        text = f"{shown} was answered with {fault.code}: {clean(fault.message)}"
        if fault.code == INVALID_PARAMS:
            return Check("invoke", "warning", text, "try arguments of your own: --args JSON")
        advice = 'a tool that failed answers {"success": false, "error": "why"}'
        return Check("invoke", "warning", text, advice)

    # --- Down --------------------------------------------------------------------------------

    async def _stop(self, _: Manifest) -> AsyncGenerator[Check]:
        self._on("its stdin is closed")
        self._evidence.mark()
        await self._host.stop(self._spec.name)
        gone = self._evidence.of(transcript.Exited)
        rung = gone[-1].rung if gone else ""
        if rung in ("SIGTERM", "SIGKILL"):
            found = f"it stayed when its stdin had ended, until {rung}"
            advice = "end when stdin ends: hosts that die cannot send signals"
            yield Check("stop", "failed", found, advice)
        else:
            yield Check("stop", "ok", "it ends when its stdin does")
