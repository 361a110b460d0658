"""What goes wrong with plugins in the field, recognised by what a host saw of them.

Each function looks for one kind of trouble and gives what it found with advice, or None.
"""

from collections.abc import Sequence
from typing import Final

from executa_host.cli.doctor.checks import Finding
from executa_host.cli.doctor.evidence import Evidence
from executa_host.cli.timeline import clean
from executa_host.restart import describe_exit
from executa_protocol import transcript
from executa_protocol.manifest import Manifest

READ_IN_A_LOOP: Final = (
    "read requests line by line in a loop until stdin ends; one process serves all calls"
)
STDERR: Final = "stdout is the protocol's alone: write logs and prints to stderr"
BINARY: Final = (
    'say that it is a one-file program (type = "binary" in host.toml, "type": "binary" in '
    "executa.json), which gives its first launch 60 s; or build it as a folder (PyInstaller "
    "--onedir), which starts at once"
)
FLUSH: Final = (
    "flush after every line: print(..., flush=True), sys.stdout.flush(), python -u, or "
    "setvbuf/fflush in C; a pipe is buffered in blocks"
)

_DEPARTURES: Final = {
    "MANI-001": 'answer describe with the manifest itself, not with {"manifest": ...}',
    "MANI-004": "describe a tool's arguments in parameters, an array of {name, type, "
    "description, required}; input_schema is ignored, so callers see no parameters",
    "CORE-004": 'answer invoke with {"success": true, "data": ...}, not with the bare data',
    "CORE-005": 'say "success": true or "success": false in the result of invoke',
}
"""Departures that hosts read differently, or not at all."""

_MODULE: Final = "ModuleNotFoundError"


def ended_early(evidence: Evidence, words: Sequence[str]) -> Finding | None:
    """It ended before it had answered."""
    code = evidence.exit_code
    if code is None:
        return None
    said = f"; it said: {' | '.join(map(clean, words[-3:]))}" if words else ""
    if evidence.heard:
        found = f"it answered initialize, then {describe_exit(code)} before it was asked to{said}"
        return Finding(found, READ_IN_A_LOOP)
    found = f"it {describe_exit(code)} before it had answered anything{said}"
    text = " ".join(words)
    if _MODULE in text:
        return Finding(found, "install what it imports where it runs, or start it by `uv run`")
    return Finding(found, READ_IN_A_LOOP if code == 0 else "run its command by hand and see")


def printed(evidence: Evidence) -> Finding | None:
    """Something else than protocol lines came on stdout."""
    lines = evidence.noise("unreadable", "oversized")
    if not lines:
        return None
    sample = clean(lines[0].sample)
    if sample.lower().startswith("content-length"):
        found = f"it frames messages with headers: {sample}"
        return Finding(found, "write each message as one line of JSON, without headers")
    if len(lines) > 1 and sample[:1] in ("{", "["):
        found = f"it spreads one message over several lines: {sample}"
        return Finding(found, "write each message as one line: no indentation")
    count = "a line" if len(lines) == 1 else f"{len(lines)} lines"
    return Finding(f"it prints {count} on stdout that are no messages: {sample}", STDERR)


def strange_answers(evidence: Evidence) -> Finding | None:
    """Answers that nobody waits for."""
    stray = evidence.noise("stray")
    if not stray:
        return None
    advice = "answer every request once, with the id that it came with, of the same type"
    return Finding(clean(stray[0].message), advice)


def departures(evidence: Evidence, *chapters: str) -> Finding | None:
    """Spellings that this host tolerates: the worst first."""
    found = [each for each in evidence.departures() if each[0].startswith(chapters)]
    for name, text in found:
        if name in _DEPARTURES:
            return Finding(f"{text} ({name})", _DEPARTURES[name])
    if not found:
        return None
    texts = "; ".join(f"{text} ({name})" for name, text in found[:5])
    return Finding(texts, "strict hosts refuse these spellings", fatal=False)


def slow_start(evidence: Evidence, within: float) -> Finding | None:
    """It was asked before it could hear."""
    if not evidence.unanswered:
        return None
    found = f"it did not answer initialize within {within:g} s, and answered describe later"
    return Finding(f"{found}: it is slow to start, as one-file programs are", BINARY)


def old_protocol(evidence: Evidence, manifest: Manifest) -> Finding | None:
    """It speaks 1.1, with which there are no reverse calls."""
    versions = [each.version for each in evidence.of(transcript.Negotiated)]
    if not versions or versions[-1].startswith("2"):
        return None
    why = next((clean(each.message) for each in evidence.noise("fallback")), "")
    found = f"it speaks protocol {versions[-1]} ({why})" if why else f"it speaks {versions[-1]}"
    declared = sorted(manifest.declared())
    advice = 'answer initialize with {"protocolVersion": "2.0", "server_info": ..., ...}'
    if declared:
        return Finding(f"{found}, and declares {', '.join(declared)}, which needs 2.0", advice)
    return Finding(found, f"{advice} to call back to the host", fatal=False)


def deaf_while_calling(evidence: Evidence) -> Finding | None:
    """Its reverse call was answered, and its tool went on waiting."""
    served = evidence.served
    if not served:
        return None
    found = f"its {served[-1].method} was answered ({served[-1].verdict}), and its tool never ended"
    advice = (
        "read stdin while a tool runs: a single loop that waits inside a tool never sees the "
        "answer; run tools in threads or tasks, and match answers by id"
    )
    return Finding(found, advice)


def refused_call(evidence: Evidence) -> Finding | None:
    """A reverse call that the host or nexus refused."""
    for each in evidence.served:
        if each.verdict == "refused":
            found = f"{each.method} was refused at step {each.step}: {clean(each.message)}"
            return Finding(found, f"`executa why {each.method} ...` says what would unlock it")
        if each.verdict == "failed":
            found = f"{each.method} failed: {each.code} {clean(each.message)}"
            return Finding(found, "see docs/errors.md for the code", fatal=False)
    return None
