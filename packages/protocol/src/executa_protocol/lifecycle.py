"""The states of one supervised plugin, and what moves it from one to the next.

Owns the table that stands behind seed lifecycle and R-20 to R-26: a host reports
what happened, and the table says what that makes of the plugin. It knows no
process, no clock and no count of restarts; whether a fault is met with a restart or
is the last one is for the restart policy to say.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from executa_protocol.moves import IllegalMove


class State(StrEnum):
    """What a plugin is, seen from outside."""

    STOPPED = "stopped"  # no process; the next call starts one
    STARTING = "starting"  # spawned, in initialize or describe
    READY = "ready"  # v2: reverse calls are open
    V1 = "v1"  # fell back to 1.1: no reverse calls
    UNHEALTHY = "unhealthy"  # missed a health probe after a time-out
    RESTARTING = "restarting"  # no process until the restart delay is over
    FAULTED = "faulted"  # out of restarts; refuses until someone restarts it
    STOPPING = "stopping"  # on the stop ladder


class Event(StrEnum):
    """What happened to a plugin, or was decided about it."""

    START = "start"  # a process is spawned
    NEGOTIATED = "negotiated"  # answered initialize as v2
    FELL_BACK = "fell_back"  # error, another version, or silence
    MISSED_PROBE = "missed_probe"
    ANSWERED = "answered"  # healthy again, v2
    ANSWERED_V1 = "answered_v1"  # healthy again, v1
    FAULT = "fault"  # exited wrongly, could not start, or is to be replaced; a restart follows
    LAST_FAULT = "last_fault"  # the same, and no restart is left
    STOP = "stop"  # someone wants it gone
    EXITED = "exited"  # the process is gone as it should be


_RUNNING: Final[Mapping[Event, State]] = {
    Event.FAULT: State.RESTARTING,
    Event.LAST_FAULT: State.FAULTED,
    Event.STOP: State.STOPPING,
    Event.EXITED: State.STOPPED,
}

TABLE: Final[Mapping[State, Mapping[Event, State]]] = MappingProxyType(
    {
        State.STOPPED: {Event.START: State.STARTING},
        State.STARTING: {
            **_RUNNING,
            Event.NEGOTIATED: State.READY,
            Event.FELL_BACK: State.V1,
        },
        State.READY: {**_RUNNING, Event.MISSED_PROBE: State.UNHEALTHY},
        State.V1: {
            **_RUNNING,
            Event.MISSED_PROBE: State.UNHEALTHY,
            # The first launch of a one-file binary is negotiated once more.
            Event.NEGOTIATED: State.READY,
        },
        State.UNHEALTHY: {
            **_RUNNING,
            Event.ANSWERED: State.READY,
            Event.ANSWERED_V1: State.V1,
        },
        # A restart of one that runs goes through the stop ladder first.
        State.RESTARTING: {Event.START: State.STARTING, Event.STOP: State.STOPPED},
        State.FAULTED: {Event.START: State.STARTING, Event.STOP: State.STOPPED},
        # However it leaves, it was asked to.
        State.STOPPING: {Event.EXITED: State.STOPPED},
    }
)
"""Every legal event of every state."""

RUNNING: Final = frozenset(state for state in State if Event.EXITED in TABLE[state])
"""States that have a process."""

CALLABLE: Final = frozenset({State.READY, State.V1, State.UNHEALTHY})
"""States in which an invoke is written at once; in others it waits, starts one, or is refused."""


def move(state: State, event: Event) -> State:
    """The state after `event`. Raises `IllegalMove` where the event cannot happen."""
    after = TABLE[state].get(event)
    if after is None:
        raise IllegalMove("plugin", state, event)
    return after
