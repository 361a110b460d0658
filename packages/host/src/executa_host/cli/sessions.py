"""`executa sessions`: durable sessions of a running host (not agent sessions)."""

from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import App, Parameter
from msgspec import UNSET, UnsetType

from executa_host.actions.faults import Code
from executa_host.actions.records import SessionRecord, SessionState
from executa_host.actions.requests import SessionQuery
from executa_host.cli import action_views as views
from executa_host.cli import exits
from executa_host.cli.output import tell
from executa_host.cli.remote import HERE, Remote, print_json, screen, speak
from executa_host.cli.tokens import TokenFile, attempt_of, keep_token, read_token
from executa_host.cli.watching import watch
from executa_host.client import Client, NotFound
from executa_host.client.shapes import Opened, Resumed

sessions_app: Final = App(
    name="sessions", help="Open, read, follow and close durable sessions of a running host."
)

Session = Annotated[str, Parameter(help="The session's id, ses_...")]


@sessions_app.command(name="list")
def list_sessions(
    *,
    state: Annotated[tuple[SessionState, ...], Parameter(help="Only in one of these.")] = (),
    principal: Annotated[str, Parameter(help="Either party.")] = "",
    tenant: Annotated[str, Parameter(help="Whose, for keys that may see all.")] = "",
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
            raise NotFound(404, Code.UNKNOWN_SESSION, msg)
        return record

    return _show(speak(remote, read), remote)


@sessions_app.command(name="open")
def open_session(
    responder: Annotated[str, Parameter(help="The other principal.")],
    *,
    label: Annotated[str, Parameter(help="What it is about, for the list.")] = "",
    token_file: TokenFile = None,
    remote: Remote = HERE,
) -> int:
    """Open a session with another principal.

    Its resume token goes into a file, or into the output of --json. It is a credential:
    whoever has it can resume the session with your key.
    """
    opened = speak(remote, lambda client: client.sessions.open(responder, label=label))
    return _show_opened(opened, token_file, remote)


@sessions_app.command
def attach(session: Session, *, token_file: TokenFile = None, remote: Remote = HERE) -> int:
    """Get a resume token for a session that you are a party of."""
    opened = speak(remote, lambda client: client.sessions.attach(session))
    return _show_opened(opened, token_file, remote)


@sessions_app.command
def resume(
    token_file: Annotated[
        Path, Parameter(help="File with the resume token, which the next one replaces.")
    ],
    *,
    after: Annotated[
        str | None, Parameter(help="Show what came after this cursor; '' is the beginning.")
    ] = None,
    limit: Annotated[int, Parameter(help="At most so many events, 1 to 1,000.")] = 100,
    remote: Remote = HERE,
) -> int:
    """Resume a session: spend its token for the next one, and see what was missed.

    A command whose answer was lost can be given again for a minute.
    """

    async def spend(client: Client) -> Resumed:
        token = read_token(token_file)
        resumed = await client.sessions.resume(
            token, attempt_id=attempt_of(token), after=after, limit=limit
        )
        keep_token(token_file, resumed.resume_token)
        return resumed

    resumed = speak(remote, spend)
    if remote.json:
        members = {"replay": resumed.replay, "replay_error": resumed.replay_error}
        given = {name: value for name, value in members.items() if value is not UNSET}
        return print_json({"ok": True, "session": resumed.session, **given})
    views.show_session(screen(), resumed.session)
    if not isinstance(resumed.replay, UnsetType):
        for event in resumed.replay.events:
            screen().print(views.event_line(event), soft_wrap=True)
        if resumed.replay.cursor:
            screen().print(f"go on: --after {resumed.replay.cursor}", style="dim", markup=False)
    if not isinstance(resumed.replay_error, UnsetType):
        error = resumed.replay_error
        raise exits.Stop(f"resumed, without a replay: {error.code}: {error.message}", exits.FAILED)
    return exits.OK


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


def _show_opened(opened: Opened, token_file: Path | None, remote: Remote) -> int:
    if token_file is not None:
        keep_token(token_file, opened.resume_token)
    if remote.json:
        token = {} if token_file is not None else {"resume_token": opened.resume_token}
        return print_json({"ok": True, "session": opened.session, **token})
    if token_file is None:
        again = f"executa sessions attach {opened.session.session_id} --token-file FILE"
        tell(f"its resume token was not kept; for another one: {again}", style="dim")
    return _show(opened.session, remote)


def _show(record: SessionRecord, remote: Remote) -> int:
    if remote.json:
        print_json({"ok": True, "session": record})
    else:
        views.show_session(screen(), record)
    return exits.OK
