"""A tool's arguments as a person types them: JSON, a file, standard input, or words.

Words are ``name=value``, read by the type that the manifest gives the parameter, and
``name:=JSON`` for anything. Owns the reading and the pointing at what is wrong; whether the
arguments are right is for the plugin to say.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from executa_host.cli import exits
from executa_host.cli.faults import nearest
from executa_protocol import codec
from executa_protocol.arguments import validate_arguments
from executa_protocol.errors import DecodeFailure
from executa_protocol.manifest import Parameter, Tool

_SHOWN: Final = 60
"""Characters that are shown on either side of a fault."""

_FLAGS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def read_arguments(text: str, option: str = "--args") -> dict[str, Any]:
    """Arguments from the command line: JSON, ``@FILE``, or ``-`` for stdin.

    `option` is what they were given as. Raises `exits.Stop` that points at the character where
    the JSON is wrong.
    """
    if text == "-":
        return read_object(sys.stdin.read(), "standard input")
    if not text.startswith("@"):
        return read_object(text, option)
    where = text[1:]
    try:
        return read_object(Path(where).read_text(encoding="utf-8"), where)
    except (OSError, UnicodeDecodeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "it is no text"
        raise exits.Stop(f"{where} cannot be read: {reason}", exits.USAGE) from None


def read_object(text: str, where: str) -> dict[str, Any]:
    """The JSON object in `text`, which stands at `where`. Raises `exits.Stop`."""
    value = _json(text, where)
    if not isinstance(value, dict):
        raise exits.Stop(f'{where}: expected an object such as {{"name": "value"}}', exits.USAGE)
    return cast("dict[str, Any]", value)


def read_words(words: Sequence[str], tool: Tool) -> dict[str, Any]:
    """Arguments from ``name=value`` and ``name:=JSON``. Raises `exits.Stop`."""
    known = {parameter.name: parameter for parameter in tool.parameters}
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        as_json = name.endswith(":")
        name = name.removesuffix(":")
        if not equals or not name:
            msg = f"{word!r} is no argument: write name=value, name:=JSON, or one JSON object"
            raise exits.Stop(msg, exits.USAGE)
        if name in found:
            raise exits.Stop(f"{name} is given twice", exits.USAGE)
        parameter = known.get(name)
        if as_json:
            found[name] = _json(value, name)
        elif parameter is not None:
            found[name] = _typed(value, parameter)
        else:
            raise exits.Stop(_unknown(name, tool, known), exits.USAGE)
    return found


def remarks(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """What the manifest says about these arguments, for after a call that failed."""
    known = {parameter.name: parameter for parameter in tool.parameters}
    said = [str(fault) for fault in validate_arguments(tool, dict(arguments))]
    said += [_unknown(name, tool, known) for name in arguments if name not in known]
    return [f"{text} ({usage(tool)})" for text in said[:1]] + said[1:]


def usage(tool: Tool) -> str:
    """How the tool is called: ``recall query=STRING [limit=INTEGER]``."""
    words = [
        f"{each.name}={each.type.upper()}"
        if each.required
        else f"[{each.name}={each.type.upper()}]"
        for each in tool.parameters
    ]
    return " ".join((tool.name, *words))


def _unknown(name: str, tool: Tool, known: Mapping[str, Parameter]) -> str:
    text = f"{tool.name} has no parameter {name[:40]!r}; it takes {', '.join(known) or 'none'}"
    near = nearest(name, known)
    return f"{text}. {near}" if near else text


def _typed(value: str, parameter: Parameter) -> Any:
    """`value` as the parameter's type has it. Raises `exits.Stop`."""
    kind = parameter.type
    if kind == "string":
        return value
    if kind == "boolean":
        flag = _FLAGS.get(value.lower())
        if flag is None:
            raise exits.Stop(f"{parameter.name}: expected true or false", exits.USAGE)
        return flag
    if kind in ("integer", "number"):
        number = _json(
            value, parameter.name, f"expected {'an' if kind == 'integer' else 'a'} {kind}"
        )
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise exits.Stop(f"{parameter.name}: expected a number", exits.USAGE)
        return number
    return _json(value, parameter.name)


def _json(text: str, where: str, otherwise: str = "") -> object:
    try:
        data = text.encode()
        codec.check_content(data)
        return codec.decode_any(data)
    except (DecodeFailure, UnicodeEncodeError) as fault:
        said = otherwise or f"not JSON: {fault}"
        raise exits.Stop(f"{where}: {said}\n{pointed(text, fault)}", exits.USAGE) from None


def pointed(text: str, fault: Exception) -> str:
    """The line of the text with a caret under the byte that the fault names."""
    words = str(fault).rpartition("(byte ")[2].rstrip(")")
    if not words.isdigit():
        return text.splitlines()[0][: 2 * _SHOWN] if text else ""
    before = text.encode()[: int(words)].decode(errors="replace")
    start = before.rfind("\n") + 1
    line = text[start:].split("\n", 1)[0]
    column = len(before) - start
    first = max(0, column - _SHOWN)
    return f"{line[first : first + 2 * _SHOWN]}\n{' ' * (column - first)}^"
