"""Reading prose: sentences out of Markdown, words, and how much each sentence says.

Owns everything about text that needs no question. Pure and deterministic: the same
text gives the same sentences and scores on every machine.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from executa_nexus_stub.models.vocabulary import STOPWORDS

_FENCE: Final = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_FRONT_MATTER: Final = re.compile(r"\A\s*---\n.{0,4000}?\n---\n", re.DOTALL)
_COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)|</?[A-Za-z][^<>]{0,300}>", re.DOTALL)
_IMAGE: Final = re.compile(r"!\[[^\]]{0,300}\]\([^)]{0,600}\)")
_LINK: Final = re.compile(r"\[([^\]\[]{1,300})\]\([^)]{0,600}\)")
_EMPHASIS: Final = re.compile(r"(?<!\w)(\*\*|\*|``?)(?=\S)([^`*]{1,400}?)(?<=\S)\1(?!\w)")
_ITEM: Final = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_HEADING: Final = re.compile(r"^\s{0,3}#{1,6}\s+")
_RULE: Final = re.compile(r"^[\s|:=*_+-]*$")
_END: Final = re.compile(
    r"(?<=[.!?…])[\"'”\u2019)\]]*\s+(?=[\"'“\u2018(\[]?[^\W_a-z])|(?<=[\u3002\uff01\uff1f])"
)
_ABBREVIATION: Final = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|Dr|Mr|Mrs|Ms|Prof|St|No|Fig|Vol|Jr|Sr)|\b[A-Z])\.$"
)
_SHORT: Final = 12
"""Characters in which an abbreviation and what stands before it fit."""

_WORD: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")

CELL: Final = " | "
"""Between the cells of a table's row."""

_LONG: Final = 30
"""Meaningful words from which on a sentence is more of a list, and worth less."""


def sentences(text: str) -> list[str]:
    """The sentences of prose or Markdown, in order; headings only if there is nothing else.

    Code blocks, images, rules and tags are left out; list items and table rows are
    sentences of their own.
    """
    text = _FRONT_MATTER.sub("", text.replace("\r\n", "\n"))
    text = _COMMENT.sub(" ", _FENCE.sub("\n", text))
    text = _LINK.sub(r"\1", _IMAGE.sub(" ", text))
    found: list[str] = []
    headings: list[str] = []
    paragraph: list[str] = []
    for line in [*text.split("\n"), ""]:
        plain = line.strip().lstrip(">").strip()
        starts_item = _ITEM.match(plain) is not None
        is_heading = _HEADING.match(plain) is not None
        is_row = plain.startswith("|")
        if paragraph and (not plain or starts_item or is_heading or is_row):
            found += _split(" ".join(paragraph))
            paragraph = []
        if not plain or _RULE.match(plain):
            continue
        if is_heading:
            headings.append(_HEADING.sub("", plain).rstrip("# "))
        elif is_row:
            found.append(CELL.join(cell.strip() for cell in plain.strip("|").split("|")))
        else:
            paragraph.append(_ITEM.sub("", plain))
    return [_EMPHASIS.sub(r"\2", part) for part in found or headings]


def _split(paragraph: str) -> list[str]:
    parts: list[str] = []
    start = 0
    for match in _END.finditer(paragraph):
        # The end alone is looked at: a head that grows would be read again and again.
        if _ABBREVIATION.search(paragraph[max(start, match.start() - _SHORT) : match.start()]):
            continue
        if head := paragraph[start : match.end()].strip():
            parts.append(head)
            start = match.end()
    tail = paragraph[start:].strip()
    return [*parts, tail] if tail else parts


def words(text: str) -> list[str]:
    """The words of `text`, in lower case."""
    return [match.group().lower() for match in _WORD.finditer(text)]


def stem(word: str) -> str:
    """A word without its common endings, so that `notes` meets `note` and `planned` `plan`."""
    for ending in ("'s", "\u2019s", "ing", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            head = word[: -len(ending)]
            if ending == "ies":
                return head + "y"
            doubled = len(head) > 3 and head[-1] == head[-2] and ending in ("ing", "ed")
            return head[:-1] if doubled else head
    return word


def content_words(text: str) -> list[str]:
    """The words that carry meaning, unstemmed, in order, with repeats."""
    return [
        word for word in words(text) if word not in STOPWORDS and (len(word) > 1 or word.isdigit())
    ]


def key_stems(text: str) -> frozenset[str]:
    """The stems of the words that carry meaning."""
    return frozenset(map(stem, content_words(text)))


def keywords(text: str, limit: int) -> list[str]:
    """The most frequent words that carry meaning; of equal ones the earlier."""
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    for word in content_words(text):
        if not word.isdigit():
            counts[stem(word)] += 1
            first.setdefault(stem(word), word)
    return [first[key] for key, _ in counts.most_common(limit)]


def scores(parts: Sequence[str]) -> list[float]:
    """How much each sentence says about the whole: how frequent its words are, by length."""
    bags = [[stem(word) for word in content_words(part)] for part in parts]
    counts = Counter(word for bag in bags for word in bag)
    result: list[float] = []
    for index, bag in enumerate(bags):
        weight = sum(math.log1p(counts[word]) for word in sorted(set(bag)))
        weight /= math.sqrt(len(bag) + 4) + max(0, len(bag) - _LONG)
        if CELL in parts[index] or parts[index][-1:].isalnum():
            weight *= 0.5  # a row or an item tells less on its own than a sentence
        # A text tends to open with what it is about.
        result.append(weight * 1.15 if index == 0 else weight)
    return result


def matches(parts: Sequence[str], wanted: Iterable[str]) -> list[float]:
    """How well each sentence meets the `wanted` stems; a rare one weighs more."""
    bags = [key_stems(part) for part in parts]
    goals = sorted(set(wanted))
    weights = {
        goal: math.log1p(len(parts) / (1 + sum(goal in bag for bag in bags))) + 0.1
        for goal in goals
    }
    return [sum(weights[goal] for goal in goals if goal in bag) for bag in bags]
