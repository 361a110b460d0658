"""Where commands keep things when nobody says: durable work and its keys, what was typed."""

import os
from pathlib import Path
from typing import Final

STORE_ENV: Final = "EXECUTA_STORE"
STORE_HELP: Final = (
    "The file of durable work, beside which its keys are. "
    f"Default: {STORE_ENV}, else executa/actions.db in the user's state folder."
)


def named_store() -> Path | None:
    """The store that the environment names, if it does."""
    given = os.environ.get(STORE_ENV, "")
    return Path(given) if given else None


def default_store() -> Path:
    """The store of this user."""
    named = named_store()
    return state_folder() / "actions.db" if named is None else named


def state_folder() -> Path:
    """Where this user's commands keep what should be there the next time."""
    state = os.environ.get("XDG_STATE_HOME", "")
    folder = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    return folder / "executa"
