"""Where commands keep things when nobody says: durable work and its keys, what was typed."""

import os
import tomllib
from pathlib import Path
from typing import Any, Final, cast

STORE_ENV: Final = "EXECUTA_STORE"
STORE_HELP: Final = (
    "The file of durable work, beside which its keys are. "
    f"Default: {STORE_ENV}, else what the configuration says (host.toml in this folder), else "
    "executa/actions.db in the user's state folder."
)
DEFAULT_CONFIG: Final = "host.toml"
"""The configuration of a host that is started without another one."""


def named_store() -> Path | None:
    """The store that the environment names, if it does."""
    given = os.environ.get(STORE_ENV, "")
    return Path(given) if given else None


def user_store() -> Path:
    """The store of this user."""
    return state_folder() / "actions.db"


def default_store() -> Path:
    """The store that a host which is started in this folder would have."""
    return named_store() or _configured() or user_store()


def _configured() -> Path | None:
    """The store of the configuration in this folder. What is wrong with it tells the host."""
    file = Path(DEFAULT_CONFIG).absolute()
    try:
        values: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return None
    actions = values.get("actions")
    store = cast("dict[str, Any]", actions).get("store") if isinstance(actions, dict) else None
    return file.parent / Path(store).expanduser() if isinstance(store, str) and store else None


def state_folder() -> Path:
    """Where this user's commands keep what should be there the next time."""
    state = os.environ.get("XDG_STATE_HOME", "")
    folder = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    return folder / "executa"
