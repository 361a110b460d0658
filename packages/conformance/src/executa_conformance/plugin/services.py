"""The host's side of reverse calls, and nexus behind it, for one session.

The gate is the protocol's (R-22); what passes is answered from memory. A check scripts
answers by method: `script` puts one in front of the ordinary answer, `hold` none until the
check gives it. Every call is noted.
"""

import asyncio
import math
from collections.abc import Callable
from typing import Any, Final

from msgspec import UNSET, Raw, Struct, UnsetType, to_builtins

from executa_conformance.plugin.answer import Answer
from executa_conformance.plugin.nexus import Memory
from executa_protocol import gate
from executa_protocol.codec import decode_any, encode
from executa_protocol.codes import ErrorObject, wire_error
from executa_protocol.envelope import Message
from executa_protocol.errors import DecodeFailure, ExecutaError
from executa_protocol.faults import as_object
from executa_protocol.handshake import FALLBACK, Negotiated, read_answer
from executa_protocol.manifest import Manifest
from executa_protocol.manifest_reading import read_manifest
from executa_protocol.methods import METHODS, canonical_name, refusal
from executa_protocol.nexus import Grants, Token
from executa_protocol.readings import TOLERANT

Object = dict[str, Any]
Script = Callable[[Object], Any]
"""From a call's params to what is answered: a result, or an `ErrorObject`."""

HELD: Final = object()
"""In place of an answer: there is none yet."""


class Odd(Struct, frozen=True):
    """A result in a spelling of the field, which the schemas do not have, and why."""

    result: Any
    why: str


class ReverseCall(Struct):
    """A call of the plugin. `error` is the code that it was refused with, 0 if none.

    `invoke_id` is the invoke that it named, if it named one; `known` says whether there was
    such a one, `open` whether it was running; `nameless` that it may belong to an invoke that
    was given no id, `alone` that no invoke was running at all. `step` is the step of the gate
    that refused it.
    """

    id: Any
    method: str
    params: Object
    invoke_id: str | None
    open: bool
    known: bool
    nameless: bool
    alone: bool
    error: int = 0
    step: str = ""
    held: bool = False
    parsed: Any = None


