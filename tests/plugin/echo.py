"""A writer for low-level clients that answers what it is given."""

import json
from collections.abc import Callable
from typing import Any

from executa_sdk.clients.base import Client

Object = dict[str, Any]


class Echo:
    """A writer that answers every request through `route`, on the thread that wrote it."""

    def __init__(self, result: Any = None, error: Object | None = None) -> None:
        self.frames: list[Object] = []
        self._answer: Object = {"result": result} if error is None else {"error": error}
        self.route: Callable[[Object], bool] = lambda _: False

    def __call__(self, frame: Object) -> None:
        self.frames.append(frame)
        answer = {"jsonrpc": "2.0", "id": frame["id"], **self._answer}
        assert self.route(json.loads(json.dumps(answer)))


def connect(client: Client, writer: Echo) -> Echo:
    client.attach_writer(writer)
    writer.route = client.dispatch_response
    return writer
