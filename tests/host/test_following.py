"""Events for whoever follows, at a bounded rate, and what a plugin says on stderr."""

import asyncio
import logging

import pytest

from executa_host.clock import SystemClock
from executa_host.followers import Followers
from executa_host.rate import RateLimit
from executa_host.stderr import StderrLog
from executa_protocol import transcript
from executa_protocol.limits import (
    NOISE_PER_SECOND,
    STDERR_LINE_CHARS,
    STDERR_LINES,
    STDERR_PER_SECOND,
)
from executa_protocol.transcript import AnyEvent
from tests.host.clocks import HostClock
from tests.host.conftest import MakeRig, Rig

EVENT = transcript.Noise(at=0, kind="k", message="m")


# --- Followers -------------------------------------------------------------------------------


def test_everybody_who_follows_gets_every_event_until_he_unfollows() -> None:
    followers = Followers()
    first: list[AnyEvent] = []
    second: list[AnyEvent] = []
    unfollow = followers.follow(first.append)
    followers.emit(EVENT)
    followers.follow(second.append)
    followers.emit(EVENT)
    unfollow()
    unfollow()
    followers.emit(EVENT)
    assert (len(first), len(second)) == (2, 2)


def test_following_twice_is_two_followings() -> None:
    followers = Followers()
    got: list[AnyEvent] = []
    unfollow = followers.follow(got.append)
    followers.follow(got.append)
    followers.emit(EVENT)
    unfollow()
    followers.emit(EVENT)
    assert len(got) == 3


def test_a_follower_that_fails_is_told_of_once_and_harms_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    followers = Followers()
    got: list[AnyEvent] = []

    def fails(event: AnyEvent) -> None:
        raise RuntimeError("I cannot take this")

    followers.follow(fails)
    followers.follow(got.append)
    with caplog.at_level(logging.ERROR):
        followers.emit(EVENT)
        followers.emit(EVENT)
    assert len(got) == 2
    assert len(caplog.records) == 1


def test_a_follower_may_unfollow_while_it_is_told() -> None:
    followers = Followers()
    got: list[AnyEvent] = []

    def once(event: AnyEvent) -> None:
        got.append(event)
        unfollow()

    unfollow = followers.follow(once)
    followers.emit(EVENT)
    followers.emit(EVENT)
    assert len(got) == 1


async def test_a_host_has_any_number_of_followers_and_the_trace_is_one_of_them(rig: Rig) -> None:
    other: list[AnyEvent] = []
    unfollow = rig.host.follow(other.append)
    rig.add()
    await rig.host.invoke("raw", "echo", {"value": {}})
    assert other == rig.events
    unfollow()
    await rig.host.invoke("raw", "echo", {"value": {}})
    assert len(other) < len(rig.events)


async def test_state_changes_come_in_their_order(rig: Rig) -> None:
    rig.add()
    await rig.host.start("raw")
    await rig.host.stop("raw")
    states = [event.state for event in rig.seen(transcript.StateChanged)]
    assert states == ["starting", "ready", "stopping", "stopped"]


# --- Rates -----------------------------------------------------------------------------------


def test_a_rate_lets_so_many_through_at_once_and_as_many_a_second() -> None:
    clock = HostClock()
    limit = RateLimit(10, clock.monotonic)
    assert sum(limit.allow() for _ in range(30)) == 10
    assert limit.take_dropped() == 20
    assert limit.take_dropped() == 0
    clock.advance(0.5)
    assert sum(limit.allow() for _ in range(30)) == 5
    clock.advance(60)
    assert sum(limit.allow() for _ in range(30)) == 10


# --- Stderr ----------------------------------------------------------------------------------


