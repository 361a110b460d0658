"""Faults on demand: slow, failing, limited and broken answers, by a seed that reproduces them.

Owns the rules, the dice and the record of what was injected. The dice of the n-th call
of an endpoint depend on the seed, the endpoint and n alone, so that calls that run side
by side in another order meet the same faults. Which endpoint is called is `core`'s.
"""

import math
import random
import secrets
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Final, Literal

from msgspec import Struct

from executa_nexus_stub.clock import Clock, Timer, sleep
from executa_protocol.codes import by_number, by_symbol
from executa_protocol.nexus import NexusError

Kind = Literal["latency", "error", "rate_limit", "slow_first_byte", "cut", "malformed", "duplicate"]

_KEPT: Final = 10_000
_STREAMED: Final = ("slow_first_byte", "cut", "malformed", "duplicate")
_MALFORMED: Final = b'{"event":"delta","text":"\xff'


class FaultRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One fault and where it strikes.

    `endpoint` is a method of the nexus interface (``sample``, ``run_agent``), a storage
    call's wire name, or ``*``. `rate` is 0 to 1, `times` how often at most. Latency and
    the first byte take `seconds`, log-normal around it if `sigma` is given. An error has
    `status`, and `code` or the one of `symbol`. `after` is the number of frames before a
    stream is cut, or the index of the frame that is malformed or doubled.
    """

    kind: Kind
    endpoint: str = "*"
    rate: float = 1.0
    times: int | None = None
    seconds: float = 0.1
    sigma: float = 0.0
    status: int = 503
    code: int | None = None
    symbol: str = ""
    after: int = 0
    retry_after: float | None = None


class FaultConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules, and the seed of their dice; a seed is drawn if there is none.

    `clock_skew` is how many seconds nexus's clock is ahead of everyone else's.
    """

    rules: tuple[FaultRule, ...] = ()
    seed: int | None = None
    clock_skew: float = 0.0


class Injection(Struct, frozen=True):
    """One fault that struck: the `call`-th call of that endpoint, counted from 1."""

    endpoint: str
    call: int
    kind: Kind


class Faults:
    """The rules in force. Change them with `use`; `seed` reproduces what happened."""

    def __init__(self, clock: Clock, config: FaultConfig | None = None) -> None:
        self._clock = clock
        self.injected: deque[Injection] = deque(maxlen=_KEPT)
        self.seed = 0
        self.rules: tuple[FaultRule, ...] = ()
        self._calls: Counter[str] = Counter()
        self._struck: Counter[int] = Counter()
        self.use(config or FaultConfig())

    def use(self, config: FaultConfig) -> None:
        """Follow other rules from now on, counting from the start."""
        self.rules = config.rules
        self.seed = config.seed if config.seed is not None else secrets.randbelow(2**31)
        self.injected.clear()
        self._calls.clear()
        self._struck.clear()

    async def before(self, *names: str) -> None:
        """Strike before a call is served. Raises `NexusError` for an injected error."""
        if not self.rules:
            return
        for rule, dice in self._due(names, streamed=False):
            if rule.kind == "latency":
                await sleep(self._clock, _seconds(rule, dice))
            else:
                raise _error(rule)

    async def stream(
        self, source: AsyncGenerator[bytes, None], *names: str
    ) -> AsyncGenerator[bytes, None]:
        """A run's frames with the faults of streams. Closing it closes `source`."""
        due = self._due(names, streamed=True) if self.rules else []
        index = 0
        try:
            for rule, dice in due:
                if rule.kind == "slow_first_byte":
                    await sleep(self._clock, _seconds(rule, dice))
            async for frame in source:
                here = [rule.kind for rule, _ in due if rule.after == index]
                if "cut" in here:
                    raise NexusError("injected: the stream was cut", status=0)
                if "malformed" in here:
                    yield _MALFORMED
                yield frame
                if "duplicate" in here:
                    yield frame
                index += 1
        finally:
            await source.aclose()

    def _due(
        self, names: Sequence[str], *, streamed: bool
    ) -> list[tuple[FaultRule, random.Random]]:
        """The rules that strike this call, each with dice of its own."""
        endpoint = names[-1]
        key = f"{endpoint} stream" if streamed else endpoint
        self._calls[key] += 1
        call = self._calls[key]
        due: list[tuple[FaultRule, random.Random]] = []
        for number, rule in enumerate(self.rules):
            if (rule.kind in _STREAMED) != streamed or rule.endpoint not in ("*", *names):
                continue
            if rule.times is not None and self._struck[number] >= rule.times:
                continue
            dice = random.Random(f"{self.seed} {key} {call} {number}")  # noqa: S311 - no secret
            if dice.random() < rule.rate:
                self._struck[number] += 1
                self.injected.append(Injection(endpoint, call, rule.kind))
                due.append((rule, dice))
                if rule.kind in ("error", "rate_limit"):
                    break  # the call goes no further, so nothing else strikes it
        return due


class SkewedClock:
    """Another clock, some seconds ahead."""

    def __init__(self, clock: Clock, ahead: float) -> None:
        self._clock = clock
        self._ahead = ahead

    def now(self) -> float:
        """Epoch seconds, wrong by the skew."""
        return self._clock.now() + self._ahead

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Delays are not skewed."""
        return self._clock.call_later(seconds, callback)


def _seconds(rule: FaultRule, dice: random.Random) -> float:
    if not rule.sigma or rule.seconds <= 0:
        return rule.seconds
    return dice.lognormvariate(math.log(rule.seconds), rule.sigma)


def _error(rule: FaultRule) -> NexusError:
    if rule.kind == "rate_limit":
        pause = 1.0 if rule.retry_after is None else rule.retry_after
        return NexusError("injected: too many requests", status=429, retry_after=pause)
    code, symbol = rule.code, rule.symbol
    if symbol and code is None:
        row = by_symbol(symbol)
        code, symbol = row.number, row.symbol
    elif code is not None and not symbol:
        symbol = next((row.symbol for row in by_number(code)), "")
    return NexusError(
        "injected: nexus failed",
        status=rule.status,
        code=code,
        symbol=symbol,
        retry_after=rule.retry_after,
    )
