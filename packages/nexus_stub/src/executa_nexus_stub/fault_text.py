"""Faults as a person types them: ``seed=7`` or ``seed=7,error=0.1,latency=0.05``.

Owns the words and what they stand for. ``seed`` alone means a mixture that a careful
host survives: everything a little slow, and some calls told to come back.
"""

from typing import Final

from executa_nexus_stub.faults import FaultConfig, FaultRule
from executa_protocol.errors import UsageError

SAFE: Final = ("open_invoke", "renew_invoke", "storage/get", "storage/list")
"""Endpoints that may be asked twice, and so may be told to come back."""

_HELP: Final = (
    "seed=N, latency=SECONDS, error=RATE, rate_limit=RATE, slow_first_byte=SECONDS, "
    "cut=FRAMES, malformed=FRAME, duplicate=FRAME, skew=SECONDS, endpoint=NAME"
)


def read_faults(text: str) -> FaultConfig:
    """The faults that `text` asks for. Raises `UsageError` that lists the words."""
    values: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, found, value = part.partition("=")
        if not found or name in values:
            raise _wrong(part)
        values[name] = value
    seed = values.pop("seed", None)
    skew = values.pop("skew", "0")
    endpoint = values.pop("endpoint", "*")
    rules: list[FaultRule] = []
    for name, value in values.items():
        try:
            rules.append(_rule(name, value, endpoint))
        except (KeyError, ValueError):
            raise _wrong(f"{name}={value}") from None
    try:
        return FaultConfig(
            rules=tuple(rules) or (mixture() if seed is not None else ()),
            seed=None if seed is None else int(seed),
            clock_skew=float(skew),
        )
    except ValueError:
        raise _wrong(text) from None


def mixture() -> tuple[FaultRule, ...]:
    """What a seed alone means."""
    return (
        FaultRule(kind="latency", seconds=0.005, sigma=0.8),
        FaultRule(kind="slow_first_byte", seconds=0.02, sigma=0.5),
        *(FaultRule(kind="rate_limit", endpoint=name, rate=0.2, retry_after=0.05) for name in SAFE),
    )


def _rule(name: str, value: str, endpoint: str) -> FaultRule:
    match name:
        case "latency":
            return FaultRule(kind="latency", endpoint=endpoint, seconds=float(value), sigma=0.5)
        case "slow_first_byte":
            return FaultRule(kind="slow_first_byte", seconds=float(value))
        case "error":
            return FaultRule(kind="error", endpoint=endpoint, rate=float(value))
        case "rate_limit":
            return FaultRule(kind="rate_limit", endpoint=endpoint, rate=float(value))
        case "cut":
            return FaultRule(kind="cut", after=int(value))
        case "malformed":
            return FaultRule(kind="malformed", after=int(value))
        case "duplicate":
            return FaultRule(kind="duplicate", after=int(value))
        case _:
            raise KeyError(name)


def _wrong(part: str) -> UsageError:
    return UsageError(f"faults: {part!r} is not one of {_HELP}")
