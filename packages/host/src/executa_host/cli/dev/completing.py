"""What TAB offers at the prompt: commands, tools, their parameters and values, methods, keys."""

from collections.abc import Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from executa_host.cli.dev.commands import Commands
from executa_host.cli.dev.session import DevSession
from executa_host.cli.dev.storage_words import WORDS
from executa_host.cli.why import callable_methods
from executa_protocol.manifest import Parameter, Tool


class DevCompleter(Completer):
    """Completes by what the plugin's manifest says now."""

    def __init__(self, session: DevSession, commands: Commands) -> None:
        self._session = session
        self._commands = commands

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """Asked by prompt_toolkit."""
        del complete_event
        words = document.text_before_cursor.split(" ")
        word = words[-1]
        for text, meta in self._candidates([each for each in words[:-1] if each], word):
            if text.startswith(word):
                yield Completion(text, start_position=-len(word), display_meta=meta)

    def _candidates(self, before: list[str], word: str) -> Iterable[tuple[str, str]]:
        if not before:
            yield from ((name, each.says) for name, each in self._commands.known.items())
            yield from self._tools()
            return
        first, *rest = before
        if first == "invoke" and not rest:
            yield from self._tools()
        elif first == "why" and not rest:
            yield from ((method, "") for method in callable_methods())
        elif first == "storage":
            yield from self._storage(rest)
        else:
            name, *given = rest if first == "invoke" else before
            tool = self._session.tool(name)
            if tool is not None:
                yield from _arguments(tool, given, word)

    def _tools(self) -> Iterator[tuple[str, str]]:
        for tool in self._session.tools():
            yield tool.name, tool.description.partition("\n")[0][:60]

    def _storage(self, rest: list[str]) -> Iterator[tuple[str, str]]:
        if not rest:
            yield from ((word, "") for word in WORDS)
        else:
            yield from ((key, "") for key in self._session.keys)


def _arguments(tool: Tool, given: list[str], word: str) -> Iterator[tuple[str, str]]:
    if given and given[0].startswith("{"):
        return  # JSON is written by hand
    used = {each.partition("=")[0].removesuffix(":") for each in given}
    for parameter in tool.parameters:
        if parameter.name in used:
            continue
        start = f"{parameter.name}="
        if word.startswith(start):
            yield from ((f"{start}{value}", "") for value in _values(parameter))
        else:
            need = "" if parameter.required else "optional "
            yield start, f"{need}{parameter.type}"


def _values(parameter: Parameter) -> list[str]:
    if isinstance(parameter.enum, list):
        return [str(value) for value in parameter.enum]
    return ["true", "false"] if parameter.type == "boolean" else []
