"""A server that answers from a script, for tests of a client."""

from aiohttp import web

KEY = "exk_000000000000_" + "A" * 43
JSON = "application/json"


class Flaky:
    """A server that answers from a script; None breaks the connection."""

    def __init__(self) -> None:
        self.script: list[tuple[int, bytes] | None] = []
        self.seen: list[tuple[str, str, bytes]] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.seen.append((request.method, request.path, await request.read()))
        self.headers.append(dict(request.headers))
        step = self.script.pop(0)
        if step is None:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        status, body = step
        kind = "text/event-stream" if body.startswith((b"event:", b"id:", b":")) else JSON
        return web.Response(status=status, body=body, content_type=kind)


def refusal(code: str, *, retryable: bool = False) -> bytes:
    """The body of a refusal."""
    flag = b"true" if retryable else b"false"
    return (
        b'{"error": {"code": "%s", "message": "m", "path": "$.x", "retryable": %s,'
        b' "data": {"a": 1}}}' % (code.encode(), flag)
    )
