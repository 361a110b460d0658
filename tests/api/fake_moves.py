"""The actions of the engine in memory, and what a test does with them by hand."""

from typing import Any

import msgspec
from msgspec import Raw, structs

from executa_host.actions.records import ActionRecord, ActionResult, ActionState, EventRecord
from executa_protocol.actions import TERMINAL, ResultStatus
from executa_protocol.chunks import Chunk, ChunkKind
from tests.api.fake_log import Log


class Moves:
    """Records, results and logs by id."""

    def __init__(self) -> None:
        self.records: dict[str, ActionRecord] = {}
        self.results: dict[str, ActionResult] = {}
        self.logs: dict[str, Log] = {}

    def move(self, action_id: str, state: ActionState, **changes: Any) -> ActionRecord:
        record = structs.replace(self.records[action_id], state=state, **changes)
        log = self.logs[action_id]
        event = EventRecord(cursor="", type="state", at_ms=1, action_id=action_id, state=state)
        log.ended = state in TERMINAL
        log.add(event)
        self.records[action_id] = record = structs.replace(record, cursor=log.events[-1].cursor)
        if record.session_id:
            self.logs[record.session_id].add(structs.replace(event, session_id=record.session_id))
        return record

    def finish(self, action_id: str, output: object = None) -> None:
        raw = Raw(msgspec.json.encode(output))
        self.results[action_id] = ActionResult(action_id, ResultStatus.COMPLETED, output=raw)
        self.move(action_id, ActionState.COMPLETED, ended_at_ms=2)

    def chunk(self, action_id: str, data: object) -> None:
        number = self.records[action_id].chunks + 1
        raw = Raw(msgspec.json.encode(data))
        chunk = Chunk(action_id, number, 1, ChunkKind.DATA, 1, raw)
        event = EventRecord(cursor="", type="chunk", at_ms=1, action_id=action_id, chunk=chunk)
        self.logs[action_id].add(event)
        self.records[action_id] = structs.replace(self.records[action_id], chunks=number)
