"""`executa store`: look after the file of durable work, also while a host uses it."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from cyclopts import App, Parameter

from executa_host.actions.sqlite.looking import back_up_file, check_file
from executa_host.actions.store import StoreError
from executa_host.cli import exits
from executa_host.cli.output import write_json
from executa_host.cli.remote import screen
from executa_host.cli.stores import STORE_HELP, default_store

T = TypeVar("T")

store_app: Final = App(name="store", help="Check or back up the file of a host's durable work.")

Store = Annotated[Path | None, Parameter(help=STORE_HELP)]
Json = Annotated[bool, Parameter(negative="", help="Print one JSON object.")]


@store_app.command
def check(*, store: Store = None, json: Json = False) -> int:
    """Verify that the file keeps its promises: states, logs, receipts, keys, tokens.

    Exit 1 if it does not. A host may run meanwhile.
    """
    path = store or default_store()
    findings = _run(check_file(path))
    code = exits.FAILED if findings else exits.OK
    if json:
        write_json({"ok": not findings, "store": str(path), "findings": findings})
        return code
    for finding in findings:
        screen().print(finding, style="red", markup=False, soft_wrap=True)
    if not findings:
        screen().print(f"{path} keeps its promises", style="green", markup=False, soft_wrap=True)
    return code


@store_app.command
def backup(
    target: Annotated[Path, Parameter(help="Where to; it must not exist yet.")],
    *,
    store: Store = None,
    json: Json = False,
) -> int:
    """Copy the file as it is at one moment. A host may run meanwhile.

    The copy is whole and on disk when this ends. API keys are in a file of their own beside
    the store.
    """
    path = store or default_store()
    _run(back_up_file(path, target))
    size = target.stat().st_size
    if json:
        write_json({"ok": True, "store": str(path), "backup": str(target), "bytes": size})
    else:
        screen().print(f"{target}: {size:,} bytes", markup=False, soft_wrap=True)
    return exits.OK


def _run(work: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(work)
    except StoreError as fault:
        raise exits.Stop(str(fault), exits.USAGE) from None
