"""Which fault a check must catch: one for each, by the requirement that it is about.

A fault is a change of lines on stdio (`wire_faults`), of requests to nexus (`relay_faults`) or of
what the host tells whoever drives it (`talk_faults`); all have different names.
"""

import re
from typing import Final

_BY_FAULT: Final = {
    "asks-without-need": "CALL-009",
    # --- stdio: what the host writes
    "codes": (
        "CALL-024 CALL-025 GATE-001 GATE-002 GATE-003 GATE-004 GATE-005 GATE-006 GATE-007 GATE-008 "
        "GATE-009 GATE-010 GATE-011 GATE-012 GATE-013 HAND-113 AGNT-111 AGNT-112 AGNT-127 "
        "NEST-012 SAMP-103 STOR-105 STOR-106 STOR-107 STOR-112 STOR-113 WIRE-136 AGNT-129"
    ),
    "plain": "GATE-014 GATE-015 WIRE-138",
    "lenient": (
        "AGNT-105 AGNT-106 AGNT-107 AGNT-109 AGNT-110 AGNT-113 AGNT-115 AGNT-117 AGNT-118 "
        "AGNT-142 BUDG-001 BUDG-002 BUDG-003 BUDG-004 BUDG-005 BUDG-006 BUDG-009 "
        "HAND-110 SAMP-105"
    ),
    "refusing": (
        "AGNT-108 AGNT-114 AGNT-131 BUDG-007 BUDG-008 CALL-022 GATE-017 HAND-116 MANI-105 "
        "MANI-106 STOR-114"
    ),
    "hollow": (
        "AGNT-101 AGNT-126 AGNT-130 SAMP-102 STOR-004 STOR-005 STOR-102 STOR-104 STOR-108 STOR-111"
    ),
    "mute": "CALL-035 LIFE-012",
    "twice": "WIRE-014 WIRE-135",
    "talkative": "WIRE-140",
    "typeless-ids": "WIRE-007 WIRE-122",
    "spaces": "WIRE-142",
    "no-jsonrpc": "WIRE-001",
    "jsonrpc-1": "WIRE-006",
    "other-ids": "WIRE-002",
    "same-id": "CALL-040",
    "beside": "WIRE-003 WIRE-004",
    "wordy-codes": "WIRE-019",
    "cut": "WIRE-008",
    "line-bom": "WIRE-009",
    "line-long": "WIRE-011",
    "line-nan": "WIRE-012",
    "line-deep": "WIRE-013",
    "line-twin": "WIRE-015",
    "line-answer": "WIRE-016",
    "line-method": "WIRE-017",
    "line-empty": "WIRE-018",
    "null-member": "CORE-001",
    "schema": "WIRE-146",
    "hasty": "HAND-101",
    "no-client": "HAND-102",
    "version-2.1": "HAND-009",
    "thin-sampling": "HAND-103",
    "no-storage-offer": "HAND-104",
    "no-file-offer": "FILE-001",
    "tokens": "CALL-006 HAND-114",
    "no-tokens": "CALL-005",
    "old-token": "CALL-007",
    "no-cancel": "CALL-031 HAND-115 NEST-009",
    "cancels": "CALL-032",
    "describes-again": "LIFE-007",
    "shutdown": "LIFE-026",
    "no-context": "CALL-001",
    "one-invoke-id": "CALL-002",
    "no-invoke-id-beside": "CALL-003",
    "no-credentials": "CALL-004",
    "floats": "CALL-038",
    "past-deadline": "CALL-041",
    "leaky": "SAMP-106",
    "tells-token": "AGNT-102",
    "backwards": "AGNT-119",
    "no-run-id": "AGNT-120",
    "no-frames": "AGNT-006",
    "no-history": "AGNT-007 AGNT-125",
    "not-cancelled": "AGNT-123",
    "always-cancelled": "AGNT-124",
    "dialect": "AGNT-128",
    "serial": "AGNT-132",
    "marked": "NEST-003",
    "no-parent": "NEST-007",
    "late-deadline": "NEST-013",
    "shallow": "NEST-011",
    "texts": "STOR-103",
    # --- stdio: what the host reads
    "crlf": "WIRE-102",
    "blank": "WIRE-104",
    "bom": "WIRE-106",
    "separators": "WIRE-108",
    "junk": "WIRE-110",
    "broken": "WIRE-112 WIRE-113",
    "short-lines": "WIRE-114 WIRE-117",
    "long-ends": "WIRE-116",
    "truncates": "WIRE-119",
    "strict-ids": "WIRE-126",
    "unknown-ids": "WIRE-124",
    "first-member": "WIRE-131",
    "extra-members": "WIRE-145",
    "unknown-2.1": "HAND-105",
    "no-names": "CALL-021",
    "no-metadata": "CALL-023",
    "no-pointers": "FILE-002",
    "copies": "FILE-003",
    "answers-pointers": "FILE-012",
    "no-last-words": "LIFE-031",
    # --- the process
    "once": "LIFE-002",
    "no-stderr": "LIFE-003",
    "stuck-stderr": "LIFE-025",
    "bare-env": "LIFE-004",
    "secret-env": "LIFE-005",
    "shared-tmp": "FILE-004",
    "kept-tmp": "FILE-005",
    "ends-with-timeouts": "LIFE-011 LIFE-013 LIFE-015",
    "placid": "LIFE-014",
    "term-at-once": "LIFE-020",
    "kill-at-once": "LIFE-021",
    "both-at-once": "LIFE-022",
    "leaves-group": "LIFE-023",
    "clean-is-fault": "LIFE-028",
    "all-is-clean": "LIFE-029",
    "respawns": "LIFE-033 LIFE-034",
    # --- nexus
    "other-tokens": "AGNT-103 AGNT-104 SAMP-101 STOR-101",
    "never-closes": "CALL-008",
    "never-renews": "CALL-010",
    "asks-anyway": "GATE-016",
    "posts-twice": "NEST-004",
    "posts-late": "NEST-014",
    "never-cancels": "AGNT-116",
    "keeps-streams": "AGNT-122",
    "passes-context": "SAMP-104",
    "other-run-id": "AGNT-121",
    "no-tools": "NEST-001",
    "more-tools": "AGNT-143",
    "not-ok": "NEST-002",
    "always-ok": "NEST-005 NEST-006 NEST-010",
    "other-data": "NEST-008",
    "one-scope": "STOR-109",
    # --- whoever drives the host
    "never-fails": (
        "FILE-006 FILE-007 FILE-008 FILE-009 FILE-010 FILE-011 LIFE-008 LIFE-010 MANI-108 "
        "WIRE-127 WIRE-129"
    ),
    "never-starts": "HAND-106 HAND-107 HAND-108 HAND-109 HAND-112 MANI-107 MANI-110",
    "loses-calls": "CALL-026 LIFE-035",
    "forgets-failures": "LIFE-030",
    "slow-to-stop": "LIFE-024",
    "quiet": "CALL-029",
    "chatty": "CALL-030",
    "cuts-arguments": "WIRE-121",
    "patient": "MANI-109",
    "one-user": "LIFE-036",
    "no-app": "STOR-110",
    "no-written": "LIFE-032",
    "vague": "MANI-104",
    "no-codes": "CALL-027",
    "always-success": "CALL-028",
    "always-confirmed": "CALL-033",
    "never-confirmed": "CALL-034",
}

FAULT_OF: Final = {
    requirement: fault for fault, words in _BY_FAULT.items() for requirement in words.split()
}
"""The name of the fault, by the requirement of the check that must catch it."""

_PLUGIN: Final = re.compile(r"^([a-z]+)-(\d+)-")


def find(plugin: str) -> str:
    """The fault of the host towards a plugin, whose name begins with its check's requirement."""
    found = _PLUGIN.match(plugin)
    return "" if found is None else FAULT_OF.get(f"{found[1].upper()}-{found[2]}", "")
