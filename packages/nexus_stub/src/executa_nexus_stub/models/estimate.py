"""Counting tokens without a tokenizer: one rule for every number the stub reports.

A token is a run of up to six letters or digits, or one other visible character. Spaces
cost nothing. English prose comes to about 1.3 tokens a word. Counts add up over
pieces that are cut between tokens, so that usage, budgets and deltas agree. This is
*assumed*: real models count otherwise, and plugins must not rely on it.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from executa_nexus_stub.models.base import ModelRequest, ToolSpec

_TOKEN: Final = re.compile(r"\w{1,6}|[^\w\s]")
_PIECE: Final = 6
"""Tokens of one streamed piece."""


def count_tokens(text: str) -> int:
    """Tokens of `text`."""
    return sum(1 for _ in _TOKEN.finditer(text))


def cut_to_tokens(text: str, limit: int) -> str:
    """The longest head of `text` with at most `limit` tokens, without spaces at its end."""
    for count, match in enumerate(_TOKEN.finditer(text)):
        if count == limit:
            return text[: match.start()].rstrip()
    return text


def count_request(request: ModelRequest, tools: Iterable[ToolSpec] = ()) -> int:
    """Input tokens: the texts of all messages, the system prompt and the tools on offer."""
    texts = [request.system, *(message.text for message in request.messages)]
    texts += [f"{tool.name} {tool.description}" for tool in tools]
    return sum(map(count_tokens, texts))


def pieces(text: str, tokens: int = _PIECE) -> Iterator[str]:
    """`text` in pieces of a few tokens, as a model would stream it; joined they are `text`."""
    start = 0
    for count, match in enumerate(_TOKEN.finditer(text)):
        if count and count % tokens == 0 and text[match.start() - 1].isspace():
            yield text[start : match.start()]
            start = match.start()
    if start < len(text):
        yield text[start:]
