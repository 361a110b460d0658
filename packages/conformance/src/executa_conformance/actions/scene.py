"""What a check of durable work gets: actions to submit, and ways to see what becomes of them."""

import secrets
import time
from typing import Any

from executa_conformance.evidence import Evidence
from executa_conformance.http.client import Answer, Client
from executa_conformance.model import Check, NotApplicable, NotMet
from executa_conformance.patience import Patience
from executa_conformance.reading import expect, items, members
from executa_protocol.actions import TERMINAL

Members = dict[str, Any]

ENDED = frozenset(str(state) for state in TERMINAL)


class ActionsScene:
    """One check's part of the runtime under test. `plugin` is what it calls the kit's."""

    def __init__(
        self,
        check: Check,
        evidence: Evidence,
        client: Client,
        patience: Patience,
        *,
        plugin: str,
        key: str,
        other_key: str,
    ) -> None:
        self.check = check
        self.evidence = evidence
        self.client = client
        self.patience = patience
        self.plugin = plugin
        self.key = key
        self.other_key = other_key
        self.mark = secrets.token_hex(6)
        """Nobody else's word, to name what belongs to this check."""

    def name(self, tool: str) -> str:
        """The capability that a tool of the kit's plugin is."""
        return f"{self.plugin}.{tool}"

    # --- Requests --------------------------------------------------------------------------

    async def get(self, path: str, *, seconds: float = 0.0, key: str | None = None) -> Answer:
        """Read something."""
        bearer = self.key if key is None else key
        return await self.client.ask("GET", path, bearer=bearer, seconds=seconds)

    async def post(self, path: str, body: Any = None, *, key: str | None = None) -> Answer:
        """Do something."""
        bearer = self.key if key is None else key
        return await self.client.ask(
            "POST", path, {} if body is None else body, bearer=bearer, seconds=30.0
        )

    async def submitting(self, tool: str, arguments: Any = None, **members_: Any) -> Answer:
        """Submit an action."""
        given: Any = {} if arguments is None else arguments
        body: Members = {"capability": self.name(tool), "input": given, "mode": "async", **members_}
        return await self.post("/actions", body)

    async def submit(self, tool: str, arguments: Any = None, **members_: Any) -> Members:
        """Submit an action; its record. Raises `NotMet` if it is refused."""
        answer = await self.submitting(tool, arguments, **members_)
        expect(answer.status in (200, 202), f"submitting was answered with {answer}")
        return members(answer.members.get("action"))

    async def view(self, action: Members | str, *include: str) -> Members:
        """An action as it is, with what is asked for beside it."""
        query = f"?include={','.join(include)}" if include else ""
        answer = await self.get(f"/actions/{identity(action)}{query}")
        expect(answer.status == 200, f"reading an action was answered with {answer}")
        return answer.members

    async def record(self, action: Members | str) -> Members:
        """An action's record as it is."""
        return members((await self.view(action)).get("action"))

    async def ended(self, action: Members | str) -> tuple[Members, Members]:
        """An action once it has ended, and its result. Raises `NotMet` if it does not end."""
        give_up = time.monotonic() + self.patience.invoke
        while time.monotonic() < give_up:
            path = f"/actions/{identity(action)}/result?wait=5"
            answer = await self.get(path, seconds=5.0)
            expect(answer.status == 200, f"asking for the result was answered with {answer}")
            record = members(answer.members.get("action"))
            if record.get("state") in ENDED:
                return record, members(answer.members.get("result"))
        msg = f"the action did not end within {self.patience.invoke:g} s"
        raise NotMet(msg)

    async def reaches(self, action: Members | str, *states: str) -> Members:
        """An action once it is in one of these states. Raises `NotMet` if it never is."""
        cursor = ""
        give_up = time.monotonic() + self.patience.answer
        seen: list[str] = []
        while time.monotonic() < give_up:
            page = await self.page(action, cursor, wait=2)
            cursor = str(page.get("cursor"))
            seen += [str(each["state"]) for each in events(page) if each.get("state")]
            if set(states) & set(seen):
                return await self.record(action)
            if page.get("ended"):
                break
        msg = f"the action went through {seen}, and never was {' or '.join(states)}"
        raise NotMet(msg)

    async def page(
        self, subject: Members | str, after: str = "", *, wait: float = 0, limit: int = 0
    ) -> Members:
        """A page of events. Raises `NotMet` if it is refused."""
        answer = await self.paging(subject, after, wait=wait, limit=limit)
        expect(answer.status == 200, f"a page of events was answered with {answer}")
        return answer.members

    async def paging(
        self, subject: Members | str, after: str = "", *, wait: float = 0, limit: int = 0
    ) -> Answer:
        """Ask for a page of events."""
        query = {"after": after, "wait": f"{wait:g}" if wait else "", "limit": limit or ""}
        words = "&".join(f"{name}={value}" for name, value in query.items() if value)
        path = f"{log_of(subject)}{'?' if words else ''}{words}"
        return await self.get(path, seconds=wait)

    async def whole_log(self, subject: Members | str) -> list[Members]:
        """Every event of what has ended."""
        return events(await self.page(subject, limit=1000))

    async def opened(self, responder: str = "kit-responder") -> Members:
        """A session; the answer to its handshake. Raises `NotMet` if it is refused."""
        answer = await self.post("/handshake", {"responder": responder, "label": self.mark})
        expect(answer.status in (200, 201), f"the handshake was answered with {answer}")
        return answer.members

    def other(self) -> str:
        """Another principal's key. Raises `NotApplicable` without one."""
        if not self.other_key:
            raise NotApplicable("no second principal: EXECUTA_OTHER_KEY is not set")
        return self.other_key

    async def close(self) -> None:
        """Nothing of a check's has to be ended: actions end by themselves."""


def identity(record: Members | str) -> str:
    """The id of an action or a session."""
    if isinstance(record, str):
        return record
    return str(record.get("action_id") or record.get("session_id"))


def log_of(subject: Members | str) -> str:
    """The path of its events."""
    name = identity(subject)
    return f"/{'sessions' if name.startswith('ses_') else 'actions'}/{name}/events"


def events(page: Members) -> list[Members]:
    """The events of a page."""
    return [members(one) for one in items(page.get("events"))]


def refused(answer: Answer, what: str, *statuses: int, code: str = "") -> None:
    """Raise `NotMet` unless it was refused in the API's form."""
    right = answer.status in statuses if statuses else 400 <= answer.status < 500
    expect(right, f"{what} was answered with {answer}")
    error = answer.error
    formed = isinstance(error.get("code"), str) and isinstance(error.get("message"), str)
    expect(formed, f"the refusal of {what} has no code and message: {answer}")
    expect(code in ("", error.get("code")), f"{what} was refused with {error.get('code')!r}")
