"""The runtime under test, as the runner sees it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiohttp
from msgspec import Struct

from executa_conformance.actions.scene import ActionsScene
from executa_conformance.cli.running import Ran, Work
from executa_conformance.evidence import Evidence
from executa_conformance.http.client import Client, Secrets, open_session
from executa_conformance.model import Check, NotMet
from executa_conformance.nexus.target import read_url
from executa_conformance.patience import Patience
from executa_conformance.runner import Told, run_checks
from executa_protocol.errors import UsageError

API = "/v1"


class Access(Struct, frozen=True):
    """Where the runtime is, what it calls the kit's plugin, and the keys of two principals."""

    url: str
    plugin: str
    key: str = ""
    other_key: str = ""

    def __repr__(self) -> str:
        return f"Access({self.url!r}, {self.plugin!r})"


class ActionsTarget:
    """A runtime at an address."""

    def __init__(self, session: aiohttp.ClientSession, access: Access, patience: Patience) -> None:
        self._session = session
        self._access = access
        self._patience = patience

    def client(self, evidence: Evidence) -> Client:
        """Requests of one check."""
        secrets = Secrets()
        secrets.add(self._access.key)
        secrets.add(self._access.other_key)
        return Client(self._session, self._access.url, evidence, secrets, self._patience.answer)

    def scene(self, check: Check, evidence: Evidence) -> ActionsScene:
        """See `runner.Target`."""
        return ActionsScene(
            check,
            evidence,
            self.client(evidence),
            self._patience,
            plugin=self._access.plugin,
            key=self._access.key,
            other_key=self._access.other_key,
        )

    async def applies(self, check: Check) -> None:
        """See `runner.Target`: a runtime serves all chapters."""

    async def close(self, scene: ActionsScene) -> None:
        """See `runner.Target`."""
        await scene.close()


@asynccontextmanager
async def open_actions(access: Access, patience: Patience) -> AsyncGenerator[ActionsTarget]:
    """A runtime. Raises `UsageError` if it does not answer, or does not serve the kit's plugin."""
    async with open_session() as session:
        target = ActionsTarget(session, access, patience)
        name = f"{access.plugin}.echo"
        try:
            answer = await target.client(Evidence()).ask(
                "GET", f"/capabilities/{name}", bearer=access.key
            )
        except NotMet as fault:
            msg = f"nothing answers at {access.url}: {fault}"
            raise UsageError(msg) from None
        if answer.status != 200:
            msg = (
                f"there is no capability {name} (status {answer.status}): let the runtime serve "
                "the kit's plugin (python -m executa_conformance.actions.plugin), and set "
                "EXECUTA_API_KEY to a key that may use it"
            )
            raise UsageError(msg)
        yield target


def check_actions(url: str, plugin: str, key: str, other_key: str) -> Work:
    """The work of ``executa check actions``."""

    async def work(
        found: tuple[Check, ...], patience: Patience, jobs: int, told: Told | None
    ) -> Ran:
        access = Access(read_url(url, API), plugin, key, other_key)
        async with open_actions(access, patience) as target:
            return Ran(await run_checks(found, target, patience=patience, jobs=jobs, told=told))

    return work
