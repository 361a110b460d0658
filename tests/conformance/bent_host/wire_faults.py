"""The faults on stdio, by name. Standard library only, as `wire` runs with nothing else."""

import signal
import tempfile
from collections.abc import Callable
from typing import Any

from tests.conformance.bent_host.wire_fault import LIMIT, Fault, Frame
from tests.conformance.bent_host.wire_makers import (
    before_invokes,
    context,
    dropping,
    frames,
    invokes,
    offers,
    results,
)
from tests.conformance.bent_host.wire_process import (
    LeavesGroup,
    NoStderr,
    Respawns,
    StuckStderr,
    ending,
    exits,
    surroundings,
)
from tests.conformance.bent_host.wire_read import (
    AnswersPointers,
    Copies,
    EndsWithTimeouts,
    FirstMember,
    OncePerCall,
    Placid,
    SplitsAtSeparators,
    Truncates,
    UnknownVersion,
    deaf,
    fragile,
    is_frame,
    reverse,
)
from tests.conformance.bent_host.wire_written import (
    Beside,
    Cancels,
    Codes,
    Cut,
    Envelope,
    Hasty,
    Hollow,
    Leaky,
    Lenient,
    Mute,
    OtherIds,
    Plain,
    Refusing,
    SameId,
    Serial,
    Shallow,
    Shutdown,
    Talkative,
    Twice,
    TypelessIds,
    WordyCodes,
)


def _kept(env: dict[str, str]) -> None:
    """A directory that nobody sweeps, in the one that the tests sweep."""
    env["TMPDIR"] = tempfile.mkdtemp(dir=env["BENT_SCRATCH"])


_LONG = b'{"jsonrpc":"2.0","method":"kit/long","params":{"f":"%b"}}\n' % (b"x" * (16 << 20))
_DEEP = b'{"jsonrpc":"2.0","method":"kit/deep","params":{"f":%b}}\n' % (b"[" * 200 + b"]" * 200)


def _nested(change: Callable[[Frame], Any]) -> type[Fault]:
    return context(lambda it: change(it) if "parent_invoke_id" in it else None)


