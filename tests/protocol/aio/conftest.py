"""What the tests of `aio` have: both loops, transports that are closed, peers that are watched."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
import uvloop

from executa_protocol.aio import writer
from executa_protocol.aio.transport import Transport
from tests.protocol.aio.wires import KINDS, End, Kind, Stranger, transport_pair
from tests.support.leaks import LeakCheck


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Every test of this folder runs on both."""
    return {"asyncio": asyncio.SelectorEventLoop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Over memory, pipes and sockets."""
    return request.param


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the tests run, writers find that another process may run beside this one."""
    monkeypatch.setattr(writer, "has_cores", lambda: True)


class Wiring:
    """Makes wires, and takes them down after the test."""

    def __init__(self, leak_check: LeakCheck) -> None:
        self._leak_check = leak_check
        self._transports: list[Transport] = []
        self._ends: list[End] = []

    def pair(self, kind: Kind, **options: Any) -> tuple[Transport, Transport]:
        """Two transports; neither reads yet."""
        pair = transport_pair(kind, **options)
        self._transports += pair
        return pair

    def end(self, transport: Transport, **options: Any) -> End:
        """A peer that does not read yet, over a transport."""
        end = End(transport, **options)
        self._ends.append(end)
        self._transports.append(transport)
        self._leak_check.watch(end.peer, "the peer")
        return end

    def peers(self, kind: Kind, **options: Any) -> tuple[End, End]:
        """Two peers that read; the second one has string ids."""
        left, right = self.pair(kind)
        ends = self.end(left, **options), self.end(right, prefix="p")
        for end in ends:
            end.peer.start()
        return ends

    def peer(self, kind: Kind = "memory", **options: Any) -> tuple[End, Stranger]:
        """A peer that reads, and a stranger on the other side."""
        left, right = self.pair(kind)
        end, stranger = self.end(left, **options), Stranger(right)
        end.peer.start()
        right.start(stranger)
        return end, stranger

    def close(self) -> None:
        for end in self._ends:
            end.peer.close()
        for transport in self._transports:
            transport.close()


@pytest_asyncio.fixture
async def wiring(leak_check: LeakCheck) -> AsyncIterator[Wiring]:
    """Makes wires; see `Wiring`."""
    wiring = Wiring(leak_check)
    yield wiring
    wiring.close()
