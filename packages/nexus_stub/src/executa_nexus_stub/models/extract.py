"""Answers made of the sentences that are there: a summary, or what meets a question.

Owns the choice of sentences under a token budget. It does not know where the text
came from; `prompt` says what is material and what is asked.
"""

import re
from typing import Final

from executa_nexus_stub.models import text as reading
from executa_nexus_stub.models.estimate import count_tokens, cut_to_tokens
from executa_nexus_stub.models.prompt import Prompt

NOTHING: Final = "I have no text that answers this."
"""The answer to a question without any material."""

_MOST: Final = 8
_NUMBERS: Final = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
}  # fmt: skip
_WANTED: Final = re.compile(
    r"\b(\d{1,2}|one|two|three|four|five|six|seven|eight|a single)\s+(?:short\s+)?"
    r"(?:sentences?|points?|bullets?|bullet points|lines?)\b",
    re.IGNORECASE,
)


def answer(prompt: Prompt, max_tokens: int) -> str:
    """The best sentences of the prompt's material, in their order, within `max_tokens`."""
    parts = reading.sentences(prompt.material)
    if not parts:
        return NOTHING if prompt.question else prompt.instruction
    if prompt.question:
        ranks = reading.matches(parts, reading.key_stems(prompt.question))
        if any(ranks):
            best = max(ranks)
            kept = [rank if rank >= best / 2 else 0.0 for rank in ranks]
            return _pick(parts, kept, wanted_count(prompt.instruction) or 3, max_tokens)
        if not prompt.summarize:
            return NOTHING
    limit = wanted_count(prompt.instruction) or min(_MOST, -(-len(parts) // 3))
    return _pick(parts, reading.scores(parts), limit, max_tokens)


def wanted_count(instruction: str) -> int:
    """How many sentences the instruction asks for; 0 if it does not say."""
    match = _WANTED.search(instruction)
    if match is None:
        return 0
    word = match.group(1).lower()
    return int(word) if word.isdigit() else _NUMBERS.get(word, 1)


def _pick(parts: list[str], ranks: list[float], limit: int, max_tokens: int) -> str:
    """The best `limit` parts that fit; if not even one fits, the best as it is, to be cut."""
    order = sorted(range(len(parts)), key=lambda index: (-ranks[index], index))
    chosen: list[int] = []
    seen: set[str] = set()
    left = max_tokens
    for index in order:
        if len(chosen) == limit or ranks[index] <= 0:
            break
        part = parts[index]
        cost = count_tokens(part)
        if cost <= left and part.lower() not in seen:
            chosen.append(index)
            seen.add(part.lower())
            left -= cost
    if not chosen:
        return parts[order[0]]
    return " ".join(parts[index] for index in sorted(chosen))


def finish(text: str, max_tokens: int, stop: tuple[str, ...]) -> tuple[str, str]:
    """`text` up to the first stop sequence and within the budget, and why it ends there."""
    cuts = [at for sequence in stop if sequence and (at := text.find(sequence)) >= 0]
    if cuts:
        text = text[: min(cuts)]
    short = cut_to_tokens(text, max_tokens)
    if len(short) < len(text):
        return short, "maxTokens"
    return text, "stopSequence" if cuts else "endTurn"
