"""`executa actions`: submit, read, follow and decide durable actions of a running host."""

from contextlib import aclosing
from typing import Annotated, Any, Final

from cyclopts import App, Parameter
from msgspec import UNSET, Raw

from executa_host.actions.faults import Code
from executa_host.actions.interface import Outcome
from executa_host.actions.records import (
    ActionRecord,
    ActionState,
    ActionView,
    ApprovalStatus,
    Mode,
)
from executa_host.actions.requests import ActionQuery, Include, Submission
from executa_host.cli import action_views as views
from executa_host.cli import exits
from executa_host.cli.arguments import read_arguments
from executa_host.cli.carried import NOTHING, Carried
from executa_host.cli.remote import HERE, Remote, print_json, screen, speak
from executa_host.cli.watching import watch
from executa_host.client import Client, NotFound, Submitted
from executa_protocol import codec
from executa_protocol.actions import TERMINAL
from executa_protocol.limits import WAIT_MAX

actions_app: Final = App(
    name="actions", help="Submit, read, follow and decide durable actions of a running host."
)

Action = Annotated[str, Parameter(help="The action's id, act_...")]
Note = Annotated[str, Parameter(help="Why; it is kept with the decision.")]
Content = Annotated[
    str, Parameter(help="The approval's digest: what was looked at is what is decided.")
]


@actions_app.command(name="list")
def list_actions(
    *,
    state: Annotated[tuple[ActionState, ...], Parameter(help="Only in one of these.")] = (),
    capability: Annotated[str, Parameter(help="Only calls of this, PLUGIN.TOOL.")] = "",
    session: Annotated[str, Parameter(help="Only of this session.")] = "",
    principal: Annotated[str, Parameter(help="Only of whoever submitted them.")] = "",
    transaction: Annotated[str, Parameter(help="Only of this transaction.")] = "",
    approval: Annotated[
        ApprovalStatus | None, Parameter(help="Only with an approval in this status.")
    ] = None,
    tenant: Annotated[str, Parameter(help="Whose, for keys that may see all.")] = "",
    limit: Annotated[int, Parameter(help="1 to 1,000.")] = 100,
    cursor: Annotated[str, Parameter(help="Go on after a page.")] = "",
    remote: Remote = HERE,
) -> int:
    """List actions, the newest first."""
    query = ActionQuery(
        states=state,
        capability=capability,
        session_id=session,
        principal=principal,
        transaction_id=transaction,
        approval=UNSET if approval is None else approval,
        tenant=tenant,
        limit=limit,
        cursor=cursor,
    )
    page = speak(remote, lambda client: client.list(query))
    if remote.json:
        return print_json({"ok": True, **_members(page)})
    views.show_actions(screen(), page)
    return exits.OK


@actions_app.command
def show(
    action: Action,
    *,
    include: Annotated[tuple[Include, ...], Parameter(help="What to show beside the record.")] = (
        Include.RESULT,
    ),
    remote: Remote = HERE,
) -> int:
    """Show an action."""
    view = speak(remote, lambda client: _known(client, action, include))
    if remote.json:
        return print_json({"ok": True, **_members(view)})
    views.show_view(screen(), view)
    return exits.OK


@actions_app.command
def result(
    action: Action,
    *,
    wait: Annotated[float, Parameter(help="Seconds to wait for it, 0 to 30.")] = 0.0,
    remote: Remote = HERE,
) -> int:
    """Print the result of an action; exit 1 if it was not completed."""
    outcome = speak(remote, lambda client: client.result(action, wait))
    return _show_outcome(outcome, remote)