class Said:
    """A log of stderr and what it passes on."""

    def __init__(self, rate: float = STDERR_PER_SECOND) -> None:
        self.clock = HostClock()
        self.lines: list[str] = []
        self.dropped: list[int] = []
        limit = RateLimit(rate, self.clock.monotonic)
        self.log = StderrLog(limit, self.lines.append, self.dropped.append)


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_lines_come_out_the_same_however_the_bytes_come_in(size: int) -> None:
    data = "one\r\ntwo é\n\nfour\xa0\u2028still four\nfive".encode() + b" \xff\xfe"
    said = Said()
    for start in range(0, len(data), size):
        said.log.feed(data[start : start + size])
    said.log.close()
    assert said.lines == ["one", "two é", "", "four\xa0\u2028still four", "five \ufffd\ufffd"]
    assert list(said.log.lines) == said.lines
    assert said.log.count == 5


def test_a_line_without_an_end_is_cut_and_the_next_one_is_whole() -> None:
    said = Said()
    for _ in range(50):
        said.log.feed(b"x" * 65536)
    said.log.feed(b"\nnext\n")
    assert said.lines == ["x" * STDERR_LINE_CHARS, "next"]


def test_only_the_last_lines_are_kept() -> None:
    said = Said(rate=10_000)
    for number in range(3 * STDERR_LINES):
        said.log.feed(b"%d\n" % number)
    assert [said.log.lines[0], said.log.lines[-1]] == [str(2 * STDERR_LINES), "599"]
    assert len(said.log.lines) == STDERR_LINES
    assert len(said.lines) == 3 * STDERR_LINES


def test_a_flood_is_counted_and_its_last_lines_are_kept() -> None:
    said = Said(rate=10)
    said.log.feed(b"x\n" * 50_000 + b"last\n")
    assert said.log.count == 50_001
    assert said.log.lines[-1] == "last"
    assert len(said.lines) == 10
    assert said.dropped == [50_001 - STDERR_LINES]
    said.clock.advance(1)
    said.log.feed(b"later\n")
    assert sum(said.dropped) == 50_001 - 10
    assert said.lines[-1] == "later"


def test_what_was_left_out_is_told_at_the_end_at_the_latest() -> None:
    said = Said(rate=1)
    said.log.feed(b"a\nb\nc\n")
    said.log.close()
    assert (said.lines, said.dropped) == (["a"], [2])


@pytest.mark.parametrize("line", ["w\n", "\xff\xfe\x80 \x00\x1b[2J\n", "x"])
async def test_a_flood_on_stderr_in_any_bytes_stops_neither_the_plugin_nor_the_host(
    rig: Rig, line: str
) -> None:
    rig.add_rude()
    await rig.host.start("raw")
    flood = {"stream": "stderr", "bytes": 8_000_000, "line": line}
    async with asyncio.timeout(20):
        assert (await rig.host.invoke("raw", "flood", flood)).success
        assert (await rig.host.invoke("raw", "echo", {"value": {}})).success
    assert len(rig.seen(transcript.Stderr)) <= STDERR_PER_SECOND * 20
    words = rig.host.status("raw").last_words
    assert len(words) <= STDERR_LINES
    assert all(len(word) <= STDERR_LINE_CHARS for word in words)
    await rig.host.stop("raw")
    if "\n" in line:
        assert any(event.kind == "dropped" for event in rig.seen(transcript.Noise))


async def test_a_flood_of_nonsense_on_stdout_is_counted_and_told_at_a_bounded_rate(
    make_rig: MakeRig,
) -> None:
    rig = make_rig(clock=HostClock())  # which stands still
    rig.add_rude()
    flood = {"stream": "stdout", "bytes": 1_000_000, "line": "nonsense\n"}
    async with asyncio.timeout(20):
        assert (await rig.host.invoke("raw", "flood", flood)).success
        assert (await rig.host.invoke("raw", "echo", {"value": {}})).success
    assert len(rig.seen(transcript.Noise)) == NOISE_PER_SECOND


def test_the_system_clock_is_the_machines() -> None:
    assert abs(SystemClock().monotonic() - SystemClock.monotonic()) < 1
    assert SystemClock.now() > 1_700_000_000
