"""Answers reach the client that waits, from any thread; without a writer, frames go to stdout."""

import asyncio
import io
import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executa_sdk import (
    AgentSessionClient,
    FilesClient,
    ImageClient,
    SamplingClient,
    StorageClient,
    StorageError,
    make_response_router,
)
from executa_sdk.clients.base import Client
from executa_sdk.clients.frames import write_to_stdout
from tests.plugin.echo import Echo, connect

Object = dict[str, Any]
CLIENTS = (SamplingClient, AgentSessionClient, StorageClient, FilesClient, ImageClient)


async def test_an_answer_may_be_dispatched_from_any_thread() -> None:
    storage, asked = StorageClient(), threading.Event()
    frames: list[Object] = []

    def write(frame: Object) -> None:
        frames.append(frame)
        if len(frames) == 50:
            asked.set()

    def answer() -> None:
        asked.wait(20)
        for frame in reversed(frames):
            assert storage.is_response_envelope({"id": frame["id"], "result": {}})
            key = frame["params"]["key"]
            assert storage.dispatch_response({"id": frame["id"], "result": {"value": key}})
            assert not storage.dispatch_response({"id": frame["id"], "result": {"value": "again"}})

    storage.attach_writer(write)
    thread = threading.Thread(target=answer)
    thread.start()
    results = await asyncio.gather(*(storage.get(str(n)) for n in range(50)))
    await asyncio.to_thread(thread.join, 20)

    assert [result["value"] for result in results] == [str(n) for n in range(50)]


def test_one_client_serves_several_loops() -> None:
    storage = StorageClient()
    connect(storage, Echo({"value": 1}))
    answers: list[Object] = []

    threads = [
        threading.Thread(target=lambda: answers.append(asyncio.run(storage.get("k"))))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert answers == [{"value": 1}] * 4


def test_an_answer_for_a_loop_that_has_closed_is_dropped() -> None:
    held: list[Object] = []
    storage = StorageClient(write_frame=held.append)

    async def give_up() -> None:
        asking = asyncio.create_task(storage.get("k"))
        await asyncio.sleep(0)
        waiting = dict(vars_of(storage))
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        vars_of(storage).update(waiting)  # as if the answer were on its way already

    asyncio.run(give_up())

    assert storage.dispatch_response({"id": held[0]["id"], "result": {}})


def vars_of(client: Client) -> dict[str, Any]:
    frames: Any = vars(client)["_frames"]
    waiting: dict[str, Any] = frames._waiting
    return waiting


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(JSON | st.fixed_dictionaries({"id": JSON}, optional={"result": JSON, "method": JSON}))
def test_nothing_that_is_no_answer_is_taken_for_one(message: Any) -> None:
    route = make_response_router(*(kind() for kind in CLIENTS))

    assert route(message) is False


# --- The writer of last resort. -----------------------------------------------------------------


def test_frames_go_to_stdout_whole_and_as_utf8(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    threads = [
        threading.Thread(target=write_to_stdout, args=({"id": n, "result": "ü" * 5000},))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    lines = capfdbinary.readouterr().out.splitlines()
    assert sorted(json.loads(line)["id"] for line in lines) == list(range(8))


def test_a_large_response_goes_by_file_and_a_large_request_never(
    capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    large = "x" * 600_000
    write_to_stdout({"jsonrpc": "2.0", "id": 1, "result": large})
    write_to_stdout({"jsonrpc": "2.0", "id": "p1", "method": "storage/set", "params": large})

    pointer, request = map(json.loads, capfdbinary.readouterr().out.splitlines())
    assert json.loads(Path(pointer["__file_transport"]).read_bytes())["result"] == large
    assert request["params"] == large


def test_a_text_stream_will_do() -> None:
    stream = io.StringIO()
    write_to_stdout({"id": 1, "result": "ü"}, stdout=stream)

    assert json.loads(stream.getvalue()) == {"id": 1, "result": "ü"}


async def test_a_client_without_a_writer_uses_stdout(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    sys.stdout.flush()
    storage = StorageClient()
    with pytest.raises(StorageError):
        await storage.get("k", timeout=0.001)

    assert json.loads(capfdbinary.readouterr().out)["method"] == "storage/get"