@actions_app.command
def submit(
    capability: Annotated[str, Parameter(help="What to call, PLUGIN.TOOL.")],
    *,
    input: Annotated[str, Parameter(help="Input as JSON, @FILE, or - for stdin.")] = "{}",  # noqa: A002
    mode: Annotated[
        Mode, Parameter(help="Whether its result is waited for, and how.")
    ] = Mode.ASYNC,
    idempotency_key: Annotated[str, Parameter(help="Again with this key: the same action.")] = "",
    session: Annotated[str, Parameter(help="The session that it belongs to.")] = "",
    carried: Carried = NOTHING,
    ask: Annotated[bool, Parameter(negative="", help="Wait for an approval first.")] = False,
    follow: Annotated[bool, Parameter(negative="", help="Follow it to its result.")] = False,
    remote: Remote = HERE,
) -> int:
    """Submit an action; it is on the host's disk when this returns."""
    wanted = Submission(
        capability=capability,
        input=Raw(codec.encode(read_arguments(input, "--input"))),
        mode=mode,
        idempotency_key=idempotency_key,
        session_id=session,
        approval="ask" if ask else "",
        **carried.members(),
    )

    async def send(client: Client) -> Submitted:
        return await client.submit_exactly(wanted)

    submitted = speak(remote, send)
    if follow:
        return _followed(submitted.action.action_id, "", remote)
    if remote.json:
        print_json({"ok": True, **_members(submitted)})
        return views.exit_code(submitted.action, submitted.result)
    if submitted.result is not UNSET:
        views.show_result(screen(), submitted.result)
    else:
        views.show_action(screen(), submitted.action)
    return views.exit_code(submitted.action, submitted.result)


@actions_app.command
def follow(
    action: Action,
    *,
    after: Annotated[str, Parameter(help="Only what comes after this cursor.")] = "",
    remote: Remote = HERE,
) -> int:
    """Show what an action does until it ends, then its result."""
    return _followed(action, after, remote)


@actions_app.command
def approve(
    action: Action, *, content: Content = "", note: Note = "", remote: Remote = HERE
) -> int:
    """Allow an action that awaits approval."""
    record = speak(remote, lambda client: client.approve(action, content=content, note=note))
    return _show_record(record, remote)


@actions_app.command
def deny(action: Action, *, content: Content = "", note: Note = "", remote: Remote = HERE) -> int:
    """Refuse an action that awaits approval; it fails."""
    record = speak(remote, lambda client: client.deny(action, content=content, note=note))
    return _show_record(record, remote)


@actions_app.command
def cancel(
    action: Action,
    *,
    reason: Annotated[str, Parameter(help="Why; the plugin is told.")] = "",
    wait: Annotated[float, Parameter(help="Seconds to wait for its end, 0 to 30.")] = 0.0,
    remote: Remote = HERE,
) -> int:
    """Ask an action to end: a request, not a proof."""

    async def ask(client: Client) -> ActionRecord:
        record = await client.cancel(action, reason)
        if wait and record.state not in TERMINAL:
            record = (await client.result(action, wait)).action
        return record

    return _show_record(speak(remote, ask), remote)


@actions_app.command
def redrive(action: Action, *, remote: Remote = HERE) -> int:
    """Make a new action of a dead letter."""
    submitted = speak(remote, lambda client: client.redrive(action))
    if remote.json:
        return print_json({"ok": True, **_members(submitted)})
    return _show_record(submitted.action, remote)


# --- What they share -------------------------------------------------------------------


async def _known(client: Client, action: str, include: tuple[Include, ...]) -> ActionView:
    view = await client.get(action, include)
    if view is None:
        msg = f"{action} is unknown: not there, or not this key's to see"
        raise NotFound(404, Code.UNKNOWN_ACTION, msg)
    return view


def _followed(action: str, after: str, remote: Remote) -> int:
    async def see(client: Client) -> Outcome:
        async with aclosing(client.follow(action, after)) as events:
            if remote.json:
                async for event in events:
                    print_json(event)
            else:
                await watch(events, screen())
        return await client.result(action, WAIT_MAX)

    return _show_outcome(speak(remote, see), remote)


def _show_outcome(outcome: Outcome, remote: Remote) -> int:
    if remote.json:
        print_json({"ok": True, **_members(outcome)})
    elif outcome.result is None:
        views.show_action(screen(), outcome.action)
    else:
        views.show_result(screen(), outcome.result)
    if outcome.result is None:
        return exits.FAILED
    return views.exit_code(outcome.action, outcome.result)


def _show_record(record: ActionRecord, remote: Remote) -> int:
    if remote.json:
        return print_json({"ok": True, "action": record})
    views.show_action(screen(), record)
    return exits.OK


def _members(shown: Any) -> dict[str, Any]:
    """The members of an answer, those of them that are set."""
    members = {name: getattr(shown, name) for name in shown.__struct_fields__}
    return {name: value for name, value in members.items() if value is not UNSET}
