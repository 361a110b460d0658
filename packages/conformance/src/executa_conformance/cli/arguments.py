"""A command line from a function's signature, for ``python -m executa_conformance``.

Knows the few annotations that the kit's commands have. ``executa check`` builds its own from
the same signatures and docstrings.
"""

import argparse
import inspect
import re
from collections.abc import Callable, Mapping
from inspect import Parameter
from pathlib import Path
from typing import Any, Final, get_args

Command = Callable[..., int]

_CALLED: Final = "called as"  # no parameter can have that name
_ENTRY: Final = re.compile(r"^(\w+)\n((?:    .*\n?)+)", re.MULTILINE)


def parser(program: str, summary: str, commands: Mapping[str, Command]) -> argparse.ArgumentParser:
    """A parser with a subcommand for each function."""
    whole = argparse.ArgumentParser(prog=program, description=summary)
    subcommands = whole.add_subparsers(dest=_CALLED, required=True, metavar="COMMAND")
    for name, function in commands.items():
        text = inspect.cleandoc(function.__doc__ or "")
        head = text.partition("\n\nParameters\n")[0]
        sub = subcommands.add_parser(
            name,
            help=head.partition("\n")[0],
            description=head,
            usage=_usage(program, name, function),
        )
        _add(sub, function, _documented(text))
    return whole


def call(commands: Mapping[str, Command], words: list[str], whole: argparse.ArgumentParser) -> int:
    """Parse the words, call the function that they name, and return its exit code.

    What follows ``--`` is the command under test, whatever it looks like.
    """
    before, after = _split(words)
    values = vars(whole.parse_args(before))
    function = commands[values.pop(_CALLED)]
    rest = next(
        (
            each.name
            for each in inspect.signature(function).parameters.values()
            if each.kind is Parameter.VAR_POSITIONAL
        ),
        None,
    )
    if rest is None:
        if after:
            whole.error("nothing may follow -- here")
        return function(**values)
    return function(*values.pop(rest), *after, **values)


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]


def _usage(program: str, name: str, function: Command) -> str:
    takes = any(
        each.kind is Parameter.VAR_POSITIONAL
        for each in inspect.signature(function).parameters.values()
    )
    return f"{program} {name} [OPTIONS]{' -- COMMAND...' if takes else ''}"


def _documented(text: str) -> dict[str, str]:
    return {name: " ".join(body.split()) for name, body in _ENTRY.findall(text)}


def _add(sub: argparse.ArgumentParser, function: Command, told: Mapping[str, str]) -> None:
    for name, each in inspect.signature(function, eval_str=True).parameters.items():
        words = told.get(name, "")
        if each.kind is Parameter.VAR_POSITIONAL:
            sub.add_argument(name, nargs="*", help=words)
            continue
        option = "--" + name.strip("_").replace("_", "-")
        settings: dict[str, Any] = {"dest": name, "help": words}
        if each.annotation is bool:
            settings["action"] = "store_true"
        elif each.annotation == tuple[str, ...]:
            settings |= {"action": "append", "default": [], "metavar": "PATTERN"}
        else:
            settings |= {"type": _type(each.annotation), "metavar": _metavar(each.annotation)}
            required = each.default is Parameter.empty
            settings |= {"required": True} if required else {"default": each.default}
        sub.add_argument(option, **settings)


def _type(annotation: Any) -> Any:
    kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
    return kinds[0] if kinds else annotation


def _metavar(annotation: Any) -> str:
    return {Path: "FILE", int: "N", float: "X"}.get(_type(annotation), "TEXT")
