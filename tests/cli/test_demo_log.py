"""What the demo calls a gap or a repeat: the check that its crash is measured by."""

from msgspec import Raw

from executa_host.actions.records import EventRecord
from executa_host.cli.demo_log import faults_in
from executa_protocol.chunks import Chunk, ChunkKind


def _state(number: int, state: str = "running") -> EventRecord:
    return EventRecord(cursor=f"s{number}", type="state", at_ms=0, action_id="act_1", state=state)


def _chunk(number: int, sequence: int, attempt: int = 1, kind: str = "progress") -> EventRecord:
    chunk = Chunk("act_1", sequence, attempt, ChunkKind(kind), 0, Raw(b"{}"))
    return EventRecord(cursor=f"s{number}", type="chunk", at_ms=0, action_id="act_1", chunk=chunk)


WHOLE = [_state(1), _chunk(2, 1), _chunk(3, 2), _state(4), _chunk(5, 3, 2), _chunk(6, 4, 2, "end")]


def test_the_whole_log_and_every_beginning_of_it_are_without_fault() -> None:
    for length in range(len(WHOLE) + 1):
        assert faults_in(WHOLE[:length], WHOLE) == []


def test_each_event_that_is_missing_is_found() -> None:
    for missing in range(len(WHOLE) - 1):
        seen = WHOLE[:missing] + WHOLE[missing + 1 :]
        assert any("missing" in fault for fault in faults_in(seen, WHOLE))


def test_each_event_that_comes_twice_is_found() -> None:
    for twice in range(len(WHOLE)):
        seen = WHOLE[: twice + 1] + WHOLE[twice:]
        assert any("twice" in fault for fault in faults_in(seen, WHOLE))


def test_another_order_is_found() -> None:
    seen = [WHOLE[0], WHOLE[2], WHOLE[1]]
    assert any("order" in fault for fault in faults_in(seen, WHOLE))


def test_an_event_that_was_never_stored_is_found() -> None:
    assert any("not in the log" in fault for fault in faults_in([*WHOLE, _state(7)], WHOLE))


def test_chunks_that_break_their_own_rules_are_found_though_the_log_agrees() -> None:
    wrong = [_chunk(1, 1), _chunk(2, 3)]
    assert any("where 2 is due" in fault for fault in faults_in(wrong, wrong))
    wrong = [_chunk(1, 1, 2), _chunk(2, 2, 1)]
    assert any("earlier attempt" in fault for fault in faults_in(wrong, wrong))
    wrong = [_chunk(1, 1, 1, "end"), _chunk(2, 2)]
    assert any("after its end" in fault for fault in faults_in(wrong, wrong))
