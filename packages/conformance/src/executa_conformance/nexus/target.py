"""The nexus under test, as the runner sees it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiohttp
from yarl import URL

from executa_conformance.cli.running import Ran, Work
from executa_conformance.evidence import Evidence
from executa_conformance.http.client import Client, Secrets, open_session
from executa_conformance.model import Check, NotMet
from executa_conformance.nexus.scene import NexusScene
from executa_conformance.patience import Patience
from executa_conformance.runner import Told, run_checks
from executa_protocol.errors import UsageError

API = "/api/v1"


class NexusTarget:
    """A nexus at an address, below which the interface's paths lie."""

    def __init__(
        self, session: aiohttp.ClientSession, url: str, key: str, patience: Patience
    ) -> None:
        self._session = session
        self._url = url
        self._key = key
        self._patience = patience

    def client(self, evidence: Evidence) -> Client:
        """Requests of one check, which share no secrets with those of another."""
        secrets = Secrets()
        secrets.add(self._key)
        return Client(self._session, self._url, evidence, secrets, self._patience.answer)

    def scene(self, check: Check, evidence: Evidence) -> NexusScene:
        """See `runner.Target`."""
        return NexusScene(check, evidence, self.client(evidence), self._key, self._patience)

    async def applies(self, check: Check) -> None:
        """See `runner.Target`: a nexus serves all chapters."""

    async def close(self, scene: NexusScene) -> None:
        """See `runner.Target`."""
        await scene.close()


def read_url(text: str, ending: str) -> str:
    """The base address, with `ending` at its end. Raises `UsageError`."""
    try:
        url = URL(text.strip())
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError("--url: expected http://HOST or https://HOST")
    if url.user or url.password or url.query_string or url.fragment:
        raise UsageError("--url: expected no user, password, query or fragment in it")
    base = str(url).rstrip("/")
    return base if base.endswith(ending) else base + ending


@asynccontextmanager
async def open_nexus(url: str, key: str, patience: Patience) -> AsyncGenerator[NexusTarget]:
    """A nexus at `url`. Raises `UsageError` if nothing answers there."""
    base = read_url(url, API)
    async with open_session() as session:
        target = NexusTarget(session, base, key, patience)
        try:
            await target.client(Evidence()).ask("GET", "/")
        except NotMet as fault:
            msg = f"nothing answers at {base}: {fault}"
            raise UsageError(msg) from None
        yield target


def check_nexus(url: str, key: str) -> Work:
    """The work of ``executa check nexus``."""

    async def work(
        found: tuple[Check, ...], patience: Patience, jobs: int, told: Told | None
    ) -> Ran:
        async with open_nexus(url, key, patience) as target:
            return Ran(await run_checks(found, target, patience=patience, jobs=jobs, told=told))

    return work
