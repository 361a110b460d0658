"""A plugin of every level that keeps every rule, written by a stranger to the SDK: its tools."""

import os
from typing import Any, BinaryIO, cast
from urllib.request import Request, urlopen

from tests.conformance.peers.call import Call, CallFailed
from tests.conformance.peers.core import Core

Object = dict[str, Any]


class Plugin(Core):
    """The plugin."""

    def tool_echo(self, call: Call, arguments: Object, /) -> Any:
        return {"text": arguments["text"]}

    def tool_fail(self, call: Call, arguments: Object, /) -> Any:
        raise CallFailed({"code": -32000, "message": arguments["reason"]})

    def tool_ask(self, call: Call, arguments: Object, /) -> Any:
        self.progress(call, done=0)
        content = {"type": "text", "text": arguments["prompt"]}
        params: Object = {"messages": [{"role": "user", "content": content}], "maxTokens": 64}
        answer = self.request(call, "sampling/createMessage", params)
        return answer["content"]["text"]

    def tool_converse(self, call: Call, arguments: Object, /) -> Any:
        created = self.request(
            call, "agent/session.create", {"kind": "agent", "agent_submode": "auto"}
        )
        uuid: Object = {"app_session_uuid": created["app_session_uuid"]}
        try:
            return self.run_agent(call, {**uuid, "content": arguments["prompt"]})
        finally:
            self.delete(call, uuid)

    def delete(self, call: Call, uuid: Object, /) -> None:
        self.request(call, "agent/session.delete", uuid)

    def run_agent(self, call: Call, params: Object, /) -> Any:
        answer = self.request(call, "agent/session.run", {**params, "run_id": f"run-{uuid4()}"})
        return self.final(self.frames(answer))

    def frames(self, answer: Any, /) -> list[Object]:
        return cast("list[Object]", answer if isinstance(answer, list) else answer["frames"])

    def final(self, frames: list[Object], /) -> str:
        return next(frame["text"] for frame in frames if frame["event"] == "final")

    def tool_keep(self, call: Call, arguments: Object, /) -> Any:
        place = {"key": "kept", "scope": "tool"}
        self.request(call, "storage/set", {**place, "value": arguments["text"]})
        return self.request(call, "storage/get", place)["value"]

    def tool_upload(self, call: Call, arguments: Object, /) -> Any:
        data = arguments["text"].encode()
        place = {"path": "kept.txt", "scope": "tool"}
        size = {"size_bytes": len(data), "content_type": "text/plain"}
        begun = self.request(call, "files/upload_begin", {**place, **size})
        put = self.url(begun, "put_url", "presigned_url")
        with urlopen(Request(put, data=data, method="PUT")):  # noqa: S310 - the kit's own server
            pass
        self.request(call, "files/upload_complete", place)
        got = self.request(call, "files/download_url", {**place, "ttl_seconds": 60})
        with urlopen(self.url(got, "url", "get_url")) as answer:  # noqa: S310 - the same
            return answer.read().decode()

    def url(self, result: Object, *names: str) -> str:
        return next(result[name] for name in names if name in result)


def uuid4() -> str:
    """A random id, without the modules that uuid brings."""
    return os.urandom(16).hex()


def claim() -> BinaryIO:
    """The real stdout; whatever else is printed goes to stderr."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return out
