"""Chunks: what may be appended, and what a follower makes of it."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executa_protocol.chunks import OUTPUT, Chunk, ChunkFollower, ChunkKind, check_append
from executa_protocol.errors import DecodeFailure, UsageError


def chunk(sequence: int, **members: Any) -> Chunk:
    """A chunk of one action."""
    rest: dict[str, Any] = {
        "action_id": "act_1",
        "attempt": 1,
        "kind": ChunkKind.DATA,
        "at_ms": 0,
        **members,
    }
    return Chunk(sequence=sequence, **rest)


def test_the_kinds_are_the_rulings() -> None:
    assert set(ChunkKind) == {
        "data",
        "progress",
        "tool",
        "preview",
        "pending_approval",
        "error",
        "end",
    }
    assert ChunkKind.PROGRESS not in OUTPUT


def test_a_sequence_starts_at_one_and_has_no_gaps() -> None:
    check_append(None, chunk(1))
    check_append(chunk(1), chunk(2))
    for last, new in ((None, 0), (None, 2), (chunk(1), 1), (chunk(1), 3)):
        with pytest.raises(UsageError, match="is due"):
            check_append(last, chunk(new))


def test_the_sequence_goes_on_in_the_next_attempt_and_attempts_never_go_back() -> None:
    check_append(chunk(1), chunk(2, attempt=2))
    with pytest.raises(UsageError, match="earlier attempt"):
        check_append(chunk(1, attempt=2), chunk(2))


def test_nothing_comes_after_the_end() -> None:
    end = chunk(1, kind=ChunkKind.END)
    for kind in ChunkKind:
        with pytest.raises(UsageError, match="after its end"):
            check_append(end, chunk(2, kind=kind))


def test_chunks_of_another_action_are_refused() -> None:
    with pytest.raises(UsageError, match="among those"):
        check_append(chunk(1), chunk(2, action_id="act_2"))


def test_a_chunk_is_read_back_equal() -> None:
    raw = msgspec.json.encode(chunk(1, data=msgspec.Raw(b'{"n":1}')))
    read = msgspec.json.decode(raw, type=Chunk)
    assert msgspec.json.encode(read) == raw


def test_a_follower_takes_each_chunk_once() -> None:
    follower = ChunkFollower()
    assert [follower.take(chunk(n)) for n in (1, 2, 1, 2, 3)] == [True, True, False, False, True]
    assert follower.cursor == 3


def test_a_follower_goes_on_after_its_cursor() -> None:
    follower = ChunkFollower(cursor=5)
    assert not follower.take(chunk(5))
    assert follower.take(chunk(6))


def test_a_hole_is_no_duplicate() -> None:
    follower = ChunkFollower()
    with pytest.raises(DecodeFailure, match="after chunk 0"):
        follower.take(chunk(2))
    assert follower.cursor == 0


def test_a_follower_knows_the_attempt_whose_output_counts() -> None:
    follower = ChunkFollower()
    follower.take(chunk(1))
    follower.take(chunk(2, attempt=2))
    assert follower.attempt == 2


def test_a_follower_knows_the_end_and_takes_nothing_after_it() -> None:
    follower = ChunkFollower()
    follower.take(chunk(1, kind=ChunkKind.END))
    assert follower.ended
    assert not follower.take(chunk(1, kind=ChunkKind.END))
    with pytest.raises(DecodeFailure, match="after its end"):
        follower.take(chunk(2))


@given(st.lists(st.integers(1, 10)))
def test_duplicates_and_order_of_delivery_lose_nothing(reconnects: list[int]) -> None:
    """Each reconnect replays from somewhere at or before the cursor; the tail is always read."""
    everything = [chunk(n, kind=ChunkKind.END if n == 10 else ChunkKind.DATA) for n in range(1, 11)]
    follower = ChunkFollower()
    taken: list[int] = []
    for length in [*reconnects, 10]:
        start = follower.cursor // 2
        taken += [c.sequence for c in everything[start : start + length] if follower.take(c)]
    taken += [c.sequence for c in everything[follower.cursor :] if follower.take(c)]
    assert taken == list(range(1, 11))
    assert follower.ended
