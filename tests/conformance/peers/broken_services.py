"""Faults of sampling, agent sessions, values and files."""

import os
from typing import Any

from tests.conformance.peers.call import Call, CallFailed
from tests.conformance.peers.faults import fault, params_of, renamed, without
from tests.conformance.peers.plugin import Plugin

Object = dict[str, Any]

# --- Sampling ------------------------------------------------------------------------------------

SAMPLING = "sampling/createMessage"


def content(params: Object, value: Any) -> Object:
    """Params whose one message has another content."""
    return {**params, "messages": [{**params["messages"][0], "content": value}]}


params_of("SAMP-001:content-is-an-object", SAMPLING, lambda it: content(it, "Tea?"))
params_of(
    "SAMP-002:content-is-one-part",
    SAMPLING,
    lambda it: content(it, [it["messages"][0]["content"]]),
)
params_of("SAMP-107:calls-have-the-chapters-shape", SAMPLING, lambda it: {**it, "maxTokens": "64"})


def on_refusal(name: str, prefix: str, again: int) -> None:
    """A fault in what comes after a refusal: `again` calls more, or with 0 the end."""

    @fault(name)
    def _(plugin: Plugin) -> None:
        request = plugin.request

        def try_on(call: Call, method: str, params: Object) -> Any:
            try:
                return request(call, method, params)
            except CallFailed:
                if not method.startswith(prefix):
                    raise
                if not again:
                    os._exit(3)
                for _ in range(again - 1):
                    try:
                        return request(call, method, params)
                    except CallFailed:
                        continue
                return request(call, method, params)

        plugin.request = try_on


on_refusal("SAMP-108:a-refusal-ends-in-an-answer", "sampling/", 0)
on_refusal("SAMP-110:what-is-over-budget-is-not-repeated", "sampling/", 2)
on_refusal("AGNT-135:an-unknown-session-is-not-tried-again", "agent/session.run", 1)
on_refusal("AGNT-136:a-run-that-is-too-large-is-not-repeated", "agent/session.run", 1)
on_refusal("STOR-116:a-storage-refusal-ends-in-an-answer", "storage/", 0)
on_refusal("STOR-116:a-files-refusal-ends-in-an-answer", "files/", 0)


# --- Agent sessions ------------------------------------------------------------------------------

CREATE = "agent/session.create"
RUN = "agent/session.run"

params_of("AGNT-001:agent_submode", CREATE, lambda it: renamed(it, "agent_submode", "submode"))
params_of("AGNT-002:create-says-its-kind", CREATE, lambda it: without(it, "kind"))
params_of("AGNT-003:ttl_seconds", CREATE, lambda it: {**it, "expires_in": 60})
params_of(
    "AGNT-004:content-is-a-text",
    RUN,
    lambda it: {**it, "content": {"type": "text", "text": it["content"]}},
)
params_of("AGNT-005:systemPrompt", RUN, lambda it: {**it, "system": "Be brief."})
params_of("AGNT-134:create-says-what-it-wants", CREATE, lambda it: without(it, "agent_submode"))
params_of("AGNT-140:runs-carry-an-id-of-the-plugins-choice", RUN, lambda it: without(it, "run_id"))


@fault("AGNT-137:both-answers-to-run-are-read")
def _(plugin: Plugin) -> None:
    def only_objects(answer: Any) -> list[Object]:
        if isinstance(answer, list):
            raise CallFailed({"code": -32000, "message": "expected an object"})
        return answer["frames"]

    plugin.frames = only_objects


@fault("AGNT-138:unknown-frames-are-skipped")
def _(plugin: Plugin) -> None:
    final = plugin.final

    def strict(frames: list[Object]) -> str:
        if any(frame["event"] not in ("delta", "final") for frame in frames):
            raise CallFailed({"code": -32000, "message": "an unknown frame"})
        return final(frames)

    plugin.final = strict


@fault("AGNT-139:requests-are-served-during-a-run")
def _(plugin: Plugin) -> None:
    # Serves on the thread that reads, and reads answers only while a tool waits.
    take = plugin.take
    plugin.take = lambda message: (
        None if RUN in plugin.asked.values() and "method" in message else take(message)
    )


@fault("AGNT-141:sessions-are-deleted")
def _(plugin: Plugin) -> None:
    plugin.delete = lambda call, uuid: None


# --- Storage -------------------------------------------------------------------------------------

params_of("STOR-001:scope-is-named", "storage/set", lambda it: without(it, "scope"))
params_of("STOR-002:ttl_seconds", "storage/set", lambda it: {**it, "expires_in": 60})
params_of(
    "STOR-003:size_bytes",
    "files/upload_begin",
    lambda it: renamed(it, "size_bytes", "expected_bytes"),
)
params_of(
    "STOR-115:storage-calls-have-the-chapters-shape", "storage/set", lambda it: {**it, "tags": "a"}
)
params_of(
    "STOR-115:files-calls-have-the-chapters-shape",
    "files/upload_begin",
    lambda it: {**it, "size_bytes": -1},
)


@fault("STOR-006:methods-have-current-names")
def _(plugin: Plugin) -> None:
    old = {"storage/set": "storage/kv_set", "storage/get": "storage/kv_get"}
    plugin.method_name = lambda method: old.get(method, method)


@fault("STOR-117:both-spellings-of-a-url-are-read")
def _(plugin: Plugin) -> None:
    def only_the_first(result: Object, *names: str) -> str:
        if names[0] not in result:
            raise CallFailed({"code": -32000, "message": f"no {names[0]}"})
        return result[names[0]]

    plugin.url = only_the_first
