"""`executa keys`: who may use the API of the host that keeps a store."""

import difflib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, Parameter
from msgspec import to_builtins
from rich.console import Console
from rich.table import Table
from rich.text import Text

from executa_host.actions.requests import OWN_WORK, Scope
from executa_host.cli import exits
from executa_host.cli.output import write_json, write_line
from executa_host.cli.remote import screen
from executa_host.cli.stores import STORE_HELP, default_store
from executa_host.keys import Key, KeyFile, keys_beside

keys_app: Final = App(name="keys", help="Create, list and revoke keys of a host's API.")

Store = Annotated[Path | None, Parameter(help=STORE_HELP)]
Json = Annotated[bool, Parameter(negative="", help="Print one JSON object.")]

_DAY: Final = 86_400.0


@keys_app.command
def create(
    principal: Annotated[str, Parameter(help="For whom the key speaks.")],
    *,
    tenant: Annotated[str, Parameter(help="Whose work it sees.")] = "default",
    user: Annotated[str, Parameter(help="Whose plugins run for it.")] = "local",
    scope: Annotated[
        tuple[str, ...],
        Parameter(help=f"What it may do: {', '.join(Scope)}. By default an ordinary client's own."),
    ] = (),
    label: Annotated[str, Parameter(help="What it is for, to know it again in the list.")] = "",
    days: Annotated[
        float | None, Parameter(help="Days until it expires; by default never.")
    ] = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Make a key. It is printed once, alone on a line, and kept nowhere."""
    made = _file(store).create(
        principal,
        tenant=tenant,
        user_id=user,
        scopes=_scopes(scope),
        label=label,
        expires_in=None if days is None else days * _DAY,
    )
    if json:
        write_json({"ok": True, "key": made.text, **_shown(made.key)})
        return exits.OK
    told = Console(stderr=True, highlight=False)
    scopes = ", ".join(made.key.scopes)
    told.print(f"key {made.key.key_id} speaks for {principal}: {scopes}", markup=False)
    told.print("it is shown this once; keep it where only its client can read it", style="dim")
    write_line(made.text.encode())
    return exits.OK


@keys_app.command(name="list")
def list_keys(*, store: Store = None, json: Json = False) -> int:
    """List keys, without what would open anything."""
    keys = _file(store).list()
    if json:
        write_json({"ok": True, "keys": [_shown(key) for key in keys]})
        return exits.OK
    if not keys:
        screen().print("no keys", style="dim")
        return exits.OK
    console = screen()
    table = Table(box=None, pad_edge=False)
    shown = [heading for heading in _COLUMNS if console.width >= _ROOMY or heading not in _EXTRA]
    for heading in shown:
        whole = heading in ("key", "scopes", "created")  # a word that is broken is no word
        table.add_column(heading, overflow="fold", no_wrap=whole, min_width=len(heading))
    for key in keys:
        table.add_row(*(_COLUMNS[heading](key) for heading in shown))
    console.print(table)
    return exits.OK


@keys_app.command
def revoke(
    key: Annotated[str, Parameter(help="The key's id, as the list shows it.")],
    *,
    store: Store = None,
    json: Json = False,
) -> int:
    """End a key for good. A running host refuses it from the next request on."""
    revoked = _file(store).revoke(key)
    if json:
        write_json({"ok": True, **_shown(revoked)})
    else:
        screen().print(f"key {key} of {revoked.principal} is revoked", markup=False)
    return exits.OK


def _scopes(words: tuple[str, ...]) -> frozenset[Scope]:
    """Scopes by their names, several of them with commas. Raises `exits.Stop`."""
    wanted = [word for text in words for word in text.split(",") if word]
    unknown = [word for word in wanted if word not in set(Scope)]
    if unknown:
        near = difflib.get_close_matches(unknown[0], list(Scope), 1, 0.4)
        advice = f"did you mean {near[0]}?" if near else f"known are {', '.join(Scope)}"
        raise exits.Stop(f"no scope is named {unknown[0]!r}; {advice}", exits.USAGE)
    return frozenset(map(Scope, wanted)) or OWN_WORK


def _file(store: Path | None) -> KeyFile:
    return KeyFile(keys_beside(store or default_store()))


def _shown(key: Key) -> dict[str, object]:
    members: dict[str, object] = to_builtins(key)
    return {name: value for name, value in members.items() if name != "digest"}


def _valid(key: Key) -> Text:
    if key.revoked_at_ms:
        return Text(f"revoked {_day(key.revoked_at_ms)}", style="red")
    if not key.expires_at_ms:
        return Text("yes", style="green")
    ended = not key.valid(int(datetime.now(UTC).timestamp() * 1000))
    word = "expired" if ended else "until"
    return Text(f"{word} {_day(key.expires_at_ms)}", style="red" if ended else "green")


_COLUMNS: Final[dict[str, Callable[[Key], str | Text]]] = {
    "key": lambda key: key.key_id,
    "principal": lambda key: Text(key.principal),
    "tenant": lambda key: Text(key.tenant),
    "user": lambda key: Text(key.user_id),
    "scopes": lambda key: "\n".join(key.scopes),
    "created": lambda key: _day(key.created_at_ms),
    "valid": _valid,
    "label": lambda key: Text(key.label),
}
_EXTRA: Final = ("user", "created")
_ROOMY: Final = 100
"""Columns of a terminal from which there is room for what is `_EXTRA`."""


def _day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d")
