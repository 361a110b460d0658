"""What the soak does to a host: workers that invoke and check, and one who kills.

Owns the actions, what each must answer, and when a failure is explained: a call may be
lost only if its plugin was killed while it was under way or just before. Reports and
resources are `soak`'s.
"""

import asyncio
import contextlib
import os
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec import Struct

from executa_host import Host, PluginFaulted, StartFailed
from executa_host.invocation import InvokeTimeout
from executa_protocol.errors import CallFailed, ConnectionLost, ExecutaError

TEXTS: Final = (
    "Tea is hot. Ice is cold. Water is wet.",
    "The briefing is for readers who have two minutes. It names one thing to do first.",
    "Plants want water on Friday. The cat wants it now.",
)
LIMIT: Final = 60.0
"""Seconds within which every invoke must have ended, a restart of its plugin included."""

HANG: Final = 0.15
"""Longest that a hanging invoke is waited for, or left alone before it is cancelled."""

EXPLAINED: Final = 10.0
"""A kill explains what fails within this many seconds: the plugin starts again meanwhile."""


class Worker(Struct):
    """One of those who invoke `name`, with dice and keys of its own."""

    name: str
    number: int
    dice: random.Random


Action = Callable[[Worker], Awaitable[str]]


class Tally:
    """What happened, and what should not have."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.unanswered: list[str] = []

    def expect(self, holds: object, otherwise: str) -> None:
        """Note a wrong answer unless `holds` is true."""
        if not holds:
            self.wrong.append(otherwise[:500])


class Load:
    """Workers over one host until `stop` is set."""

    def __init__(self, host: Host, names: list[str], seed: int) -> None:
        self.tally = Tally()
        self._host = host
        self._names = names
        self._seed = seed
        self._killed: dict[str, float] = {}
        self._said: dict[str, str] = {}
        self._restarting: dict[str, asyncio.Lock] = {name: asyncio.Lock() for name in names}
        self._actions: dict[str, tuple[int, Action]] = {
            "work": (66, self._work),
            "talk": (8, self._talk),
            "overreach": (8, self._overreach),
            "time-out": (8, self._time_out),
            "cancel": (10, self._cancel),
        }

    async def run(self, seconds: float, workers: int, kills_per_second: float) -> None:
        """Load every plugin with `workers` workers for `seconds`."""
        until = asyncio.get_running_loop().time() + seconds
        killing = asyncio.ensure_future(self._kill(until, kills_per_second))
        await asyncio.gather(
            *(
                self._worker(name, number, until)
                for name in self._names
                for number in range(workers)
            )
        )
        await killing

    async def _worker(self, name: str, number: int, until: float) -> None:
        seed = f"{self._seed} {name} {number}"
        worker = Worker(name, number, random.Random(seed))  # noqa: S311 - no secret
        clock = asyncio.get_running_loop().time
        words, weights = list(self._actions), [weight for weight, _ in self._actions.values()]
        while clock() < until:
            (word,) = worker.dice.choices(words, weights)
            started = clock()
            outcome = "unanswered"
            try:
                async with asyncio.timeout(2 * LIMIT):
                    outcome = await self._actions[word][1](worker)
            except TimeoutError:
                self.tally.unanswered.append(f"{name}: {word} had no end after {2 * LIMIT:g} s")
            except ExecutaError as fault:
                outcome = await self._failed(name, word, fault, started)
            self.tally.counts[outcome] += 1

    async def _failed(self, name: str, word: str, fault: ExecutaError, started: float) -> str:
        """A failure is explained by a kill of that plugin, or it is wrong."""
        killed = self._killed.get(name)
        explained = killed is not None and killed > started - EXPLAINED
        kinds = (ConnectionLost, StartFailed, PluginFaulted, CallFailed)
        if not explained or not isinstance(fault, kinds):
            self.tally.wrong.append(f"{name}: {word}: {type(fault).__name__}: {fault}"[:500])
            return "failed"
        if isinstance(fault, PluginFaulted):
            # What an operator would do; one worker does it, the others wait for it.
            async with self._restarting[name]:
                with contextlib.suppress(ExecutaError):
                    await self._host.restart(name)
            return "faulted"
        return "lost"

    async def _kill(self, until: float, per_second: float) -> None:
        dice = random.Random(f"{self._seed} kill")  # noqa: S311 - no secret
        clock = asyncio.get_running_loop().time
        while per_second > 0 and (left := until - clock()) > 0:
            await asyncio.sleep(min(left, dice.expovariate(per_second)))
            name = dice.choice(self._names)
            pid = self._host.pid(name)
            if pid is not None and clock() < until:
                self._killed[name] = clock()
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                self.tally.counts["killed"] += 1

    # --- Actions -----------------------------------------------------------------------

    async def _invoke(self, worker: Worker, tool: str, **more: Any) -> Any:
        name = worker.name
        key = f"{name}/{worker.number}/{worker.dice.randrange(8)}"
        arguments = {"key": key, **more}
        outcome = await self._host.invoke(name, tool, arguments, timeout=LIMIT)
        self.tally.expect(outcome.success, f"{name}: {tool} failed: {outcome.error}")
        return outcome.data

    async def _work(self, worker: Worker) -> str:
        name, dice = worker.name, worker.dice
        nonce, text = dice.getrandbits(64), dice.choice(TEXTS)
        data = await self._invoke(worker, "work", nonce=nonce, text=text)
        expect = self.tally.expect
        expect(data["nonce"] == nonce, f"{name}: work answered another invoke: {data}")
        expect("result" in data["stored"], f"{name}: storage/set gave {data['stored']}")
        found = data["found"].get("result", {})
        expect(found.get("value") == {"nonce": nonce}, f"{name}: storage/get gave {data['found']}")
        said = data["sampled"].get("result", {}).get("content", {}).get("text")
        known = self._said.setdefault(text, said) if said else None
        expect(said and said == known, f"{name}: sampling gave {data['sampled']}")
        self.tally.counts["reverse calls"] += 3
        return "ok"

    async def _talk(self, worker: Worker) -> str:
        """A run whose model calls a tool of the plugin that runs it: an invoke in an invoke."""
        name, nonce = worker.name, worker.dice.getrandbits(64)
        text = f'Use {name}.note {{"query": "{nonce}"}} and say what it holds.'
        data = await self._invoke(worker, "talk", text=text)
        frames = data.get("ran", {}).get("result", {}).get("frames", [])
        results = [frame["data"] for frame in frames if frame["event"] == "tool_result"]
        self.tally.expect(results == [[f"A note on {nonce}."]], f"{name}: a run gave {data}")
        last = frames[-1]["event"] if frames else "nothing"
        self.tally.expect(last == "final", f"{name}: a run ended with {last}")
        ended = data.get("ended", {}).get("result")
        self.tally.expect(ended == {"deleted": True}, f"{name}: delete gave {data.get('ended')}")
        self.tally.counts["reverse calls"] += 3
        return "ok"

    async def _overreach(self, worker: Worker) -> str:
        name = worker.name
        data = await self._invoke(worker, "overreach")
        for what, symbol in (("scope", "forbidden_scope"), ("files", "not_granted")):
            told = data[what].get("error", {}).get("data", {}).get("errorCode")
            self.tally.expect(told == symbol, f"{name}: {what} was answered {data[what]}")
        self.tally.counts["reverse calls"] += 2
        return "ok"

    async def _time_out(self, worker: Worker) -> str:
        seconds = worker.dice.uniform(HANG / 3, HANG)
        try:
            await self._host.invoke(worker.name, "hang", {"key": "k"}, timeout=seconds)
        except InvokeTimeout:
            return "timed out"
        self.tally.wrong.append(f"{worker.name}: a hanging invoke was answered")
        return "failed"

    async def _cancel(self, worker: Worker) -> str:
        name = worker.name
        invoking = asyncio.ensure_future(
            self._host.invoke(name, "hang", {"key": "k"}, timeout=LIMIT)
        )
        await asyncio.wait((invoking,), timeout=worker.dice.uniform(0, HANG))
        if invoking.done():
            invoking.result()
        invoking.cancel()
        await asyncio.wait((invoking,), timeout=LIMIT)
        self.tally.expect(invoking.cancelled(), f"{name}: a cancelled invoke ended otherwise")
        if not invoking.cancelled():
            invoking.result()
        return "cancelled"
