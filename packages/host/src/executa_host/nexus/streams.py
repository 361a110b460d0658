"""A run's stream of events as frames.

Owns what becomes of a stream that is cut, that is none, or whose events are too long. What
the frames say, and what a malformed one means for its run, is the normaliser's business.
"""

import contextlib
from collections.abc import AsyncGenerator
from typing import Any, Final, cast

import aiohttp

from executa_host.nexus import failures
from executa_protocol import codec
from executa_protocol.errors import DecodeFailure
from executa_protocol.frames import frame_event
from executa_protocol.nexus import NexusError
from executa_protocol.sse import MESSAGE, SseEvent, SseOverflow, SseParser

_TYPE: Final = "text/event-stream"


async def run_frames(
    response: aiohttp.ClientResponse, seconds: float
) -> AsyncGenerator[bytes, None]:
    """The data of each event as it comes. Raises `NexusError` when the stream breaks.

    Closing the generator closes the connection, which ends the run upstream. `seconds` is
    what the response was given in all.
    """
    parser = SseParser()
    problem = _not_events(response)
    try:
        while problem is None:
            try:
                chunk = await response.content.readany()
                events = parser.feed(chunk)
            except SseOverflow as fault:
                events, problem = fault.events, NexusError(str(fault), status=response.status)
            except (aiohttp.ClientError, OSError) as fault:
                events, problem = [], _broken(fault, seconds)
            for event in events:
                yield _frame(event)
            if response.content.at_eof():
                break
    finally:
        # At the end of the stream the connection serves again; before it, it is closed.
        if response.content.at_eof() and problem is None:
            response.release()
        else:
            response.close()
    if problem is not None:
        raise problem


def _not_events(response: aiohttp.ClientResponse) -> NexusError | None:
    if response.content_type == _TYPE:
        return None
    text = f"nexus answered a run with {failures.shown(response.content_type)}, not events"
    return NexusError(text, status=response.status)


def _broken(fault: Exception, seconds: float) -> NexusError:
    if isinstance(fault, TimeoutError):
        return failures.late(seconds)
    return NexusError(f"the stream of the run was cut ({type(fault).__name__})")


def _frame(event: SseEvent) -> bytes:
    """The event's data, with the stream's own name for it where the data has none."""
    data = event.data
    if event.type == MESSAGE:
        return data
    with contextlib.suppress(DecodeFailure):
        frame_event(data)
        return data
    try:
        value = codec.decode_any(data)
    except DecodeFailure:
        return data  # for the normaliser to judge
    if not isinstance(value, dict):
        return data
    members = cast("dict[str, Any]", value)
    return data if "event" in members else codec.encode({"event": event.type, **members})
