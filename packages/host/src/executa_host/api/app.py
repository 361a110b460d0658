"""The application: every endpoint of the table, each behind its door.

Owns what happens before a handler: the key, its scope, the query, the body, in this order, so
that nobody without a right is told about the rest. Handlers come after.
"""

import logging
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Final

from aiohttp import web

from executa_host.actions.interface import Actions
from executa_host.api import auth
from executa_host.api.actions import ActionHandlers
from executa_host.api.endpoint import BASE, Endpoint, full_path
from executa_host.api.health import HealthHandlers
from executa_host.api.openapi import document
from executa_host.api.plugins import PluginHandlers, PluginHost
from executa_host.api.reading import read_body, read_query, with_key
from executa_host.api.refusal import answer, refusals
from executa_host.api.routes import ENDPOINTS
from executa_host.api.sessions import SessionHandlers
from executa_host.api.streams import Streams
from executa_host.api.visit import DEFAULT_PACE, NOBODY, Lifeline, Pace, Visit
from executa_host.keys import Key, KeyFile

_LOG: Final = logging.getLogger(__name__)

_Handler = Callable[[Visit], Awaitable[web.StreamResponse]]


def make_app(
    actions: Actions,
    keys: KeyFile,
    plugins: PluginHost | None = None,
    *,
    lifeline: Lifeline | None = None,
    pace: Pace = DEFAULT_PACE,
) -> web.Application:
    """The application over an engine. Engine, plugins and keys stay the caller's to close.

    Without `plugins` there are no endpoints for them. `lifeline` closes with the application.
    """
    life = lifeline or Lifeline()
    streams = Streams(actions, life, pace)
    owners: dict[str, object] = {
        "actions": ActionHandlers(actions, life, streams, pace),
        "sessions": SessionHandlers(actions, life, streams),
        "health": HealthHandlers(actions, life),
    }
    if plugins is not None:
        owners["plugins"] = PluginHandlers(plugins, life)
    app = web.Application(middlewares=[refusals])
    for endpoint in ENDPOINTS:
        if (owner := owners.get(endpoint.group)) is not None:
            door = _door(endpoint, getattr(owner, endpoint.handler), keys, pace)
            app.router.add_route(endpoint.method, full_path(endpoint), door)
            if endpoint.group == "health":  # probes ask in every way
                app.router.add_head(endpoint.path, door)
                app.router.add_get(BASE + endpoint.path, door)
    described = answer(document(version("executa-host"))).body

    async def openapi(_: web.Request) -> web.Response:
        return web.Response(body=described, content_type="application/json")

    async def closing(_: web.Application) -> None:
        life.close()

    app.router.add_get(f"{BASE}/openapi.json", openapi)
    app.on_shutdown.append(closing)
    return app


def _door(
    endpoint: Endpoint, handler: _Handler, keys: KeyFile, pace: Pace
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """What stands before one handler."""

    async def enter(request: web.Request) -> web.StreamResponse:
        caller, key = NOBODY, None
        if endpoint.scope is not None:
            key = auth.identify(request, keys)
            caller = key.caller
            auth.check_scope(caller.scopes, endpoint.scope)
        query = read_query(request, endpoint.query)
        body = None
        if endpoint.body is not None:
            body = await read_body(request, endpoint.body, endpoint.most, pace.body)
            body = with_key(request, body) if endpoint.keyed else body
        visit = Visit(
            request=request,
            caller=caller,
            body=body,
            query=query,
            still=lambda: key is None or keys.still(key),
        )
        response = await handler(visit)
        _note(endpoint, key, response.status)
        return response

    return enter


def _note(endpoint: Endpoint, key: Key | None, status: int) -> None:
    """One line of the log: who did what. Ids, queries and bodies are not in it."""
    if _LOG.isEnabledFor(logging.DEBUG):
        who = "nobody" if key is None else f"{key.principal} (key {key.key_id})"
        _LOG.debug("%s %s: %d for %s", endpoint.method, full_path(endpoint), status, who)
