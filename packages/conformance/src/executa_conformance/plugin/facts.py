"""What is known of a plugin before its checks: one tour through all that it offers.

The tour shakes hands, describes, and calls each tool in turn. Checks take from it which tool
to call for what; what it cannot find out, the checks that need it fail for.
"""

import time

from msgspec import Struct, field

from executa_conformance.model import NotApplicable, NotMet
from executa_conformance.plugin.answer import Answer
from executa_conformance.plugin.session import Session
from executa_conformance.plugin.tools import Case, Cases, cases_of, echoed
from executa_protocol.handshake import FALLBACK, Negotiated
from executa_protocol.manifest import Manifest

CAPABILITIES = {
    "sampling": ("llm.sample",),
    "agent": ("llm.agent.auto", "llm.agent.fixed"),
    "storage": ("aps.kv", "aps.scope."),
    "files": ("aps.files",),
}
"""The strings that make a level mandatory; one that ends in a dot stands for its family."""

CALLS = {
    "sampling": ("sampling/createMessage", "agent/complete"),
    "agent": ("agent/session.run",),
    "storage": ("storage/get", "storage/set", "storage/delete", "storage/list"),
    "files": ("files/upload_begin", "files/download_url", "files/list", "files/delete"),
}
"""The calls by which a level is seen."""


UNKNOWN = "kit/unknown"
"""A method that no plugin has."""


class Tried(Struct):
    """A case of the tour and what came of it. `methods` are the reverse calls that it made."""

    case: Case
    answer: Answer | None = None
    methods: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def worked(self) -> bool:
        """Whether the tool succeeded."""
        return self.answer is not None and not self.answer.failed


class Facts(Struct):
    """What the tour found.

    `silent` says that initialize was not answered, which means 1.1 (seed lifecycle, Fallback
    to v1). `fault` says why the tour ended early, empty if it did not.
    """

    negotiated: Negotiated = FALLBACK
    manifest: Manifest | None = None
    declared: frozenset[str] = frozenset()
    tried: list[Tried] = field(default_factory=list[Tried])
    silent: bool = False
    fault: str = ""

    def notes(self) -> list[str]:
        """What its author may want to know: why the tour ended, and the tools that failed."""
        found = [f"The plugin could not be toured: {self.fault}."] if self.fault else []
        worked = {tried.case.tool for tried in self.tried if tried.worked}
        for tried in self.tried:
            if tried.case.tool not in worked:
                worked.add(tried.case.tool)
                came = tried.answer or "no answer in time"
                found.append(f"Tool {tried.case.tool} did not succeed; try --cases. It gave {came}")
        return found

    def applies(self, level: str) -> None:
        """Raise `NotApplicable` for a level that the plugin does not claim."""
        if level == "core":
            return
        if not self.negotiated.is_v2:
            raise NotApplicable("the plugin speaks protocol 1.1")
        wanted = CAPABILITIES.get(level, ())
        if wanted and not any(_declares(self.declared, one) for one in wanted):
            msg = f"the manifest does not declare {' or '.join(wanted)}"
            raise NotApplicable(msg)

    def _usable(self) -> list[Tried]:
        if self.fault:
            raise NotMet(self.fault)
        return [tried for tried in self.tried if tried.answer is not None]

    @property
    def plain(self) -> Case:
        """A call that works, makes no reverse call if there is such a one, and is quick."""
        found = sorted(self._usable(), key=lambda it: (not it.worked, it.methods != (), it.seconds))
        if not found:
            raise NotMet("no tool answered; give --cases with arguments that they take")
        return found[0].case

    def methods_of(self, case: Case) -> tuple[str, ...]:
        """The reverse calls that a call of the tour made."""
        return next((tried.methods for tried in self.tried if tried.case == case), ())

    def echoes(self) -> list[tuple[Case, str]]:
        """Calls that may give a text argument back, and that argument's name; quick ones first."""
        found: list[tuple[Case, str]] = []
        for tried in sorted(self._usable(), key=lambda it: (it.methods != (), it.seconds)):
            members = tried.answer.members if tried.answer is not None else {}
            name = echoed(tried.case, members.get("data")) if tried.worked else None
            if name is not None:
                found.append((tried.case, name))
        return found

    def calling(self, level: str) -> Case:
        """A call that works and makes the reverse calls of a level."""
        return self.caller(*CALLS[level])

    def caller(self, *methods: str) -> Case:
        """A call that works, and makes one of these reverse calls."""
        for wanted in (True, False):
            for tried in self._usable():
                if tried.worked is wanted and set(methods) & set(tried.methods):
                    return tried.case
        msg = f"no tool called {' or '.join(methods)}; give --cases with arguments that make one"
        raise NotMet(msg)

    def waiting(self) -> Tried:
        """A call that waits for the host, with its reverse calls. Raises `NotApplicable`."""
        for tried in self._usable():
            if tried.worked and tried.methods:
                return tried
        raise NotApplicable("no tool waits for an answer of the host")


def _declares(declared: frozenset[str], wanted: str) -> bool:
    if wanted.endswith("."):
        return any(one.startswith(wanted) for one in declared)
    return wanted in declared


async def tour(session: Session, given: Cases) -> Facts:
    """Find out what there is to know. Does not raise `NotMet`: `Facts.fault` has its words."""
    facts = Facts()
    try:
        answer = await _initialize(session)
        facts.silent = session.silent
        session.services.learn(answer, await session.describe())
        services = session.services
        facts.negotiated = services.negotiated
        facts.manifest = services.manifest
        facts.declared = services.declared
        if facts.manifest is None:
            facts.fault = f"a host cannot read the manifest: {services.fault}"
            return facts
        for method in ("health", UNKNOWN):
            await _ask(session, method)
    except NotMet as fault:
        facts.fault = str(fault)
        return facts
    for case in cases_of(facts.manifest, given, session.folder.parent):
        worked = any(tried.worked for tried in facts.tried if tried.case.tool == case.tool)
        if not (case.otherwise and worked):
            facts.tried.append(await _try(session, case))
    return facts


async def _initialize(session: Session) -> Answer:
    """The answer to initialize, or what its silence means."""
    try:
        return await session.initialize()
    except NotMet:
        if session.child.ended.is_set():
            raise
        session.silent = True
        return await session.initialize()


async def _ask(session: Session, method: str) -> None:
    """Ask what a plugin may fail to answer, for the checks that look at such answers."""
    try:
        await session.request(method, within=session.patience.describe)
    except NotMet:
        if session.child.ended.is_set():
            raise


async def _try(session: Session, case: Case) -> Tried:
    tried = Tried(case)
    began, before = time.monotonic(), len(session.services.calls)
    manifest = session.services.manifest
    tool = None if manifest is None else manifest.tool(case.tool)
    within = session.patience.invoke
    if tool is not None:
        within = min(within, tool.time_limit)
    try:
        tried.answer = await session.invoke(case.tool, case.arguments, within=within)
    except NotMet as fault:
        session.evidence.tell(str(fault))
    tried.seconds = time.monotonic() - began
    tried.methods = tuple(call.method for call in session.services.calls[before:])
    return tried
