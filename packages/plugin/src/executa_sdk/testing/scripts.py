"""What a scripted model says: a text always, a list in order, or whatever a function gives.

Also what a run of an agent session consists of, from as little as its final text.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

from executa_protocol.codes import SAMPLING_PROVIDER_ERROR
from executa_protocol.errors import SamplingError

Object = dict[str, Any]
T = TypeVar("T")

Sample = str | Object | Exception
"""One completion: its text, the whole result, or the error that is answered."""

Run = str | Sequence[Object] | Exception
"""One run: its final text, all its frames, or the error that is answered."""

SampleScript = Sample | Sequence[Sample] | Callable[[Object], Sample]
RunScript = Run | Sequence[Run] | Callable[[Object], Run]
"""One answer for ever, answers in order, or a function of the call's params."""


class Player(Generic[T]):
    """Gives the script's next answer. `is_one` says whether the script is a single answer."""

    def __init__(self, script: Any, is_one: Callable[[Any], bool]) -> None:
        self._script = script
        self._is_one = is_one
        self._next = 0

    def play(self, params: Object) -> T:
        """The answer to a call. Raises what the script has as an exception."""
        script = self._script
        if callable(script):
            answer: Any = script(params)
        elif self._is_one(script):
            answer = script
        elif self._next < len(script):
            answer = script[self._next]
            self._next += 1
        else:
            text = f"the test's script has {len(script)} answers and this is one more call"
            raise SamplingError(SAMPLING_PROVIDER_ERROR, text, {"errorCode": "PROVIDER_ERROR"})
        if isinstance(answer, Exception):
            raise answer
        return cast("T", answer)


def samples(script: SampleScript) -> "Player[str | Object]":
    """A player of completions."""
    return Player(script, lambda it: isinstance(it, str | dict | Exception))


def runs(script: RunScript) -> "Player[str | Sequence[Object]]":
    """A player of runs. A list of dicts is one run; a list of anything else several."""
    return Player(script, _is_one_run)


def _is_one_run(script: Any) -> bool:
    return isinstance(script, str | Exception) or (bool(script) and isinstance(script[0], dict))


def result_of(sample: str | Object) -> Object:
    """A sampling-shaped result from as little as its text."""
    if not isinstance(sample, str):
        return sample
    words = len(sample.split())
    return {
        "role": "assistant",
        "content": {"type": "text", "text": sample},
        "model": "scripted",
        "stopReason": "endTurn",
        "usage": {"inputTokens": 0, "outputTokens": words, "totalTokens": words},
    }


def frames_of(run: str | Sequence[Object]) -> list[Object]:
    """A run's frames; from a text, a delta and the final frame (seed agent-sessions)."""
    if not isinstance(run, str):
        return list(run)
    return [{"event": "delta", "text": run}, {"event": "final", "text": run}]
