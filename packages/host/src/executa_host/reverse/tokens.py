"""Tokens of invokes that run long: renewed before they expire, whoever needs them (R-39).

Owns when a token is renewed. One timer serves all invokes of a host: it is set for the
earliest renewal that is due, and not at all while none is.
"""

import asyncio
import logging
import math
from typing import Final

from executa_host.clock import Timer
from executa_host.invocation import ActiveInvoke
from executa_host.runtime import Runtime
from executa_protocol.errors import ExecutaError
from executa_protocol.limits import TOKEN_RENEW_BEFORE
from executa_protocol.methods.info import MethodInfo
from executa_protocol.nexus import InvokeGrant, Nexus, Token

_log: Final = logging.getLogger(__name__)

AGAIN_AFTER: Final = 5.0
"""Seconds between two renewals: several that fail fit before the token expires."""


class Tokens:
    """Keeps the tokens of invokes alive, from `watch` to `forget`."""

    def __init__(self, nexus: Nexus, runtime: Runtime) -> None:
        self._nexus = nexus
        self._runtime = runtime
        self._due: dict[str, tuple[float, ActiveInvoke]] = {}
        self._timer: Timer | None = None
        self._wakes = math.inf

    def watch(self, invoke: ActiveInvoke) -> None:
        """Renew the tokens of an invoke in time."""
        expiry = _expiry(invoke.grant)
        if expiry < math.inf:
            # Of tokens that live no longer than that, not one renewal after the other.
            soonest = self._runtime.clock.now() + AGAIN_AFTER
            self._schedule(invoke, max(expiry - TOKEN_RENEW_BEFORE, soonest))

    def forget(self, invoke: ActiveInvoke) -> None:
        """The invoke has ended, and its tokens with it."""
        self._due.pop(invoke.invoke_id, None)
        if not self._due:
            self.stop()
        if invoke.renewing is not None:
            invoke.renewing.cancel()

    async def renewed(self, method: MethodInfo, invoke: ActiveInvoke, token: Token) -> Token | None:
        """What there is in place of a token that `is_old`.

        Raises `NexusError` if only an expired one is left.
        """
        now = self._runtime.clock.now()
        renewing = self._renew(invoke)
        await asyncio.wait((renewing,))
        if token.expires_at <= now and not renewing.cancelled():
            fault = renewing.exception()
            if fault is not None:
                raise fault
        return token_of(method, invoke.grant)

    def _renew(self, invoke: ActiveInvoke) -> "asyncio.Task[None]":
        """One renewal for all that find the token old at the same time."""
        if invoke.renewing is None or invoke.renewing.done():
            invoke.renewing = asyncio.get_running_loop().create_task(self._renewed(invoke))
            invoke.renewing.add_done_callback(_told)
        return invoke.renewing

    async def _renewed(self, invoke: ActiveInvoke) -> None:
        try:
            renewing = self._nexus.renew_invoke(invoke.invoke_id)
            within = self._runtime.patience.cleanup
            invoke.grant = await self._runtime.bounds.run(renewing, within)
        except (ExecutaError, TimeoutError) as fault:
            _log.warning("tokens of invoke %s were not renewed: %s", invoke.invoke_id, fault)
            self._schedule(invoke, self._runtime.clock.now() + AGAIN_AFTER)
            raise
        if self._runtime.recorder is not None:
            self._runtime.recorder.know_grant(invoke.grant)
        self.watch(invoke)

    # --- The timer -----------------------------------------------------------------------

    def _schedule(self, invoke: ActiveInvoke, when: float) -> None:
        self._due[invoke.invoke_id] = (when, invoke)
        if when < self._wakes:
            self._arm(when)

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        clock = self._runtime.clock
        self._wakes = when
        self._timer = clock.call_later(max(0.0, when - clock.now()), self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._wakes = math.inf
        now = self._runtime.clock.now()
        for when, invoke in list(self._due.values()):
            if when > now:
                continue
            del self._due[invoke.invoke_id]
            # Of tokens that have expired there is nothing to renew: a call will say so.
            if _expiry(invoke.grant) > now:
                self._renew(invoke)
        earliest = min((when for when, _ in self._due.values()), default=math.inf)
        if earliest < self._wakes:
            self._arm(earliest)

    def stop(self) -> None:
        """Wake no more, until there is something to watch again."""
        self._due.clear()
        self._wakes = math.inf
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def is_old(token: Token, now: float) -> bool:
    """Whether it is about to expire."""
    return token.expires_at - now <= TOKEN_RENEW_BEFORE


def token_of(method: MethodInfo, grant: InvokeGrant) -> Token | None:
    """The token of a grant that goes with calls of `method`."""
    return grant.storage_token if method.chapter == "storage" else grant.sampling_token


def _expiry(grant: InvokeGrant) -> float:
    """When the first of its tokens expires, in epoch seconds; infinity without tokens."""
    sampling, storage = grant.sampling_token, grant.storage_token
    if storage is None:
        return math.inf if sampling is None else sampling.expires_at
    if sampling is None or storage.expires_at < sampling.expires_at:
        return storage.expires_at
    return sampling.expires_at


def _told(task: "asyncio.Task[None]") -> None:
    if not task.cancelled():
        task.exception()  # told in the log, and to whoever waited
