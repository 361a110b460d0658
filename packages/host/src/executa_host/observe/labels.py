"""Words of plugins, folded to those that are known, for whatever keeps one entry per word.

A plugin may call methods and answer errors of any name: a counter for each of them would
grow for as long as the plugin likes.
"""

from typing import Final

from executa_protocol.codes import TABLE
from executa_protocol.methods import METHODS

OTHER: Final = "other"

_OUTCOMES: Final = frozenset(
    {
        "ok",
        "tool_failed",
        "CallCancelled",
        "CallFailed",
        "CallTimeout",
        "CancelledError",
        "ConnectionLost",
        "DecodeFailure",
        "FrameTooLarge",
        "InvokeRefused",
        "InvokeTimeout",
        "NotEncodable",
        "StrictRefusal",
        "WriteQueueFull",
        *(row.symbol for row in TABLE),
    }
)
_SYMBOLS: Final = frozenset({"", *(row.symbol for row in TABLE)})


def outcome(word: str) -> str:
    """How an invoke ended; ``other`` for a plugin's own error."""
    return word if word in _OUTCOMES else OTHER


def symbol(word: str) -> str:
    """The symbol of an error; ``other`` for one that is not in the table."""
    return word if word in _SYMBOLS else OTHER


def method(name: str) -> str:
    """A method of the protocol; ``other`` for what a plugin made up."""
    return name if name in METHODS else OTHER
