"""All contenders that run in drivers of their own: where they are, and what they need."""

from importlib import import_module
from importlib.util import find_spec
from typing import Final, cast

from msgspec import Struct

from benchmarks.drivers.contender import Open
from benchmarks.model import Absent


class Entry(Struct, frozen=True):
    """A contender: the module and the name of its `Open`, the packages it cannot do without,
    and whether its event loop is uvloop (``False`` where that is not faster for it)."""

    module: str
    name: str
    needs: tuple[str, ...] = ()
    uvloop: bool = True

    def load(self) -> Open:
        """Its `Open`. Raises `Absent` if a package is not installed."""
        for package in self.needs:
            if find_spec(package) is None:
                msg = f"{package} is not installed; `uv sync --extra bench` brings it"
                raise Absent(msg)
        return cast("Open", getattr(import_module(self.module), self.name))


_HERE: Final = "benchmarks.contenders."
_ANNA: Final = ("anna_app_runtime_local",)

REGISTRY: Final[dict[str, Entry]] = {
    "action store": Entry(_HERE + "store", "open_store"),
    "fdatasync of a page": Entry(_HERE + "store", "open_disk"),
    "api": Entry(_HERE + "api_http", "open_api"),
    "aiohttp echo": Entry(_HERE + "api_http", "open_floor"),
    "a2a-sdk": Entry(_HERE + "a2a_store", "open_tasks", ("a2a", "sqlalchemy", "aiosqlite")),
    "dbos": Entry(_HERE + "dbos_workflows", "open_workflows", ("dbos",)),
    "executa": Entry(_HERE + "executa", "open_executa"),
    "uvloop pipe": Entry(_HERE + "floors", "open_uvloop"),
    "blocking pipe": Entry(_HERE + "floors", "open_blocking"),
    "mcp": Entry(_HERE + "mcp_sdk", "open_low_level", ("mcp",)),
    "fastmcp": Entry(_HERE + "mcp_sdk", "open_fastmcp", ("fastmcp",)),
    "anna-app-runtime-local": Entry(_HERE + "anna", "open_pool", _ANNA, uvloop=False),
    "anna-app-runtime-local, uvloop": Entry(_HERE + "anna", "open_pool", _ANNA),
}
