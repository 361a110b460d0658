"""`executa sessions`: durable sessions of a running host (not agent sessions)."""

from contextlib import aclosing
from typing import Annotated, Final, Literal

from cyclopts import App, Parameter

from executa_host.actions.records import SessionRecord, SessionState
from executa_host.actions.requests import SessionQuery
from executa_host.cli import action_views as views
from executa_host.cli import exits
from executa_host.cli.remote import HERE, Remote, print_json, screen, speak
from executa_host.cli.watching import watch
from executa_host.client import Client

sessions_app: Final = App(
    name="sessions", help="Open, read, follow and close durable sessions of a running host."
)

Session = Annotated[str, Parameter(help="The session's id, ses_...")]


@sessions_app.command(name="list")
def list_sessions(
    *,
    state: Annotated[tuple[SessionState, ...], Parameter(help="Only in one of these.")] = (),
    principal: Annotated[str, Parameter(help="Either party.")] = "",
    tenant: str = "",
    limit: Annotated[int, Parameter(help="1 to 1,000.")] = 100,
    cursor: Annotated[str, Parameter(help="Go on after a page.")] = "",
    remote: Remote = HERE,
) -> int:
    """List sessions, the newest first."""
    query = SessionQuery(
        states=state, principal=principal, tenant=tenant, limit=limit, cursor=cursor
    )
    page = speak(remote, lambda client: client.sessions.list(query))
    if remote.json:
        print_json({"ok": True, "records": page.records, "next_cursor": page.next_cursor})
        return exits.OK
    views.show_sessions(screen(), page)
    return exits.OK


@sessions_app.command
def show(session: Session, *, remote: Remote = HERE) -> int:
    """Show a session."""

    async def read(client: Client) -> SessionRecord:
        record = await client.sessions.get(session)
        if record is None:
            msg = f"{session} is unknown: not there, or not this key's to see"
            raise exits.Stop(msg, exits.USAGE)
        return record

    return _show(speak(remote, read), remote)


@sessions_app.command(name="open")
def open_session(
    responder: Annotated[str, Parameter(help="The other principal.")],
    *,
    label: str = "",
    remote: Remote = HERE,
) -> int:
    """Open a session with another principal.

    With --json the resume token is printed too. It is a credential: whoever has it can resume
    the session with your key.
    """
    opened = speak(remote, lambda client: client.sessions.open(responder, label=label))
    if remote.json:
        print_json({"ok": True, "session": opened.session, "resume_token": opened.resume_token})
        return exits.OK
    return _show(opened.session, remote)


@sessions_app.command
def close(
    session: Session,
    *,
    outcome: Annotated[
        Literal["completed", "cancelled", "failed"],
        Parameter(help="Open actions go on if it was completed, else they are cancelled."),
    ] = "completed",
    remote: Remote = HERE,
) -> int:
    """End a session."""
    return _show(speak(remote, lambda client: client.sessions.close(session, outcome)), remote)


@sessions_app.command
def follow(
    session: Session,
    *,
    after: Annotated[str, Parameter(help="Only what comes after this cursor.")] = "",
    remote: Remote = HERE,
) -> int:
    """Show what happens in a session until it is settled."""

    async def see(client: Client) -> None:
        async with aclosing(client.follow(session, after)) as events:
            if remote.json:
                async for event in events:
                    print_json(event)
            else:
                await watch(events, screen())

    speak(remote, see)
    return exits.OK


def _show(record: SessionRecord, remote: Remote) -> int:
    if remote.json:
        print_json({"ok": True, "session": record})
    else:
        views.show_session(screen(), record)
    return exits.OK
