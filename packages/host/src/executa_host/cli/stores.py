"""Where a host keeps its durable work when nobody says: one place for `serve` and `keys`."""

import os
from pathlib import Path
from typing import Final

STORE_ENV: Final = "EXECUTA_STORE"
STORE_HELP: Final = (
    "The file of durable work, beside which its keys are. "
    f"Default: {STORE_ENV}, else executa/actions.db in the user's state folder."
)


def default_store() -> Path:
    """The store of this user."""
    given = os.environ.get(STORE_ENV, "")
    if given:
        return Path(given)
    state = os.environ.get("XDG_STATE_HOME", "")
    folder = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    return folder / "executa" / "actions.db"
