"""``--json`` with or without a file, which the command line's library cannot say."""

from collections.abc import Sequence

from benchmarks.suites import NAMES


def spelled_out(tokens: Sequence[str]) -> list[str]:
    """The tokens of `run` with ``--json=-`` for a ``--json`` that no file follows.

    What follows is a file unless it is an option or the name of a suite; a file that is
    named so is written ``--json=roundtrip``.
    """
    if not tokens or tokens[0] != "run":
        return list(tokens)
    spelled: list[str] = []
    rest = list(tokens)
    while rest:
        token = rest.pop(0)
        if token == "--json":  # noqa: S105 - an option
            given = bool(rest) and not rest[0].startswith("--") and rest[0] not in NAMES
            token = f"--json={rest.pop(0) if given else '-'}"
        spelled.append(token)
    return spelled
