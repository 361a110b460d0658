"""Faults of the process, the handshake and the manifest."""

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

from tests.conformance.peers.call import Call
from tests.conformance.peers.faults import fault, renamed, result_of, without
from tests.conformance.peers.plugin import Plugin

Object = dict[str, Any]


def silent(plugin: Plugin, method: str) -> None:
    """Never answer this method."""
    take = plugin.take_request
    plugin.take_request = lambda it: None if it["method"] == method else take(it)


# --- Life --------------------------------------------------------------------------------------


@fault("LIFE-001:serves-on-after-an-answer")
def _(plugin: Plugin) -> None:
    serve = plugin.serve

    def once(call: Call) -> None:
        serve(call)
        os._exit(0)

    plugin.serve = once


@fault("LIFE-009:describe-is-answered-in-time")
def _(plugin: Plugin) -> None:
    silent(plugin, "describe")


result_of("LIFE-016:health-is-answered-as-the-seed-says", "health", lambda _: {"status": "fine"})


@fault("LIFE-017:the-end-of-stdin-ends-the-plugin-with-0")
def _(plugin: Plugin) -> None:
    plugin.exit_code = 1


@fault("LIFE-018:sigterm-ends-the-plugin")
def _(plugin: Plugin) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


@fault("LIFE-019:errors-that-were-answered-are-no-crash")
def _(plugin: Plugin) -> None:
    def note(message: Object) -> Object:
        plugin.exit_code |= "error" in message
        return message

    plugin.on_message = note


@fault("LIFE-027:shutdown-is-answered-and-the-end-of-stdin-still-ends-it")
def _(plugin: Plugin) -> None:
    plugin.methods["shutdown"] = lambda _: None


@fault("LIFE-038:what-was-read-before-the-end-of-stdin-is-answered")
def _(plugin: Plugin) -> None:
    ended = threading.Event()
    serve = plugin.serve

    def late(call: Call) -> None:
        ended.wait(0.2)
        serve(call)

    plugin.serve = late
    plugin.at_end = lambda: os._exit(0)


# --- Handshake ---------------------------------------------------------------------------------


def initialize(name: str, change: Callable[[Object], Object]) -> None:
    """A fault in the answer to initialize."""
    result_of(name, "initialize", change)


initialize("HAND-001:server_info", lambda it: renamed(it, "server_info", "serverInfo"))
initialize("HAND-002:capabilities", lambda it: renamed(it, "capabilities", "client_capabilities"))
initialize(
    "HAND-003:capabilities-by-member", lambda it: {**it, "capabilities": list(it["capabilities"])}
)
initialize("HAND-004:capabilities-are-an-object", lambda it: {**it, "capabilities": "all"})
initialize(
    "HAND-005:server_info-has-name-and-version", lambda it: {**it, "server_info": "stranger"}
)
initialize("HAND-006:the-version-is-one-of-two", lambda it: {**it, "protocolVersion": "3.0"})
initialize(
    "HAND-007:only-what-is-offered-is-taken",
    lambda it: {**it, "capabilities": {**it["capabilities"], "agent": {}}},
)
initialize(
    "HAND-118:the-answer-has-version-server-and-capabilities",
    lambda it: without(it, "server_info"),
)
initialize(
    "HAND-121:no-offer-is-answered-with-none-taken",
    lambda it: {**it, "capabilities": {"sampling": {}}},
)


@fault("HAND-008:initialize-is-answered-in-time")
def _(plugin: Plugin) -> None:
    silent(plugin, "initialize")


@fault("HAND-119:a-v1-plugin-refuses-and-serves")
def _(plugin: Plugin) -> None:
    plugin.v1 = True
    begin = plugin.begin

    def refuse(call: Call) -> None:
        plugin.v1 = False
        call.params["tool"] = "not-before-v2"
        begin(call)

    plugin.begin = refuse


@fault("HAND-120:unknown-offers-are-not-taken")
def _(plugin: Plugin) -> None:
    plugin.on_result = lambda method, result, params: (
        {**result, "capabilities": params["capabilities"]} if method == "initialize" else result
    )


@fault("HAND-122:without-a-handshake-it-serves-and-does-not-call")
def _(plugin: Plugin) -> None:
    plugin.offered = {}


# --- Manifest ----------------------------------------------------------------------------------


def manifest(name: str, change: Callable[[Object], Object]) -> None:
    """A fault in the manifest."""
    result_of(name, "describe", change)


def parameter(name: str, **members: Any) -> None:
    """A fault in one parameter; a member of None is taken away."""

    def change(it: Object) -> Object:
        row = it["tools"][0]["parameters"][0]
        row.update(members)
        for key in [key for key, value in members.items() if value is None]:
            del row[key]
        return it

    manifest(name, change)


def tool(name: str, change: Callable[[Object], Object]) -> None:
    """A fault in one tool."""
    manifest(name, lambda it: {**it, "tools": [change(it["tools"][0]), *it["tools"][1:]]})


manifest("MANI-001:the-manifest-is-bare", lambda it: {"manifest": it})
manifest("MANI-002:the-manifest-has-a-name", lambda it: without(it, "name"))
manifest("MANI-003:version-and-descriptions", lambda it: without(it, "version"))
tool("MANI-004:parameters", lambda it: renamed(it, "parameters", "input_schema"))
manifest("MANI-005:storage-is-declared-by-kind", lambda it: {**it, "host_capabilities": ["aps"]})
manifest(
    "MANI-006:capabilities-are-on-the-list",
    lambda it: {**it, "host_capabilities": ["storage.user"]},
)
manifest(
    "MANI-007:credentials-are-upper-snake", lambda it: {**it, "credentials": [{"name": "api-key"}]}
)
manifest(
    "MANI-008:host_capabilities",
    lambda it: renamed(it, "host_capabilities", "hostCapabilities"),
)
manifest(
    "MANI-009:host_capabilities-are-an-array",
    lambda it: {**it, "host_capabilities": dict.fromkeys(it["host_capabilities"], True)},
)
manifest("MANI-010:llm.sample", lambda it: {**it, "host_capabilities": ["llm.complete"]})
tool(
    "MANI-011:parameters-are-an-array",
    lambda it: {**it, "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}},
)
parameter("MANI-012:defaults-have-their-type", default=5)
parameter("MANI-013:parameters-have-a-type", type=None)
parameter("MANI-014:types-have-their-names", type="str")
parameter("MANI-015:arrays-say-of-what", type="array")
manifest("MANI-101:the-manifest-names-its-tools", lambda it: {**it, "tools": [it["tools"][0]] * 2})


@fault("MANI-102:describe-always-answers-the-same")
def _(plugin: Plugin) -> None:
    plain = plugin.manifest
    plugin.manifest = lambda: {**plain(), "version": f"1.{next(plugin.numbers)}"}


@fault("MANI-103:what-is-called-is-declared")
def _(plugin: Plugin) -> None:
    plain = plugin.manifest
    plugin.manifest = lambda: {**plain(), "host_capabilities": ["llm.sample"]}
