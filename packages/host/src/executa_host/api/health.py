"""Liveness and readiness, for whoever starts and balances hosts. Open to everybody."""

from aiohttp import web

from executa_host.actions.interface import Actions
from executa_host.api.refusal import answer
from executa_host.api.shapes import Live, Ready
from executa_host.api.visit import Lifeline, Visit
from executa_protocol.errors import ExecutaError


class HealthHandlers:
    """The probes, by the names in `routes`."""

    def __init__(self, actions: Actions, lifeline: Lifeline) -> None:
        self._actions = actions
        self._lifeline = lifeline

    async def live(self, _: Visit) -> web.Response:
        return answer(Live())

    async def ready(self, _: Visit) -> web.Response:
        try:
            status = await self._actions.status()
        except ExecutaError:  # the store has failed; what it says is in the log of the engine
            return answer(Ready(ready=False, draining=self._lifeline.draining), status=503)
        draining = status.draining or self._lifeline.draining
        ready = status.ready and not draining
        return answer(Ready(ready, draining), status=200 if ready else 503)
