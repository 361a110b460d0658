"""Futures and tasks without `asyncio`, for `plainloop`.

The part of asyncio's own that serving plain functions needs. They are awaited only by
coroutines of this package: a tool that is a coroutine is served on a loop of asyncio's.
"""

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class Soon(Protocol):
    """What a future needs of its loop."""

    def call_soon(self, fn: Callable[..., object], *args: object) -> None: ...


class Cancelled(BaseException):
    """Raised out of what waits for a future that was cancelled."""


class PlainFuture(Generic[T]):
    """A result that is still to come."""

    __slots__ = ("_callbacks", "_cancelled", "_done", "_fault", "_loop", "_value")

    def __init__(self, loop: Soon) -> None:
        self._loop = loop
        self._callbacks: list[Callable[[Any], object]] = []
        self._done = False
        self._cancelled = False
        self._value: T | None = None
        self._fault: BaseException | None = None

    def done(self) -> bool:
        """Whether it has a result or a fault, or was cancelled."""
        return self._done

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._cancelled

    def result(self) -> Any:
        """The result. Raises the fault, `Cancelled`, and RuntimeError before its time."""
        fault = self.exception()
        if fault is not None:
            raise fault
        return self._value

    def exception(self) -> BaseException | None:
        """The fault, or None. Raises `Cancelled`, and RuntimeError before its time."""
        if self._cancelled:
            raise Cancelled
        if not self._done:
            msg = "the result is not there yet"
            raise RuntimeError(msg)
        return self._fault

    def set_result(self, value: T) -> None:
        """Give the result, once."""
        self._end()
        self._value = value

    def set_exception(self, fault: BaseException) -> None:
        """Give a fault instead."""
        self._end()
        self._fault = fault

    def cancel(self) -> bool:
        """Give up; False if it is done already."""
        if self._done:
            return False
        self._end()
        self._cancelled = True
        return True

    def add_done_callback(self, fn: Callable[[Any], object]) -> None:
        """Have `fn` called with this future in the loop's next turn after it is done."""
        if self._done:
            self._loop.call_soon(fn, self)
        else:
            self._callbacks.append(fn)

    def __await__(self) -> Generator[Any, None, Any]:
        if not self._done:
            yield self
        return self.result()

    def _end(self) -> None:
        if self._done:
            msg = "the result is there already"
            raise RuntimeError(msg)
        self._done = True
        callbacks, self._callbacks = self._callbacks, []
        for fn in callbacks:
            self._loop.call_soon(fn, self)


class PlainTask(PlainFuture[T]):
    """A coroutine that runs from the next turn of its loop on. Its result is the future's."""

    __slots__ = ("_coroutine", "_stopping", "_waits_for")

    def __init__(self, coroutine: Coroutine[Any, None, T], loop: Soon) -> None:
        super().__init__(loop)
        self._coroutine = coroutine
        self._waits_for: PlainFuture[Any] | None = None
        self._stopping = False
        loop.call_soon(self._step)

    def cancel(self) -> bool:
        """Cancel what it waits for, which raises `Cancelled` in it; False if it is done."""
        if self._done:
            return False
        if self._waits_for is None or not self._waits_for.cancel():
            self._stopping = True
        return True

    def _step(self, _: object = None) -> None:
        self._waits_for = None
        stopping, self._stopping = self._stopping, False
        try:
            if stopping:
                waits_for = self._coroutine.throw(Cancelled())
            else:
                waits_for = self._coroutine.send(None)
        except StopIteration as end:
            self.set_result(end.value)
        except Cancelled:
            super().cancel()
        except Exception as fault:  # noqa: BLE001 - raised where the task is awaited
            self.set_exception(fault)
        else:
            self._waits_for = waits_for
            waits_for.add_done_callback(self._step)
