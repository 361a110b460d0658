"""Faults of invokes, reverse calls and files."""

from pathlib import Path
from typing import Any

from tests.conformance.peers.call import TOOLS, Call, Cancelled
from tests.conformance.peers.faults import fault, message_of, result_of, without
from tests.conformance.peers.plugin import Plugin
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


@fault("CALL-039:progress-is-within-its-rate")
def _(plugin: Plugin) -> None:
    once = plugin.progress

    def often(call: Call, **data: Any) -> None:
        for _ in range(80):
            once(call, **data)

    plugin.progress = often


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
