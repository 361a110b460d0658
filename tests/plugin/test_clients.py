"""The low-level clients: each call is one dict through a writer, each failure their own error."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from executa_protocol.methods import METHODS
from executa_protocol.readings import STRICT
from executa_sdk import (
    AgentError,
    AgentSessionClient,
    EmbeddingsClient,
    EmbeddingsError,
    FilesClient,
    HostUploadClient,
    ImageClient,
    ImageError,
    RpcError,
    SamplingClient,
    SamplingError,
    StorageClient,
    StorageError,
    UploadError,
    bind_invoke,
    make_response_router,
)
from executa_sdk.clients.base import Client
from tests.plugin.echo import Echo, connect

Object = dict[str, Any]
USER = {"role": "user", "content": {"type": "text", "text": "Hi"}}
COMPLETION = {"role": "assistant", "content": {"type": "text", "text": "Yes"}, "model": "m"}


async def call_everything(*, strict: bool) -> list[Object]:
    """The request of each method of each client."""
    echo = Echo({"app_session_uuid": "u", "frames": [], "items": []})
    sampling, agent, storage, files = (
        SamplingClient(), AgentSessionClient(), StorageClient(), FilesClient(),
    )  # fmt: skip
    image, upload, embeddings = ImageClient(), HostUploadClient(), EmbeddingsClient()
    clients = (sampling, agent, storage, files, image, upload, embeddings)
    for client in clients:
        client.attach_writer(echo)
    echo.route = make_response_router(*clients)
    scope = "tool"
    await sampling.create_message(messages=[USER], max_tokens=10)
    await agent.complete(prompt="Hi")
    await agent.complete(messages=[USER], max_tokens=10)
    session = await agent.create(kind="agent", agent_submode="auto", label="l")
    await agent.create(kind="fixed", fixed_client_id="a.b")
    await session.run("go").frames()
    await session.cancel()
    await session.history()
    await session.refresh()
    await agent.list()
    await session.delete()
    await storage.get("k", scope=scope)
    await storage.set("k", None, scope=scope, if_match="e", ttl_seconds=1)
    await storage.delete("k", scope=scope)
    await storage.list(prefix="k", limit=3, scope=scope)
    await files.upload_begin(path="p", size_bytes=1, content_type="a/b", scope=scope)
    await files.upload_complete(path="p", etag="e", size_bytes=1, scope=scope)
    await files.download_url(path="p", expires_in=60, scope=scope)
    await files.list(prefix="p", scope=scope)
    await files.delete(path="p", scope=scope)
    if not strict:
        await image.generate(prompt="owl", n=2, size="64x64")
        await image.edit(image_url="https://x", prompt="hat", mask_url="https://y")
        await upload.upload_inline(filename="a", mime_type="a/b", content=b"xyz")
        await upload.negotiate(filename="a", mime_type="a/b", size_bytes=3)
        await upload.confirm(r2_key="r")
        await embeddings.create(input="text", model="m")
    return echo.frames


async def test_every_request_is_one_dict_in_the_seeds_spelling() -> None:
    with bind_invoke("f" * 32):
        frames = await call_everything(strict=True)

    for frame in frames:
        method = METHODS[frame["method"]]
        assert frame["jsonrpc"] == "2.0"
        assert isinstance(frame["id"], str)
        assert frame["params"]["context"] == {"invoke_id": "f" * 32}
        assert method.read is not None
        method.read(json.dumps(frame["params"]).encode(), STRICT)
    assert len({frame["id"] for frame in frames}) == len(frames)
    called = {frame["method"] for frame in frames}
    served = {
        name for name, method in METHODS.items()
        if method.direction == "plugin_to_host" and method.kind == "request" and method.served
    }  # fmt: skip
    assert called == served


async def test_extensions_speak_the_wire_of_the_field() -> None:
    frames = await call_everything(strict=False)
    by_method = {frame["method"]: frame["params"] for frame in frames[-6:]}

    assert [frame["method"] for frame in frames[-6:]] == [
        "image/generate",
        "image/edit",
        "host/uploadFile",
        "host/uploadFile",
        "host/uploadFile",
        "embeddings/create",
    ]
    assert by_method["image/generate"] == {"prompt": "owl", "n": 2, "size": "64x64"}
    assert frames[-4]["params"]["content_b64"] == "eHl6"
    assert frames[-3]["params"]["expected_bytes"] == frames[-3]["params"]["size_bytes"] == 3
    assert by_method["embeddings/create"] == {"input": ["text"], "model": "m"}


async def test_none_is_a_value_only_for_what_is_stored() -> None:
    storage = StorageClient()
    echo = connect(storage, Echo({"etag": "e"}))

    await storage.set("k", None)
    await storage.set("k", 0, if_match=None)

    assert [frame["params"] for frame in echo.frames] == [
        {"key": "k", "value": None, "scope": "app"},
        {"key": "k", "value": 0, "scope": "app"},
    ]


# --- Errors. ------------------------------------------------------------------------------------


Call = Callable[[Any], Awaitable[Any]]
CALLS: list[tuple[type[Client], type[RpcError], Call]] = [
    (SamplingClient, SamplingError, lambda c: c.create_message(messages=[USER], max_tokens=1)),
    (AgentSessionClient, AgentError, lambda c: c.create()),
    (AgentSessionClient, AgentError, lambda c: c.complete(prompt="x")),
    (StorageClient, StorageError, lambda c: c.get("k")),
    (FilesClient, StorageError, lambda c: c.list()),
    (ImageClient, ImageError, lambda c: c.generate(prompt="x")),
    (HostUploadClient, UploadError, lambda c: c.confirm(r2_key="x")),
    (EmbeddingsClient, EmbeddingsError, lambda c: c.create(input="x")),
]


@pytest.mark.parametrize(("client", "error", "call"), CALLS)
async def test_every_failure_is_the_clients_own_error(
    client: type[Client], error: type[RpcError], call: Call
) -> None:
    for code in (-32001, -32021, -32041, -32602, -1, 7):
        working = client()
        connect(working, Echo(error={"code": code, "message": "no", "data": {"errorCode": "X"}}))
        with pytest.raises(error) as caught:
            await call(working)
        assert (caught.value.code, caught.value.message) == (code, "no")
        assert caught.value.data == {"errorCode": "X"}

    disabled = client()
    disabled.disable("the host speaks 1.1")
    with pytest.raises(error, match=r"the host speaks 1\.1"):
        await call(disabled)

    odd = client()
    connect(odd, Echo(error={"message": "no code"}))
    with pytest.raises(error, match="no code"):
        await call(odd)


async def test_a_result_that_is_no_object_is_an_error_and_no_result_is_empty() -> None:
    storage = StorageClient()
    connect(storage, Echo([1]))
    with pytest.raises(StorageError, match="list"):
        await storage.get("k")

    empty = StorageClient()
    connect(empty, Echo(None))
    assert await empty.get("k") == {}


async def test_a_call_without_an_answer_times_out_as_the_clients_error() -> None:
    silent = SamplingClient(write_frame=lambda _: None)
    with pytest.raises(SamplingError) as caught:
        await silent.create_message(messages=[USER], max_tokens=1, timeout=0.001)
    assert (caught.value.code, caught.value.symbol) == (-32005, "TIMEOUT")

    agent = AgentSessionClient(write_frame=lambda _: None)
    with pytest.raises(AgentError, match="-32005"):
        await agent.create(timeout=0.001)

    storage = StorageClient(write_frame=lambda _: None)
    with pytest.raises(StorageError, match="-32030"):
        await storage.get("k", timeout=0.001)


async def test_a_writer_that_fails_fails_the_call_alone() -> None:
    def broken(frame: Object) -> None:
        raise BrokenPipeError("gone")

    storage = StorageClient(write_frame=broken)
    with pytest.raises(BrokenPipeError):
        await storage.get("k")
    connect(storage, Echo({"exists": False}))
    assert await storage.get("k") == {"exists": False}


async def test_what_no_host_would_take_is_refused_here() -> None:
    with pytest.raises(ValueError, match="messages"):
        await SamplingClient().create_message(messages=[], max_tokens=1)
    for tokens in (0, -1, True, 1.5, "9"):
        wrong: Any = tokens
        with pytest.raises(ValueError, match="max_tokens"):
            await SamplingClient().create_message(messages=[USER], max_tokens=wrong)
    with pytest.raises(ValueError, match="either"):
        await AgentSessionClient().complete()  # pyright: ignore[reportCallIssue]
    with pytest.raises(ValueError, match="text"):
        await EmbeddingsClient().create(input=[])
    with pytest.raises(UploadError, match="negotiate"):
        await HostUploadClient().upload_inline(
            filename="a", mime_type="b", content=bytes(8 * 1024 * 1024 + 1)
        )


# --- Both shapes of the field and the seed. -----------------------------------------------------


async def test_complete_gives_text_for_a_prompt_and_the_result_for_messages() -> None:
    agent = AgentSessionClient()
    connect(agent, Echo(COMPLETION))

    assert await agent.complete(prompt="Hi", max_tokens=5) == "Yes"
    assert await agent.complete(messages=[USER]) == COMPLETION


FRAMES = [{"event": "delta", "text": "a"}, {"event": "final", "text": "ab"}]


@pytest.mark.parametrize(
    "result", [FRAMES, {"run_id": "r", "stream_id": "s", "frames": FRAMES, "final": FRAMES[-1]}]
)
async def test_a_run_is_read_in_both_shapes(result: Any) -> None:
    agent = AgentSessionClient()
    connect(agent, Echo({"app_session_uuid": "u"}))
    session = await agent.create()
    echo = connect(agent, Echo(result))

    run = session.run("go")
    assert [frame async for frame in run] == FRAMES
    assert [frame async for frame in run] == FRAMES
    assert await run.text() == "ab"
    assert len(echo.frames) == 1
    assert echo.frames[0]["params"]["run_id"] == run.run_id


@pytest.mark.parametrize("result", [None, {}, [], {"frames": None}, {"frames": [1, "x", None]}])
async def test_a_run_without_frames_has_none(result: Any) -> None:
    agent = AgentSessionClient()
    connect(agent, Echo({"app_session_uuid": "u"}))
    session = await agent.create()
    connect(agent, Echo(result))

    assert [frame async for frame in session.run("go")] == []


async def test_a_session_without_a_uuid_is_an_error() -> None:
    agent = AgentSessionClient()
    connect(agent, Echo({"granted_tools": []}))
    with pytest.raises(AgentError, match="uuid"):
        await agent.create()


async def test_a_session_knows_what_the_host_said_of_it() -> None:
    agent = AgentSessionClient()
    told = {
        "app_session_uuid": "u",
        "thread_id": "t",
        "agent_submode": "auto",
        "granted_tools": ["*"],
        "expires_in": 60,
    }
    connect(agent, Echo(told))
    session = await agent.create()

    assert (session.uuid, session.thread_id, session.kind) == ("u", "t", "agent")
    assert (session.granted_tools, session.inherit_host_tools) == (["*"], True)
    assert (session.expires_in, session.agent_submode) == (60, "auto")
    assert "u" in repr(session)


async def test_urls_have_one_name_whichever_the_host_used() -> None:
    files = FilesClient()
    connect(files, Echo({"presigned_url": "https://put"}))
    assert (await files.upload_begin(path="p"))["put_url"] == "https://put"
    connect(files, Echo({"get_url": "https://get"}))
    assert (await files.download_url(path="p"))["url"] == "https://get"
