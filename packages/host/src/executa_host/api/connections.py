"""Connections that quote nothing of a request that is not HTTP.

aiohttp's own repeat the malformed line in its log and in its answer, and that line may be the
header with the key. These say that it could not be read, and answer in the one form.
"""

import asyncio
import logging
from typing import Any, Final

from aiohttp import web

from executa_host.api.limits import IDLE_SECONDS
from executa_host.api.refusal import ApiCode, ErrorBody, refused

_LOG: Final = logging.getLogger(__name__)
_SERVER_ERROR: Final = 500


class Connection(web.RequestHandler):
    """One connection of a client."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to what no handler saw, or what one could not answer."""
        if status >= _SERVER_ERROR:
            _LOG.error("a connection failed", exc_info=exc)
            told = ErrorBody(ApiCode.INTERNAL, "the host failed; its log says how")
        else:
            _LOG.info("%s sent no HTTP: %s", request.remote, type(exc).__name__)
            told = ErrorBody(ApiCode.BAD_HTTP, "the request is no HTTP that can be read")
        if request.writer.output_size:
            msg = "an answer had begun, so no other can be given"
            raise ConnectionError(msg)
        response = refused(status, told)
        response.force_close()
        return response


class _Server(web.Server):
    def __init__(self, like: web.Server, options: dict[str, Any]) -> None:
        super().__init__(
            like.request_handler, request_factory=like.request_factory, handler_cancellation=True
        )
        self._options = options

    def __call__(self) -> web.RequestHandler:
        return Connection(self, loop=asyncio.get_running_loop(), **self._options)


class ApiRunner(web.AppRunner):
    """Runs an application on such connections.

    A client that goes away cancels its handler: it ends a wait or a stream, and nothing else
    (R-51).
    """

    def __init__(self, app: web.Application, *, shutdown_timeout: float) -> None:
        super().__init__(app, access_log=None, shutdown_timeout=shutdown_timeout)

    async def _make_server(self) -> web.Server:
        options: dict[str, Any] = {
            "access_log": None,
            "auto_decompress": False,
            "keepalive_timeout": IDLE_SECONDS,
        }
        return _Server(await super()._make_server(), options)