FAULTS: dict[str, Callable[[], Fault]] = {
    "codes": Codes,
    "plain": Plain,
    "lenient": Lenient,
    "refusing": Refusing,
    "hollow": Hollow,
    "mute": Mute,
    "twice": Twice,
    "crlf": deaf(lambda line: not line.endswith(b"\r\n")),
    "blank": fragile(lambda line: bool(line.strip())),
    "bom": deaf(lambda line: not line.startswith(b"\xef\xbb\xbf")),
    "separators": SplitsAtSeparators,
    "junk": fragile(is_frame),
    "broken": deaf(is_frame),
    "short-lines": deaf(lambda line: len(line) < LIMIT),
    "long-ends": fragile(lambda line: len(line) < 16 << 20),
    "truncates": Truncates,
    "strict-ids": deaf(lambda line: b'"meant"' not in line),
    "unknown-ids": fragile(lambda line: b'"nobody"' not in line),
    "first-member": FirstMember,
    "extra-members": deaf(lambda line: b"kit_extra" not in line),
    "talkative": Talkative,
    "typeless-ids": TypelessIds,
    "spaces": invokes(
        lambda it: it["arguments"].update(
            {name: str(text).replace("\u2028", " ") for name, text in it["arguments"].items()}
        )
    ),
    "no-jsonrpc": lambda: Envelope(jsonrpc=None),
    "jsonrpc-1": lambda: Envelope(jsonrpc="1.0"),
    "other-ids": OtherIds,
    "same-id": SameId,
    "beside": Beside,
    "wordy-codes": WordyCodes,
    "cut": Cut,
    "line-bom": before_invokes(b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"kit/bom"}\n'),
    "line-long": before_invokes(_LONG),
    "line-nan": before_invokes(b'{"jsonrpc":"2.0","method":"kit/nan","params":{"n":NaN}}\n'),
    "line-deep": before_invokes(_DEEP),
    "line-twin": before_invokes(*[b'{"jsonrpc":"2.0","id":"twin","method":"kit/twin"}\n'] * 2),
    "line-answer": before_invokes(b'{"jsonrpc":"2.0","id":"nobody","result":{}}\n'),
    "line-method": before_invokes(b'{"jsonrpc":"2.0","id":"odd","method":7}\n'),
    "line-empty": before_invokes(b'{"jsonrpc":"2.0","id":"empty"}\n'),
    "null-member": context(lambda it: it.update(deadline_ms=None)),
    "schema": invokes(lambda it: it.update(arguments=[1])),
    "hasty": Hasty,
    "no-client": offers(lambda it: it.pop("clientInfo")),
    "version-2.1": offers(lambda it: it.update(protocolVersion="2.1")),
    "thin-sampling": offers(lambda it: it["capabilities"]["sampling"].pop("maxCallsPerInvoke")),
    "no-storage-offer": offers(lambda it: it["capabilities"].pop("storage")),
    "no-file-offer": offers(lambda it: it["capabilities"].pop("fileTransport")),
    "unknown-2.1": UnknownVersion,
    "tokens": context(lambda it: it.update(sampling_token="t", storage_token="s")),  # noqa: S106
    "no-tokens": context(lambda it: [it.pop(f"{one}_token", 0) for one in ("sampling", "storage")]),
    "old-token": context(lambda it: it.update(sampling_token="the-same")),  # noqa: S106
    "no-cancel": dropping("executa/cancel"),
    "cancels": Cancels,
    "once": OncePerCall,
    "no-stderr": NoStderr,
    "stuck-stderr": StuckStderr,
    "bare-env": surroundings(lambda env: [env.pop(one, 0) for one in ("KIT_SHOWN", "KIT_GIVEN")]),
    "secret-env": surroundings(lambda env: env.update(EXECUTA_NEXUS_KEY="secret")),
    "shared-tmp": surroundings(lambda env: env.update(TMPDIR="/tmp")),  # noqa: S108 - the fault
    "kept-tmp": surroundings(_kept),
    "describes-again": before_invokes(
        b'{"jsonrpc":"2.0","id":"again","method":"describe"}\n', swallow="again"
    ),
    "ends-with-timeouts": EndsWithTimeouts,
    "placid": Placid,
    "term-at-once": ending(signal.SIGTERM),
    "kill-at-once": ending(signal.SIGKILL),
    "both-at-once": ending(signal.SIGTERM, signal.SIGKILL),
    "leaves-group": LeavesGroup,
    "shutdown": Shutdown,
    "clean-is-fault": exits(lambda code: code or 1),
    "all-is-clean": exits(lambda code: 0),
    "respawns": Respawns,
    "no-last-words": deaf(lambda line: b"last words" not in line),
    "no-context": invokes(lambda it: it.pop("context")),
    "one-invoke-id": context(lambda it: it.update(invoke_id="a" * 32)),
    "no-invoke-id-beside": invokes(lambda it: it.pop("invoke_id")),
    "no-credentials": context(lambda it: it.pop("credentials", 0)),
    "no-names": reverse(lambda it: it.pop("context", 0)),
    "no-metadata": reverse(lambda it: it.pop("metadata", 0)),
    "floats": invokes(lambda it: it["arguments"].update(value={"big": float(2**63)})),
    "past-deadline": context(lambda it: it.update(deadline_ms=1)),
    "no-pointers": deaf(lambda line: b"__file_transport" not in line),
    "copies": Copies,
    "answers-pointers": AnswersPointers,
    "leaky": Leaky,
    "tells-token": results(
        lambda it: it.update(token="t") if "app_session_uuid" in it else None  # noqa: S106
    ),
    "backwards": frames(lambda it: it.reverse()),
    "no-run-id": results(lambda it: it.pop("run_id", None) and None),
    "no-frames": frames(lambda it: it.clear()),
    "no-history": results(lambda it: {"messages": []} if it == [] else None),
    "not-cancelled": frames(lambda it: it[-1].pop("cancelled", 0)),
    "always-cancelled": results(
        lambda it: it.update(cancelled=True) if "cancelled" in it else None
    ),
    "dialect": frames(lambda it: it[0].update(event="token")),
    "serial": Serial,
    "marked": frames(lambda it: it[0].update(executor="host")),
    "no-parent": context(lambda it: it.pop("parent_invoke_id", 0)),
    "late-deadline": _nested(lambda it: it.update(deadline_ms=it["deadline_ms"] + 10**7)),
    "shallow": Shallow,
    "texts": results(lambda it: it.update(value=str(it["value"])) if "value" in it else None),
}
"""Every fault by its name."""
