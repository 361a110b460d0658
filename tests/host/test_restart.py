"""The restart policy alone: delays, the last fault, and what clears the count (R-25)."""

import pytest

from executa_host.restart import JITTER, RestartPolicy, describe_exit, is_fault


def test_restarts_in_a_row_wait_one_two_and_four_seconds_and_the_fourth_fault_is_the_last() -> None:
    policy = RestartPolicy()
    assert [policy.fault(0.1, 0.5) for _ in range(4)] == [1.0, 2.0, 4.0, None]
    assert policy.faults == 4


@pytest.mark.parametrize(("random", "factor"), [(0.0, 1 - JITTER), (0.5, 1.0), (1.0, 1 + JITTER)])
def test_jitter_moves_a_delay_by_a_tenth_at_most(random: float, factor: float) -> None:
    policy = RestartPolicy()
    delays = [policy.fault(0.0, random) for _ in range(3)]
    assert delays == pytest.approx([1 * factor, 2 * factor, 4 * factor])


@pytest.mark.parametrize(("ran_for", "delay"), [(59.9, 4.0), (60.0, 1.0)])
def test_only_a_stable_run_of_a_minute_clears_the_count(ran_for: float, delay: float) -> None:
    policy = RestartPolicy()
    policy.fault(0.0, 0.5)
    policy.fault(0.0, 0.5)
    assert policy.fault(ran_for, 0.5) == delay


def test_a_restart_by_hand_clears_the_count() -> None:
    policy = RestartPolicy()
    for _ in range(4):
        policy.fault(0.0, 0.5)
    policy.reset()
    assert policy.fault(0.0, 0.5) == 1.0


@pytest.mark.parametrize(
    ("code", "asked", "in_flight", "fault"),
    [
        (0, False, False, False),
        (0, False, True, True),
        (1, False, False, True),
        (-9, False, False, True),
        (0, True, True, False),
        (1, True, False, False),
        (-15, True, False, False),
    ],
)
def test_an_exit_is_a_fault_unless_it_was_asked_for_or_clean_and_idle(
    code: int, asked: bool, in_flight: bool, fault: bool
) -> None:
    assert is_fault(code, asked=asked, in_flight=in_flight) is fault


@pytest.mark.parametrize(
    ("code", "words"),
    [(0, "exited with code 0"), (7, "exited with code 7"), (-9, "was killed by SIGKILL")],
)
def test_an_exit_has_words(code: int, words: str) -> None:
    assert describe_exit(code) == words


def test_an_unknown_signal_has_words_too() -> None:
    assert describe_exit(-200) == "was killed by signal 200"
