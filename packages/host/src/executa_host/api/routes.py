"""The endpoints of the API as a table: what the application serves and OpenAPI tells.

Owns paths, scopes, shapes and sizes. Handlers are named here and live in `actions`,
`sessions`, `plugins` and `health`. Paths are under ``/v1`` unless they begin there.
"""

from typing import Final

from executa_host.actions.interface import (
    ActionPage,
    EventPage,
    Outcome,
    SessionPage,
)
from executa_host.actions.records import ActionView
from executa_host.actions.requests import Scope
from executa_host.api import shapes
from executa_host.api.endpoint import Endpoint
from executa_host.api.limits import SUBMIT_BYTES
from executa_host.api.plugins import PluginAnswer, PluginList, PluginLog

_SESSIONS: Final = (
    Endpoint(
        method="POST",
        path="/handshake",
        group="sessions",
        handler="open",
        summary="Open a session to another principal, with a resume token (R-49, R-50).",
        scope=Scope.SESSIONS,
        body=shapes.HandshakeBody,
        answer=shapes.OpenedAnswer,
        statuses=(201,),
        refusals=(503,),
    ),
    Endpoint(
        method="POST",
        path="/resume",
        group="sessions",
        handler="resume",
        summary="Spend a resume token for the next one, and replay events (R-50).",
        scope=Scope.SESSIONS,
        body=shapes.ResumeBody,
        answer=shapes.ResumedAnswer,
        refusals=(404, 409, 410),
    ),
    Endpoint(
        method="GET",
        path="/sessions",
        group="sessions",
        handler="list",
        summary="List sessions.",
        scope=Scope.SESSIONS,
        query=shapes.SessionsParams,
        answer=SessionPage,
    ),
    Endpoint(
        method="GET",
        path="/sessions/{session_id}",
        group="sessions",
        handler="get",
        summary="Read a session.",
        scope=Scope.SESSIONS,
        answer=shapes.SessionAnswer,
        refusals=(404, 410),
    ),
    Endpoint(
        method="POST",
        path="/sessions/{session_id}/attach",
        group="sessions",
        handler="attach",
        summary="A resume token for a party that has none, or whose tokens were revoked.",
        scope=Scope.SESSIONS,
        body=shapes.NoBody,
        answer=shapes.OpenedAnswer,
        statuses=(201,),
        refusals=(404, 409, 410),
    ),
    Endpoint(
        method="POST",
        path="/sessions/{session_id}/close",
        group="sessions",
        handler="close",
        summary="End a session (R-49).",
        scope=Scope.SESSIONS,
        body=shapes.CloseBody,
        answer=shapes.SessionAnswer,
        refusals=(404, 409, 410),
    ),
    Endpoint(
        method="GET",
        path="/sessions/{session_id}/events",
        group="sessions",
        handler="events",
        summary="Events of a session and of all its actions: a page, or a stream (R-51).",
        scope=Scope.READ,
        query=shapes.EventsParams,
        answer=EventPage,
        refusals=(404, 410, 503),
        stream=True,
    ),
)


def _decision(verb: str, summary: str) -> Endpoint:
    return Endpoint(
        method="POST",
        path=f"/actions/{{action_id}}/{verb}",
        group="actions",
        handler=verb,
        summary=summary,
        scope=Scope.APPROVE,
        body=shapes.DecisionBody,
        answer=ActionView,
        refusals=(404, 409, 410),
    )


