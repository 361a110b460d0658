"""The methods by chapter: wire structs, their checks, and the table of all of them."""

from executa_protocol.methods.extensions import canonical_name
from executa_protocol.methods.info import MethodInfo
from executa_protocol.methods.reading import InvalidParams, refusal
from executa_protocol.methods.registry import METHODS, unlocks

__all__ = ["METHODS", "InvalidParams", "MethodInfo", "canonical_name", "refusal", "unlocks"]