class Services:
    """Answers reverse calls."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.negotiated: Negotiated = FALLBACK
        self.declared: frozenset[str] = frozenset()
        self.credentials: tuple[str, ...] = ()
        self.manifest: Manifest | None = None
        self.fault = ""
        """Why a host cannot read the manifest; empty if it can."""
        self.calls: list[ReverseCall] = []
        """Every reverse call, in order."""
        self.called = asyncio.Event()
        """Set at each call, for whoever waits for one."""
        self.active: set[str] = set()
        """The invokes in flight, by id."""
        self.closed: set[str] = set()
        self.unnamed = False
        """Whether there was an invoke without context, as 1.1 knows it."""
        self._scripts: dict[str, Script] = {}
        self._holding: set[str] = set()

    # --- What the host knows ----------------------------------------------------------------

    @property
    def is_v2(self) -> bool:
        """Whether there are reverse calls at all."""
        return self.negotiated.is_v2

    def learn(self, answer: Answer, manifest: Object) -> None:
        """Take over what the plugin said of itself."""
        try:
            self.negotiated = FALLBACK
            if answer.error is None:
                self.negotiated = read_answer(encode(answer.result))
        except ExecutaError:
            pass  # whatever is no v2 answer means 1.1
        try:
            self.manifest = read_manifest(encode(manifest), fallback_name="plugin")
        except ExecutaError as fault:
            self.fault = str(fault)
            return  # nothing is declared then
        self.declared = self.manifest.declared()
        self.credentials = tuple(each.name for each in self.manifest.credentials)

    def open(self, invoke_id: str) -> None:
        """An invoke begins."""
        self.active.add(invoke_id)

    def ended(self, invoke_id: str) -> None:
        """An invoke has been answered."""
        if invoke_id in self.active:
            self.active.remove(invoke_id)
            self.closed.add(invoke_id)

    # --- What a check scripts -----------------------------------------------------------------

    def script(self, method: str, script: Script) -> None:
        """Answer `method` by this function; what it gives is sent as it is."""
        self._scripts[method] = script

    def refuse(self, method: str, row: str) -> None:
        """Answer `method` with this error of the protocol's table."""
        self.script(method, lambda _: wire_error(row, f"{row}: the kit refuses this call"))

    def hold(self, *methods: str) -> None:
        """Answer these not until the check does."""
        self._holding.update(methods)

    def made(self, *methods: str) -> list[ReverseCall]:
        """The calls of these methods so far."""
        return [call for call in self.calls if call.method in methods]

    # --- One call -----------------------------------------------------------------------------

    def serve(self, message: Message) -> Any:
        """The answer to a reverse call: a result, an `ErrorObject`, or `HELD`."""
        params: Any = {} if message.params is UNSET else decode_any(message.params)
        members = as_object(params) or {}
        context = as_object(members.get("context")) or {}
        named: Any = context.get("invoke_id")
        named = named if isinstance(named, str) else None
        call = ReverseCall(
            id=message.id,
            method=canonical_name(str(message.method)),
            params=members,
            invoke_id=named,
            open=named in self.active,
            known=named in self.active or named in self.closed,
            nameless=self.unnamed and not self.active,
            alone=not self.unnamed and not self.active,
        )
        self.calls.append(call)
        outcome = self._outcome(call, message.params)
        if isinstance(outcome, gate.Refusal):
            call.step, outcome = outcome.step, _plain(outcome.error)
        if isinstance(outcome, ErrorObject):
            call.error = outcome.code
        self.called.set()
        return outcome

    def _outcome(self, call: ReverseCall, raw: Raw | UnsetType) -> Any:
        method = METHODS.get(call.method)
        if method is None or method.direction != "plugin_to_host":
            return wire_error("METHOD_NOT_FOUND", f"METHOD_NOT_FOUND: {call.method}")
        if not method.served:
            return wire_error("UNMAPPED_METHOD", f"UNMAPPED_METHOD: {call.method}")
        token = Token("kit", math.inf, ("user", "tool"))
        refused = gate.check_negotiated(method, self.negotiated) or gate.check_manifest(
            method, self.declared
        )
        if refused is not None:
            return refused
        lost = self._correlate(call)
        if lost is not None:
            return lost
        grants = Grants(sampling=True, agent=True, storage=True, files=True)
        refused = gate.check_grant(method, grants)
        if refused is not None:
            return refused
        try:
            params: Any = None if method.read is None else method.read(raw, TOLERANT)
        except DecodeFailure as fault:
            return refusal(fault, method.invalid)
        scope = getattr(params, "scope", UNSET)
        refused = gate.check_scope(method, None if scope is UNSET else scope, token)
        if refused is not None:
            return refused
        call.parsed = params
        if call.method in self._holding:
            call.held = True
            return HELD
        return self.ordinary(call)

    def ordinary(self, call: ReverseCall) -> Any:
        """What a call that has passed the gate is answered."""
        script = self._scripts.get(call.method)
        if script is not None:
            return script(call.params)
        return self.memory.serve(call.method, call.parsed)

    def _correlate(self, call: ReverseCall) -> ErrorObject | None:
        """R-23: the invoke it names, or the only one there is."""
        if call.invoke_id is None and len(self.active) == 1:
            return None
        if call.invoke_id is None:
            text = f"params.context.invoke_id is missing and {len(self.active)} invokes are active"
            return wire_error("MISSING_INVOKE_CONTEXT", text)
        if call.open:
            return None
        return wire_error("UNKNOWN_INVOKE_CONTEXT", f"no invoke {call.invoke_id!r} is active")


def _plain(error: ErrorObject) -> ErrorObject:
    return ErrorObject(error.code, error.message, to_builtins(error.data))