_ACTIONS: Final = (
    Endpoint(
        method="GET",
        path="/capabilities",
        group="actions",
        handler="capabilities",
        summary="The contracts of everything that can be called.",
        scope=Scope.READ,
        answer=shapes.Capabilities,
    ),
    Endpoint(
        method="GET",
        path="/capabilities/{name}",
        group="actions",
        handler="capability",
        summary="One contract.",
        scope=Scope.READ,
        answer=shapes.CapabilityAnswer,
        refusals=(404, 503),
    ),
    Endpoint(
        method="POST",
        path="/actions",
        group="actions",
        handler="submit",
        summary="Submit an action: 202 once it is on disk, 200 if it has ended already.",
        scope=Scope.SUBMIT,
        body=shapes.SubmitBody,
        answer=shapes.SubmitAnswer,
        statuses=(200, 202),
        refusals=(404, 409, 410, 503),
        keyed=True,
        most=SUBMIT_BYTES,
    ),
    Endpoint(
        method="GET",
        path="/actions",
        group="actions",
        handler="list",
        summary="List actions, without input and result.",
        scope=Scope.READ,
        query=shapes.ActionsParams,
        answer=ActionPage,
    ),
    Endpoint(
        method="GET",
        path="/actions/{action_id}",
        group="actions",
        handler="get",
        summary="Read an action. One that is not there, or not to be seen, is `unknown` (R-41).",
        scope=Scope.READ,
        query=shapes.ReadParams,
        answer=ActionView,
        refusals=(404, 410),
    ),
    Endpoint(
        method="GET",
        path="/actions/{action_id}/result",
        group="actions",
        handler="result",
        summary="The result, after a bounded wait; without one the record as it is.",
        scope=Scope.READ,
        query=shapes.ResultParams,
        answer=Outcome,
        refusals=(404, 410),
    ),
    Endpoint(
        method="GET",
        path="/actions/{action_id}/events",
        group="actions",
        handler="events",
        summary="Events of an action: a page, or a stream (R-51).",
        scope=Scope.READ,
        query=shapes.EventsParams,
        answer=EventPage,
        refusals=(404, 410, 503),
        stream=True,
    ),
    Endpoint(
        method="POST",
        path="/actions/{action_id}/cancel",
        group="actions",
        handler="cancel",
        summary="Ask an action to end: a request, not a proof (R-45).",
        scope=Scope.CANCEL,
        body=shapes.CancelBody,
        answer=ActionView,
        refusals=(404, 410),
    ),
    _decision("approve", "Allow what awaits approval (R-46)."),
    _decision("deny", "Refuse what awaits approval; the action fails (R-46)."),
    Endpoint(
        method="POST",
        path="/actions/{action_id}/redrive",
        group="actions",
        handler="redrive",
        summary="Make a new action of a dead letter (R-47).",
        scope=Scope.REDRIVE,
        body=shapes.RedriveBody,
        answer=shapes.SubmitAnswer,
        statuses=(200, 202),
        refusals=(404, 409, 410, 503),
        keyed=True,
    ),
)


def _by_hand(verb: str, summary: str) -> Endpoint:
    return Endpoint(
        method="POST",
        path=f"/plugins/{{plugin}}/{verb}",
        group="plugins",
        handler=verb,
        summary=summary,
        scope=Scope.ADMIN,
        body=shapes.NoBody,
        query=shapes.UserParams,
        answer=PluginAnswer,
        refusals=(404, 503),
    )


_PLUGINS: Final = (
    Endpoint(
        method="GET",
        path="/plugins",
        group="plugins",
        handler="list",
        summary="How every plugin is.",
        scope=Scope.ADMIN,
        answer=PluginList,
    ),
    Endpoint(
        method="GET",
        path="/plugins/{plugin}",
        group="plugins",
        handler="get",
        summary="How one plugin of one user is.",
        scope=Scope.ADMIN,
        query=shapes.UserParams,
        answer=PluginAnswer,
        refusals=(404,),
    ),
    Endpoint(
        method="GET",
        path="/plugins/{plugin}/logs",
        group="plugins",
        handler="logs",
        summary="What a plugin wrote to stderr last.",
        scope=Scope.ADMIN,
        query=shapes.LogsParams,
        answer=PluginLog,
        refusals=(404,),
    ),
    _by_hand("restart", "Stop a plugin, forget its faults, and start it anew (R-25)."),
    _by_hand("reload", "Let its invokes end, then start it anew if it ran."),
)

_HEALTH: Final = (
    Endpoint(
        method="GET",
        path="/healthz",
        group="health",
        handler="live",
        summary="Liveness: the process answers.",
        answer=shapes.Live,
    ),
    Endpoint(
        method="GET",
        path="/readyz",
        group="health",
        handler="ready",
        summary="Readiness: new work is taken (200), or not (503).",
        answer=shapes.Ready,
        statuses=(200, 503),
    ),
)

ENDPOINTS: Final = (*_ACTIONS, *_SESSIONS, *_PLUGINS, *_HEALTH)
"""Everything but the OpenAPI document, which is served at ``/v1/openapi.json``."""
