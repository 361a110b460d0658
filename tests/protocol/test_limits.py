"""Limits: each is named, has its reason beside it, and holds together with the others."""

import ast
from pathlib import Path

import pytest

from executa_protocol import limits

SOURCE = Path(limits.__file__).read_text(encoding="utf-8")
UNITS = {"KIB", "MIB"}

FROM_THE_SEEDS_AND_RULINGS = {
    "MAX_LINE": 16 * 1024 * 1024,
    "HEAD_BYTES": 2048,
    "MAX_DEPTH": 128,
    "MAX_INLINE_RESULT": 4 * 1024 * 1024,
    "SPILL_THRESHOLD": 512 * 1024,
    "MAX_FILE_TRANSPORT": 64 * 1024 * 1024,
    "INITIALIZE_TIMEOUT": 5.0,
    "DESCRIBE_TIMEOUT": 5.0,
    "DESCRIBE_TIMEOUT_ONEFILE": 60.0,
    "INVOKE_TIMEOUT": 60.0,
    "STOP_GRACE": 5.0,
    "RESTART_BASE": 1.0,
    "RESTART_ATTEMPTS": 3,
    "RESTART_RESET": 60.0,
    "CANCEL_GRACE": 5.0,
    "TOKEN_TTL": 600.0,
    "TOKEN_RENEW_BEFORE": 30.0,
    "INVOKE_ID_DIGITS": 32,
    "SAMPLING_MAX_TOKENS": 8192,
    "SAMPLING_MAX_CALLS": 8,
    "INVOKE_MAX_TOKENS": 32_000,
    "STORAGE_MAX_CALLS": 200,
    "AGENT_MAX_FRAMES": 4096,
    "AGENT_CACHE_SIZE": 4096,
    "NESTED_MAX_DEPTH": 8,
    "NESTED_MAX_CALLS": 64,
    "QUERY_MAX": 1000,
    "QUERY_DEFAULT": 100,
    "WAIT_MAX": 30.0,
    "RESUME_WINDOW": 60.0,
}


def groups() -> list[tuple[list[str], str]]:
    """Neighbouring constants with the string below them."""
    found: list[tuple[list[str], str]] = []
    names: list[str] = []
    for node in ast.parse(SOURCE).body[1:]:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.append(node.target.id)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found.append((names, str(node.value.value)))
            names = []
    return [*found, (names, "")] if names else found


def test_every_limit_has_its_reason_below_it() -> None:
    for names, reason in groups():
        # The first group begins with the units; a few more share one reason.
        limited = [name for name in names if name not in UNITS]
        assert limited, reason
        assert len(limited) <= 3, limited
        assert reason.rstrip().endswith("."), limited
        assert len(reason.split()) >= 3, limited


def test_every_limit_is_final_and_positive() -> None:
    for names, _ in groups():
        for name in names:
            assert f"{name}: Final" in SOURCE
            assert getattr(limits, name) > 0


@pytest.mark.parametrize("name", FROM_THE_SEEDS_AND_RULINGS)
def test_a_number_of_the_seeds_and_rulings_is_theirs(name: str) -> None:
    value = getattr(limits, name)
    assert (value, type(value)) == (
        FROM_THE_SEEDS_AND_RULINGS[name],
        type(FROM_THE_SEEDS_AND_RULINGS[name]),
    )


def test_the_limits_hold_together() -> None:
    assert limits.SAMPLE_BYTES < limits.HEAD_BYTES < limits.MIN_LINE_CAP < limits.MAX_LINE
    assert limits.SPILL_THRESHOLD < limits.MAX_INLINE_RESULT < limits.MAX_LINE
    assert limits.MAX_LINE < limits.MAX_FILE_TRANSPORT
    assert limits.WRITE_LOW_WATER < limits.WRITE_HIGH_WATER < limits.WRITE_QUEUE
    assert limits.WRITE_QUEUE >= 2 * limits.MAX_LINE  # a frame must fit behind another
    assert limits.READ_CHUNK < 128 * limits.KIB
    assert limits.TOKEN_RENEW_BEFORE < limits.TOKEN_TTL
    assert limits.SAMPLING_MAX_TOKENS <= limits.INVOKE_MAX_TOKENS
    assert limits.INVOKE_TIMEOUT <= limits.MAX_TOOL_TIMEOUT
    assert limits.QUERY_DEFAULT <= limits.QUERY_MAX
