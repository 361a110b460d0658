"""Faults of invokes, reverse calls and files."""

import os
from pathlib import Path
from typing import Any

from tests.conformance.peers.faults import fault, message_of, params_of, renamed, result_of, without
from tests.conformance.peers.plugin import TOOLS, Call, CallFailed, Cancelled, Plugin
from tests.conformance.peers.wire import error

Object = dict[str, Any]


# --- Results -----------------------------------------------------------------------------------

result_of(
    "CALL-011:results-have-their-members",
    "invoke",
    lambda it: it if it["success"] else {"success": False},
)
result_of("CORE-001:no-null-for-nothing", "invoke", lambda it: {"error": None, **it})
result_of("CORE-002:health-words", "health", lambda _: {"status": "healthy"})
result_of("CORE-003:types-of-what-is-optional", "invoke", lambda it: {**it, "duration_ms": "3"})
result_of("CORE-004:results-are-wrapped", "invoke", lambda it: it.get("data"))
result_of("CORE-005:results-say-success", "invoke", lambda it: without(it, "success"))
result_of(
    "CORE-006:errors-are-texts",
    "invoke",
    lambda it: it if it["success"] else {"success": False, "error": {"message": it["error"]}},
)


def progress(name: str, **members: Any) -> None:
    """A fault in progress notifications; `method` is the envelope's."""
    method = members.pop("method", "executa/progress")

    def change(message: Object) -> Object:
        if message.get("method") != "executa/progress":
            return message
        return {**message, "method": method, "params": {**message["params"], **members}}

    message_of(name, change)


progress("CORE-007:types-of-progress", type="step")
progress("CORE-008:progress-has-its-whole-name", method="progress")
progress("CALL-039:progress-has-the-chapters-shape", data={"text": "x" * 9000})


# --- Misuse and concurrency ----------------------------------------------------------------------


@fault("CALL-012:an-unknown-tool-is-refused")
def _(plugin: Plugin) -> None:
    run = plugin.run_tool
    known = {tool["name"] for tool in TOOLS}
    plugin.run_tool = lambda call: run(call) if call.params["tool"] in known else "fine"


@fault("CALL-013:arguments-that-do-not-fit-are-refused")
def _(plugin: Plugin) -> None:
    plugin.arguments = lambda call, tool: {
        each["name"]: call.params["arguments"].get(each["name"], "") for each in tool["parameters"]
    }


@fault("CALL-014:several-invokes-are-open-at-a-time")
def _(plugin: Plugin) -> None:
    last: Object = {}
    begin, serve = plugin.begin, plugin.serve

    def remember(call: Call) -> None:
        last["call"] = call
        begin(call)

    def confuse(call: Call) -> None:
        call.cancelled.wait(0.05)
        call.identity = last["call"].identity
        serve(call)

    plugin.begin, plugin.serve = remember, confuse


@fault("CALL-015:unicode-arrives-unchanged")
def _(plugin: Plugin) -> None:
    plugin.tool_echo = lambda call, arguments: {
        "text": arguments["text"].encode("ascii", "replace").decode()
    }


@fault("CALL-016:an-invoke-without-context-is-served")
def _(plugin: Plugin) -> None:
    serve = plugin.serve

    def demand(call: Call) -> None:
        if call.context:
            serve(call)
        else:
            plugin.send(error(call.identity, -32602, "context is required"))

    plugin.serve = demand


# --- Secrets and invoke ids ----------------------------------------------------------------------


@fault("CALL-017:no-secret-leaves-the-plugin")
def _(plugin: Plugin) -> None:
    plugin.tool_echo = lambda call, arguments: {"text": arguments["text"], "context": call.context}


@fault("CALL-018:no-token-is-sent-to-the-host")
def _(plugin: Plugin) -> None:
    plugin.on_params = lambda method, params, call: {
        **params,
        "metadata": {"token": call.context.get("sampling_token")},
    }


@fault("CALL-019:every-reverse-call-names-its-invoke")
def _(plugin: Plugin) -> None:
    plugin.stamp = lambda call: {}


@fault("CALL-020:no-reverse-call-under-an-answered-invoke")
def _(plugin: Plugin) -> None:
    serve = plugin.serve

    def afterwards(call: Call) -> None:
        serve(call)
        plugin.request(call, "storage/get", {"key": "kept", "scope": "tool"})

    plugin.serve = afterwards


# --- Cancellation --------------------------------------------------------------------------------


@fault("CALL-036:a-cancelled-call-ends-with-an-error")
def _(plugin: Plugin) -> None:
    run = plugin.run_tool

    def regardless(call: Call) -> Any:
        try:
            return run(call)
        except Cancelled:
            return "done all the same"

    plugin.run_tool = regardless


@fault("CALL-037:cancelling-nothing-is-ignored")
def _(plugin: Plugin) -> None:
    plugin.take_notification = lambda message: plugin.cancel(
        plugin.calls[message["params"]["invoke_id"]]
    )


@fault("NEST-015:a-nested-invoke-is-served-meanwhile")
def _(plugin: Plugin) -> None:
    begin = plugin.begin
    plugin.begin = lambda call: None if "parent_invoke_id" in call.context else begin(call)


# --- Files ---------------------------------------------------------------------------------------


@fault("FILE-014:a-large-result-goes-by-file-if-that-was-offered")
def _(plugin: Plugin) -> None:
    plugin.spills = lambda size: False


@fault("FILE-015:the-response-file-is-private")
def _(plugin: Plugin) -> None:
    spill = plugin.spill

    def public(line: bytes) -> str:
        path = spill(line)
        Path(path).chmod(0o644)
        return path

    plugin.spill = public


@fault("FILE-016:without-the-offer-it-goes-inline")
def _(plugin: Plugin) -> None:
    plugin.spills = lambda size: size > 512 * 1024


@fault("FILE-017:requests-never-go-by-file")
def _(plugin: Plugin) -> None:
    def by_file(message: Object) -> Object:
        if message.get("method") != "sampling/createMessage":
            return message
        path = plugin.spill(plugin.encode(message))
        return {**without(message, "params"), "__file_transport": path}

    plugin.on_message = by_file


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
