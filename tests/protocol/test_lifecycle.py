"""The states of a supervised plugin."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from executa_protocol.lifecycle import CALLABLE, RUNNING, TABLE, Event, State, move
from executa_protocol.moves import IllegalMove


def walked(*events: Event, start: State = State.STOPPED) -> list[State]:
    """The states that these events lead through."""
    states = [start]
    for event in events:
        states.append(move(states[-1], event))
    return states


def test_a_plugin_starts_works_and_stops() -> None:
    assert walked(Event.START, Event.NEGOTIATED, Event.STOP, Event.EXITED) == [
        "stopped",
        "starting",
        "ready",
        "stopping",
        "stopped",
    ]


def test_silence_makes_it_v1_and_a_late_negotiation_v2() -> None:
    assert walked(Event.START, Event.FELL_BACK, Event.NEGOTIATED)[-1] is State.READY


def test_a_fault_leads_to_a_restart_and_the_last_one_to_a_refusal() -> None:
    assert walked(
        Event.START, Event.FAULT, Event.START, Event.NEGOTIATED, Event.LAST_FAULT, Event.START
    )[2:] == ["restarting", "starting", "ready", "faulted", "starting"]


def test_a_missed_probe_makes_it_unhealthy_until_it_answers_or_is_replaced() -> None:
    assert walked(Event.MISSED_PROBE, Event.ANSWERED, start=State.READY)[-1] is State.READY
    assert walked(Event.MISSED_PROBE, Event.ANSWERED_V1, start=State.V1)[-1] is State.V1
    assert walked(Event.MISSED_PROBE, Event.FAULT, start=State.V1)[-1] is State.RESTARTING


def test_a_clean_exit_is_no_fault_wherever_a_process_runs() -> None:
    for state in RUNNING:
        assert move(state, Event.EXITED) is State.STOPPED


def test_an_exit_of_any_kind_while_it_stops_is_as_it_was_asked_to() -> None:
    with pytest.raises(IllegalMove):
        move(State.STOPPING, Event.FAULT)


def test_what_waits_or_has_given_up_stops_at_once() -> None:
    assert move(State.RESTARTING, Event.STOP) is State.STOPPED
    assert move(State.FAULTED, Event.STOP) is State.STOPPED


def test_only_states_with_a_process_take_calls() -> None:
    assert CALLABLE < RUNNING
    assert State.FAULTED not in RUNNING


ILLEGAL = [(state, event) for state in State for event in Event if event not in TABLE[state]]


@pytest.mark.parametrize(("state", "event"), ILLEGAL)
def test_an_event_that_cannot_happen_is_refused_by_name(state: State, event: Event) -> None:
    with pytest.raises(IllegalMove, match=f"plugin: {state} -> {event}") as caught:
        move(state, event)
    assert (caught.value.old, caught.value.new) == (state, event)


def test_every_state_can_be_reached_and_every_event_happens_somewhere() -> None:
    reached = {State.STOPPED}
    for _ in State:
        reached |= {after for state in reached for after in TABLE[state].values()}
    assert reached == set(State)
    assert {event for events in TABLE.values() for event in events} == set(Event)


class Supervision(RuleBasedStateMachine):
    """A host that reports events in any order, against a model of the process."""

    def __init__(self) -> None:
        super().__init__()
        self.state = State.STOPPED
        self.alive = False

    @rule(event=st.sampled_from(Event))
    def happen(self, event: Event) -> None:
        before = self.state
        try:
            self.state = move(before, event)
        except IllegalMove:
            assert self.state is before
            return
        if event is Event.START:
            assert not self.alive
            self.alive = True
        elif event in (Event.EXITED, Event.FAULT, Event.LAST_FAULT):
            assert self.alive
            self.alive = False

    @invariant()
    def a_process_runs_exactly_in_the_states_that_say_so(self) -> None:
        assert self.alive == (self.state in RUNNING)


TestSupervision = Supervision.TestCase
TestSupervision.settings = settings(max_examples=50, deadline=None)
