"""A parser in any language, through its adapter: one line in, one line out."""

import asyncio
from collections.abc import Sequence

import msgspec
from msgspec import UNSET

from executa_conformance.child import Child
from executa_conformance.cli.running import Ran, Work
from executa_conformance.evidence import Evidence
from executa_conformance.golden.judge import Said, difference
from executa_conformance.golden.rows import Row
from executa_conformance.model import Check, NotApplicable, NotMet
from executa_conformance.patience import Patience
from executa_conformance.runner import Told, run_checks
from executa_protocol.framing import Oversized

_SENT = ("chapter", "input", "input_b64", "given")
_SAID = msgspec.json.Decoder(Said)


class Adapter:
    """The process. It is asked one question at a time, and started anew when it has ended."""

    def __init__(self, command: Sequence[str], patience: Patience, *, strict: bool) -> None:
        self.strict = strict
        self._command = command
        self._patience = patience
        self._child: Child | None = None
        self._lock = asyncio.Lock()
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()

    def _line(self, line: bytes | Oversized, whole: bool) -> None:
        self._lines.put_nowait(line if isinstance(line, bytes) else line.head)

    async def ask(self, case: str, row: Row, evidence: Evidence) -> Said:
        """What the parser says of a row. Raises `NotMet` if it says nothing that can be read."""
        question = {"case": case, **{name: row[name] for name in _SENT if name in row}}
        line = msgspec.json.encode({**question, "strict": self.strict}) + b"\n"
        async with self._lock:
            child = await self._running(evidence)
            evidence.add(">", line)
            await child.write(line)
            answer = await self._next(child)
        evidence.add("<", answer)
        try:
            said = _SAID.decode(answer)
        except msgspec.MsgspecError as fault:
            msg = f"the adapter's answer cannot be read: {fault}"
            raise NotMet(msg) from None
        if said.case != case:
            msg = f"the adapter answers {said.case!r}, and was asked {case!r}"
            raise NotMet(msg)
        return said

    async def _running(self, evidence: Evidence) -> Child:
        if self._child is None or self._child.ended.is_set():
            await self.close()
            self._lines = asyncio.Queue()
            self._child = await Child.spawn(self._command, self._line, evidence, {})
        return self._child

    async def _next(self, child: Child) -> bytes:
        getting = asyncio.ensure_future(self._lines.get())
        ended = asyncio.ensure_future(child.ended.wait())
        await asyncio.wait(
            (getting, ended),
            timeout=self._patience.start,
            return_when=asyncio.FIRST_COMPLETED,
        )
        ended.cancel()
        if getting.done():
            return getting.result()
        getting.cancel()
        await child.exit(self._patience.grace if child.ended.is_set() else 0)
        said = bytes(child.stderr[-400:]).decode(errors="replace").strip()
        await self.close()
        msg = f"the adapter does not answer{child.epitaph()}" + (f": {said}" if said else "")
        raise NotMet(msg)

    async def close(self) -> None:
        """End the process."""
        child, self._child = self._child, None
        if child is not None:
            await child.close(self._patience.grace)


class Reading:
    """The scene of one golden line."""

    def __init__(self, adapter: Adapter, evidence: Evidence) -> None:
        self._adapter = adapter
        self._evidence = evidence

    async def judge(self, case: str, row: Row) -> None:
        """Ask, and raise what a check raises."""
        said = await self._adapter.ask(case, row, self._evidence)
        if said.skip is not UNSET:
            msg = f"the adapter skips it: {said.skip}"
            raise NotApplicable(msg)
        wrong = difference(row, said, strict=self._adapter.strict)
        if wrong:
            raise NotMet(wrong)


class ParserTarget:
    """See `runner.Target`."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter

    def scene(self, check: Check, evidence: Evidence) -> Reading:
        """See `runner.Target`."""
        return Reading(self._adapter, evidence)

    async def applies(self, check: Check) -> None:
        """Every line concerns every parser; an adapter may skip what it does not read."""

    async def close(self, scene: Reading) -> None:
        """The adapter serves the next one."""


def check_parser(command: Sequence[str], *, strict: bool) -> Work:
    """What runs the golden lines against the adapter that `command` starts."""

    async def work(
        found: tuple[Check, ...], patience: Patience, jobs: int, told: Told | None
    ) -> Ran:
        adapter = Adapter(command, patience, strict=strict)
        try:
            target = ParserTarget(adapter)
            return Ran(await run_checks(found, target, patience=patience, jobs=1, told=told))
        finally:
            await adapter.close()

    return work
