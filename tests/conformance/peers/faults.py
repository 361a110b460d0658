"""Every way to break one rule: a function a check, that changes a plugin which keeps them all.

A fault has the name of the check that must catch it.
"""

from collections.abc import Callable
from typing import Any

from tests.conformance.peers.call import Call
from tests.conformance.peers.plugin import Plugin

Object = dict[str, Any]
Fault = Callable[[Plugin], None]

FAULTS: dict[str, Fault] = {}


def fault(name: str) -> Callable[[Fault], Fault]:
    """Register a fault under the name of its check."""

    def register(function: Fault) -> Fault:
        assert name not in FAULTS, name
        FAULTS[name] = function
        return function

    return register


def result_of(name: str, method: str, change: Callable[[Any], Any]) -> None:
    """A fault that changes the results of one of the host's methods."""

    @fault(name)
    def _(plugin: Plugin) -> None:
        def on_result(asked: str, result: Any, params: Object) -> Any:
            return change(result) if asked == method else result

        plugin.on_result = on_result


def params_of(name: str, method: str, change: Callable[[Object], Object]) -> None:
    """A fault that changes the params of one reverse call."""

    @fault(name)
    def _(plugin: Plugin) -> None:
        def on_params(asked: str, params: Object, call: Call) -> Object:
            return change(dict(params)) if asked == method else params

        plugin.on_params = on_params


def message_of(name: str, change: Callable[[Object], Object]) -> None:
    """A fault that changes messages before they are encoded."""

    @fault(name)
    def _(plugin: Plugin) -> None:
        plugin.on_message = lambda message: change(dict(message))


def line_of(name: str, change: Callable[[bytes], bytes]) -> None:
    """A fault that changes lines before they are written."""

    @fault(name)
    def _(plugin: Plugin) -> None:
        plugin.on_line = change


def without(members: Object, name: str) -> Object:
    """The members but one."""
    return {key: value for key, value in members.items() if key != name}


def renamed(members: Object, old: str, new: str) -> Object:
    """The members with one of them under another name."""
    return {new if key == old else key: value for key, value in members.items()}
