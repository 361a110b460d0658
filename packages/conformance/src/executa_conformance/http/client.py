"""Requests to the side under test, each kept as evidence, without the secrets in them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import msgspec
from msgspec import Struct, field
from yarl import URL

from executa_conformance.evidence import Evidence
from executa_conformance.model import NotMet
from executa_conformance.reading import members
from executa_protocol.sse import SseEvent, SseParser

_WITHHELD: Final = "[withheld]"


class Answer(Struct):
    """What came back. `body` is decoded, None where it is no JSON."""

    status: int
    headers: dict[str, str]
    raw: bytes
    body: Any = None

    @property
    def members(self) -> dict[str, Any]:
        """The body's members; none of anything else than an object."""
        return members(self.body)

    @property
    def error(self) -> dict[str, Any]:
        """The members of ``error``, of a refusal."""
        return members(self.members.get("error"))

    def __str__(self) -> str:
        return f"{self.status} {self.raw[:160].decode(errors='replace')}"


class Secrets(Struct):
    """What must not get into evidence."""

    values: set[str] = field(default_factory=set[str])

    def add(self, value: str) -> str:
        """Withhold a value from now on."""
        if value:
            self.values.add(value)
        return value

    def learn(self, value: object) -> None:
        """Withhold every token in an answer, wherever it stands."""
        for name, member in members(value).items():
            if name == "token" or name.endswith("_token"):
                found = members(member).get("value", member)
                if isinstance(found, str):
                    self.add(found)
            else:
                self.learn(member)

    def clear(self, text: str) -> str:
        """A text without any of them."""
        for value in self.values:
            text = text.replace(value, _WITHHELD)
        return text


class Client:
    """Asks one side. `base` is the address that all paths are below."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        base: str,
        evidence: Evidence,
        secrets: Secrets,
        seconds: float,
    ) -> None:
        self._session = session
        self._base = base.rstrip("/")
        self._evidence = evidence
        self._seconds = seconds
        self.secrets = secrets

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        bearer: str = "",
        raw: bytes | None = None,
        headers: dict[str, str] | None = None,
        seconds: float = 0.0,
    ) -> Answer:
        """One request and its whole answer. Raises `NotMet` if none comes."""
        data, given = self._prepare(method, path, body, bearer, raw)
        try:
            async with (
                asyncio.timeout(self._seconds + seconds),
                self._session.request(
                    method, self._url(path), data=data, headers={**given, **(headers or {})}
                ) as response,
            ):
                content = await response.read()
        except TimeoutError:
            msg = f"no answer to {method} {path} within {self._seconds + seconds:g} s"
            raise NotMet(msg) from None
        except aiohttp.ClientError as fault:
            msg = f"{method} {path} failed: {type(fault).__name__}"
            raise NotMet(msg) from None
        answer = Answer(response.status, dict(response.headers), content, _decoded(content))
        self.secrets.learn(answer.body)
        self._keep("<", f"{answer.status} ", content)
        return answer

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        method: str = "GET",
        body: Any = None,
        bearer: str = "",
        headers: dict[str, str] | None = None,
    ) -> AsyncGenerator["Stream"]:
        """A request whose answer is a stream of events. Raises `NotMet` if it is none."""
        data, given = self._prepare(method, path, body, bearer, None)
        given = {"Accept": "text/event-stream", **given, **(headers or {})}
        try:
            async with asyncio.timeout(self._seconds):
                response = await self._session.request(
                    method, self._url(path), data=data, headers=given
                )
        except (TimeoutError, aiohttp.ClientError) as fault:
            msg = f"{method} {path} gave no stream: {type(fault).__name__}"
            raise NotMet(msg) from None
        try:
            yield Stream(response, self._evidence, self.secrets, self._seconds)
        finally:
            response.close()

    def _prepare(
        self, method: str, path: str, body: Any, bearer: str, raw: bytes | None
    ) -> tuple[bytes | None, dict[str, str]]:
        data = raw if raw is not None or body is None else msgspec.json.encode(body)
        self._keep(">", f"{method} {path} ", data or b"")
        given = {"Content-Type": "application/json"} if data is not None else {}
        if bearer:
            given["Authorization"] = f"Bearer {self.secrets.add(bearer)}"
        return data, given

    def _url(self, path: str) -> URL:
        return URL(path if path.startswith("http") else self._base + path, encoded=True)

    def _keep(self, way: Any, head: str, data: bytes) -> None:
        text = data[:4096].decode(errors="backslashreplace")
        self._evidence.add(way, self.secrets.clear(head + text))


class Stream:
    """A stream of events as it comes."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        evidence: Evidence,
        secrets: Secrets,
        seconds: float,
    ) -> None:
        self.status = response.status
        self.type = response.content_type
        self._response = response
        self._evidence = evidence
        self._secrets = secrets
        self._seconds = seconds
        self._parser = SseParser()
        self._ready: list[SseEvent] = []

    async def read(self) -> bytes:
        """The whole body, of an answer that is no stream of events."""
        async with asyncio.timeout(self._seconds):
            return await self._response.read()

    async def next(self) -> SseEvent | None:
        """The next event; None at the end. Raises `NotMet` if neither comes in time."""
        while not self._ready:
            try:
                async with asyncio.timeout(self._seconds):
                    chunk = await self._response.content.readany()
            except TimeoutError:
                msg = f"the stream is silent for {self._seconds:g} s"
                raise NotMet(msg) from None
            except aiohttp.ClientError as fault:
                msg = f"the stream was cut ({type(fault).__name__})"
                raise NotMet(msg) from None
            if not chunk:
                return None
            self._ready = self._parser.feed(chunk)
        event = self._ready.pop(0)
        text = event.data[:4096].decode(errors="backslashreplace")
        self._evidence.add("<", self._secrets.clear(f"{event.type}: {text}"))
        return event

    async def all(self) -> list[SseEvent]:
        """Every event until the end."""
        found: list[SseEvent] = []
        while (event := await self.next()) is not None:
            found.append(event)
        return found


def _decoded(content: bytes) -> Any:
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError):
        return None


@asynccontextmanager
async def open_session() -> AsyncGenerator[aiohttp.ClientSession]:
    """Connections for the checks; a redirect is an answer like any other."""
    connector = aiohttp.TCPConnector(limit=64, keepalive_timeout=4.0)
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=True
    ) as session:
        yield session
