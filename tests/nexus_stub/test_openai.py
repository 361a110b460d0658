"""The pass-through to an OpenAI-compatible endpoint, against a small one of our own."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from executa_nexus_stub import NexusStub, create
from executa_nexus_stub.http.openai import NameMap
from executa_nexus_stub.models.base import ModelError
from executa_protocol import codec
from executa_protocol.methods.response_format import JsonObjectFormat
from executa_protocol.sse import encode_event
from tests.nexus_stub.calls import RECALL, ask, events, play, refused_as, run, session, tokens

KEY = "sk-very-secret"


class Provider:
    """Answers chat completions with chunks that a test writes down."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[str] = []
        self.answers: list[list[Any]] = []
        self.status = 200
        self.url = ""

    async def chat(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(codec.decode_any(await request.read()))
        self.headers.append(request.headers.get("Authorization", ""))
        if self.status != 200:
            return web.Response(status=self.status, text=KEY, headers={"Retry-After": "4"})
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for chunk in self.answers.pop(0):
            data = chunk if isinstance(chunk, bytes) else codec.encode(chunk)
            await response.write(encode_event(data))
        await response.write(encode_event(b"[DONE]"))
        return response


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, **more}]}


def called(index: int, **function: str) -> dict[str, Any]:
    call = {"index": index, "id": "c" if "name" in function else None, "function": function}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}


USAGE: dict[str, Any] = {"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 5}}


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    """The provider, listening."""
    made = Provider()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", made.chat)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    yield made
    await runner.cleanup()


@pytest.fixture
async def passing(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[NexusStub]:
    """A stub that passes through to it."""
    monkeypatch.setenv("PROVIDER_KEY", KEY)
    model = {
        "name": "remote",
        "kind": "openai",
        "base_url": provider.url,
        "key_env": "PROVIDER_KEY",
        "upstream_model": "gpt-x",
    }
    stub = create({"models": [model]})
    yield stub
    await stub.aclose()


async def test_a_completion_is_joined_from_its_chunks(
    passing: NexusStub, provider: Provider
) -> None:
    provider.answers.append([said("Hel"), said("lo", finish_reason="length"), USAGE])
    sampling, _ = await tokens(passing)

    result = await passing.sample(
        sampling,
        ask(
            "Say hello",
            50,
            system_prompt="Be brief.",
            temperature=0.0,
            stop_sequences=["x"],
            response_format=JsonObjectFormat(),
        ),
    )

    assert (result.content.text, result.stop_reason) == ("Hello", "maxTokens")
    assert result.usage
    assert (result.usage.input_tokens, result.usage.total_tokens) == (11, 16)
    assert provider.headers == [f"Bearer {KEY}"]
    assert provider.bodies[0] == {
        "model": "gpt-x",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Say hello"},
        ],
        "max_tokens": 50,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.0,
        "stop": ["x"],
        "response_format": {"type": "json_object"},
    }


async def test_tool_calls_come_in_pieces_and_names_map_back(
    passing: NexusStub, provider: Provider
) -> None:
    provider.answers += [
        [
            called(0, name="notebook_recall"),
            called(0, arguments='{"query":'),
            called(0, arguments='"x"}'),
        ],
        [said("Red."), USAGE],
    ]
    minted = await session(passing)

    frames = await play(passing, minted.token, run("boats?", RECALL), lambda _: (True, ["Red"]))

    assert events(frames) == ["tool_call", "tool_result", "delta", "final"]
    assert frames[0]["name"] == "notebook.recall"
    assert frames[0]["args"] == {"query": "x"}
    second = provider.bodies[1]["messages"]
    assert second[1]["tool_calls"][0]["function"]["name"] == "notebook_recall"
    assert second[1]["tool_calls"][0]["id"] == second[2]["tool_call_id"] == frames[0]["call_id"]
    assert provider.bodies[0]["tools"][0]["function"]["name"] == "notebook_recall"


@pytest.mark.parametrize(
    "chunks", [[b"not json"], [called(0, name="notebook_recall"), called(0, arguments="[1]")]]
)
async def test_a_stream_that_makes_no_sense_fails_the_run(
    passing: NexusStub, provider: Provider, chunks: list[Any]
) -> None:
    provider.answers.append(chunks)
    minted = await session(passing)

    with refused_as("AGENT_NEXUS_ERROR", 502):
        await play(passing, minted.token, run("boats?", RECALL))


@pytest.mark.parametrize(("status", "ours"), [(429, 429), (401, 502), (500, 502)])
async def test_a_refusal_keeps_its_pause_and_tells_no_key(
    passing: NexusStub, provider: Provider, status: int, ours: int
) -> None:
    provider.status = status
    sampling, _ = await tokens(passing)

    with refused_as("SAMPLING_PROVIDER_ERROR", ours) as info:
        await passing.sample(sampling, ask("hello"))
    assert KEY not in str(info.value)
    assert info.value.retry_after == 4.0


async def test_a_provider_that_is_not_there_is_an_error_and_no_crash() -> None:
    model = {"name": "m", "kind": "openai", "base_url": "http://127.0.0.1:1/v1"}
    stub = create({"models": [model]})
    sampling, _ = await tokens(stub)

    with refused_as("SAMPLING_PROVIDER_ERROR", 502, match="could not be reached"):
        await stub.sample(sampling, ask("hello"))
    await stub.aclose()


def test_names_map_reversibly_also_when_they_look_alike() -> None:
    names = ["a.b", "a_b", "a/b", "x" * 80 + ".1", "x" * 80 + ".2"]
    mapping = NameMap(names)
    safe = [mapping.safe(name) for name in names]

    assert len(set(safe)) == len(names)
    assert all(len(name) <= 64 for name in safe)
    assert [mapping.real(name) for name in safe] == names
    assert mapping.real("made_up") == "made_up"
    assert issubclass(ModelError, Exception)
