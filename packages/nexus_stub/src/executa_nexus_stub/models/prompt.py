"""What a conversation asks and what text it brings: instruction, material, question.

Owns the rules by which the offline model tells the two apart (*assumed*; a real model
needs none). The last user message is split at a marked block, a colon or a blank line;
without material of its own it speaks about what was said before.
"""

import re
from typing import Final

from msgspec import Struct

from executa_nexus_stub.models.base import Message, ModelRequest
from executa_nexus_stub.models.text import sentences, words
from executa_nexus_stub.models.values import as_sentence, decoded, texts_in
from executa_nexus_stub.models.vocabulary import VERBS

_TAGS: Final = ("text", "document", "context", "content", "input")
_MARKS: Final = (*((f"<{tag}>", f"</{tag}>") for tag in _TAGS), ('"""', '"""'), ("```", "\n```"))
"""What stands around marked material; found by plain search, which never looks twice."""

_SUMMARY: Final = re.compile(
    r"\b(?:summar\w+|condense|compress|shorten|outline|brief\w*|tl;?dr|gist|main points?)\b",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(
    r"\"([^\"\n]{1,400})\"|“([^”\n]{1,400})”|(?<!\w)'([^'\n]{1,400})'(?!\w)"
)
_HEAD: Final = 600
"""Longest instruction, in characters, that stands before or after its material."""


class Prompt(Struct, frozen=True, kw_only=True):
    """A conversation as the offline model reads it.

    `material` is what it may answer from, `brought` whether the message itself brought
    it. `question` is the sentence that asks, empty if none does; `summarize` says that
    the whole is to be made shorter.
    """

    instruction: str
    material: str
    question: str
    summarize: bool
    brought: bool = False


def read_prompt(request: ModelRequest) -> Prompt:
    """Tell what is asked in `request` from what it is asked about."""
    last = max(
        (index for index, message in enumerate(request.messages) if message.role == "user"),
        default=-1,
    )
    text = request.messages[last].text.strip() if last >= 0 else ""
    instruction, material = _split(text)
    earlier = _earlier(request.messages[: max(last, 0)])
    brought = bool(material)
    if not brought:
        if _is_material(text):
            instruction, material = request.system, text
        else:
            material = earlier
    summarize = _SUMMARY.search(instruction) is not None
    question = _question(instruction)
    if not material and not question:
        material = text
    return Prompt(
        instruction=instruction,
        material=material,
        question=question,
        summarize=summarize,
        brought=brought,
    )


def last_user_text(messages: tuple[Message, ...]) -> str:
    """What the user said last."""
    return next((m.text for m in reversed(messages) if m.role == "user"), "")


def quoted(text: str) -> list[str]:
    """The quoted phrases of `text`, in order."""
    return [next(filter(None, match.groups()), "").strip() for match in _QUOTED.finditer(text)]


def _split(text: str) -> tuple[str, str]:
    """Instruction and material of one message; material is empty where none stands out."""
    for opening, closing in _MARKS:
        start, end = text.find(opening), text.rfind(closing)
        if 0 <= start < end:
            around = f"{text[:start]} {text[end + len(closing) :]}".strip()
            if len(around) <= _HEAD:  # else the block is a part of some longer text
                return around, text[start + len(opening) : end].strip()
    head, found, rest = text.partition("\n\n")
    if not found:
        line, found_line, below = text.partition("\n")
        if found_line and line.rstrip().endswith(":"):
            return line.strip(), below.strip()
    elif len(head) <= _HEAD and (head.rstrip().endswith((":", "?")) or _commands(head)):
        return head.strip(), rest.strip()
    else:
        above, _, tail = text.rpartition("\n\n")
        if len(tail) <= _HEAD and (tail.rstrip().endswith("?") or _commands(tail)):
            return tail.strip(), above.strip()
    order, colon, rest = text.partition(":")
    if colon and len(order) <= _HEAD and rest[:1].isspace() and _commands(order):
        return order.strip(), rest.strip()
    return text, ""


def _commands(text: str) -> bool:
    """Whether `text` opens with a verb that asks for something."""
    first = [word for word in words(text[:80]) if word not in ("please", "now", "then", "and")]
    return bool(first) and first[0] in VERBS


def _is_material(text: str) -> bool:
    """Whether a message without an instruction is itself the text to work on."""
    parts = sentences(text)
    return len(parts) > 3 and not any(part.endswith("?") for part in parts[:1] + parts[-1:])


def _question(instruction: str) -> str:
    phrases = [phrase for phrase in quoted(instruction) if phrase.endswith("?")]
    if phrases:
        return phrases[0]
    asked = [part for part in sentences(instruction) if part.endswith("?")]
    if asked:
        return " ".join(asked)
    if _SUMMARY.search(instruction) is None and re.search(
        r"\b(?:what|who|when|where|why|how|which|find|answer|about)\b", instruction, re.IGNORECASE
    ):
        return instruction
    return ""


def _earlier(messages: tuple[Message, ...]) -> str:
    """What was said before, oldest first: what the user told and what tools gave."""
    told: list[str] = []
    for message in messages:
        if message.role == "user":
            told += [part for part in sentences(message.text) if not part.endswith("?")]
        elif message.role == "tool" and message.ok:
            told += map(as_sentence, texts_in(decoded(message.text)))
    return "\n\n".join(told)
