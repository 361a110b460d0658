"""Capability strings: which exist, what they unlock, and what to write instead of a wrong one.

One predicate decides validation, minting and gate (R-29). A *need* is a conjunction
of alternatives: every group must be met by one of its strings. This module knows no
method and no manifest; `methods.registry` says which method has which need.
"""

from collections.abc import Iterable
from typing import Final, Literal

Need = tuple[tuple[str, ...], ...]
"""All groups, each by any of its strings. The first string of a group is the one to suggest."""

TokenKind = Literal["sampling", "storage"]

SCOPE_FAMILY: Final = "aps.scope."
"""Every string of this family unlocks `storage/*` (seed lifecycle, Manifest declarations; R-29)."""

BARE_APS: Final = "aps"
"""Read as ``aps.kv`` and ``aps.files`` in tolerant mode (R-29)."""

SAMPLE: Final[Need] = (("llm.sample",),)
AGENT: Final[Need] = (("llm.sample",), ("llm.agent.auto",))
KV: Final[Need] = (("aps.kv", SCOPE_FAMILY),)
FILES: Final[Need] = (("aps.files",),)

_SCOPES: Final = tuple(
    f"{SCOPE_FAMILY}{scope}.{access}"
    for scope in ("user", "app", "tool")
    for access in ("read", "write")
)

ALLOWED: Final = frozenset(
    {
        "llm.sample",
        "llm.agent.auto",
        "llm.agent.fixed",
        "llm.complete",
        "llm.embed",
        "llm.image",
        "llm.image.edit",
        "llm.video",
        "llm.music",
        "llm.audio.speak",
        "llm.audio.transcribe",
        "aps.kv",
        "aps.files",
        *_SCOPES,
        f"{SCOPE_FAMILY}admin",
        "host.upload",
        "web.search",
        "web.fetch",
        "web.image_search",
        "web.image_fetch",
    }
)
"""The strings that a manifest may declare."""

_HINTS: Final = {
    "storage.user": 'write "aps.kv"; scopes come with the storage token',
    "storage.app": 'write "aps.kv"; scopes come with the storage token',
    "storage.tool": 'write "aps.kv"; scopes come with the storage token',
    "aps": 'write "aps.kv", "aps.files" or both',
    "llm.agent": 'write "llm.sample" and "llm.agent.auto"',
    "sampling": 'write "llm.sample"',
    "storage": 'write "aps.kv", "aps.files" or both',
}


def hint(capability: str) -> str:
    """What to write instead of a string that is not allowed; empty when we cannot tell."""
    return _HINTS.get(capability, "")


def is_allowed(capability: str) -> bool:
    """Whether a manifest may declare this string."""
    return capability in ALLOWED


def is_invalid(capability: str) -> bool:
    """Whether the seed itself refuses this string, in both modes."""
    return capability in ("storage.user", "storage.app", "storage.tool")


def expand(capabilities: Iterable[str], *, strict: bool = False) -> frozenset[str]:
    """The declared strings with ``aps`` read as both stores, in tolerant mode (R-29)."""
    declared = frozenset(capabilities)
    if BARE_APS in declared and not strict:
        return (declared - {BARE_APS}) | {"aps.kv", "aps.files"}
    return declared


def missing(capabilities: Iterable[str], need: Need, *, strict: bool = False) -> tuple[str, ...]:
    """The strings that would have to be declared too; empty when the need is met."""
    declared = expand(capabilities, strict=strict)
    return tuple(group[0] for group in need if not any(_met(word, declared) for word in group))


def _met(word: str, declared: frozenset[str]) -> bool:
    if word == SCOPE_FAMILY:
        return any(string.startswith(SCOPE_FAMILY) for string in declared)
    return word in declared


def tokens(capabilities: Iterable[str], *, strict: bool = False) -> frozenset[TokenKind]:
    """The tokens that an invoke of a plugin with these declarations carries (R-29, R-39)."""
    declared = expand(capabilities, strict=strict)
    kinds: set[TokenKind] = set()
    if not missing(declared, SAMPLE, strict=True):
        kinds.add("sampling")
    if not missing(declared, KV, strict=True) or not missing(declared, FILES, strict=True):
        kinds.add("storage")
    return frozenset(kinds)


def departure(capability: str) -> tuple[str, str] | None:
    """The requirement that a string departs from, and how; None for a string that is allowed."""
    if capability == BARE_APS:
        return "MANI-005", '"aps" is read as "aps.kv" and "aps.files"'
    if is_allowed(capability):
        return None
    advice = hint(capability)
    tail = f"; {advice}" if advice else ""
    return "MANI-006", f"{capability!r} is no known capability and unlocks nothing{tail}"
