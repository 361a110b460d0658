"""No secret of the demo stands in its transcript, nor in anything that is made of it.

The demo runs in this process, so that every token, key and resume token of it can be gathered.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from executa_host.cli.demo import ShowJson
from executa_host.cli.demo_durable import DurablePart
from executa_host.cli.demo_host import HostProcess
from executa_host.cli.demo_steps import Demo
from executa_host.client.sessions import SessionsClient
from executa_host.transcripts.model import build_tree
from executa_host.transcripts.page import make_page
from executa_host.transcripts.reading import read_transcript
from executa_host.transcripts.recorder import Recorder
from executa_host.transcripts.redaction import Redactor
from executa_host.transcripts.secrets import variants_of
from executa_nexus_stub.tokens import TokenAuthority
from tests.support.sources import ROOT

ENVIRONMENT = {"DEMO_API_KEY": "sk-demo-0123456789abcdef", "DEMO_PASSWORD": "correct horse 4711"}


class Silent(ShowJson):
    """The demo, told to nobody."""

    def event(self, event: Any) -> None:
        del event

    def say(self, text: str) -> None:
        del text

    def fact(self, text: str, facts: dict[str, Any]) -> None:
        del text, facts

    def action_event(self, event: Any) -> None:
        del event

    async def follow(self, events: Any) -> None:
        async for _ in events:
            pass


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Every secret of the demos that run from now on, by what it is."""
    found = {value: name for name, value in ENVIRONMENT.items()}
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    mint, key = TokenAuthority.mint, HostProcess.key
    open_session, resume_session = SessionsClient.open, SessionsClient.resume

    def minting(self: TokenAuthority, *args: Any, **options: Any) -> Any:
        token = mint(self, *args, **options)
        found[token.value] = "a token"
        return token

    def keying(self: HostProcess, *args: Any) -> str:
        text = key(self, *args)
        found[text] = "an API key"
        return text

    async def opening(self: SessionsClient, *args: Any, **options: Any) -> Any:
        opened = await open_session(self, *args, **options)
        found[opened.resume_token] = "a resume token"
        return opened

    async def resuming(self: SessionsClient, *args: Any, **options: Any) -> Any:
        resumed = await resume_session(self, *args, **options)
        found[resumed.resume_token] = "a resume token"
        return resumed

    monkeypatch.setattr(TokenAuthority, "mint", minting)
    monkeypatch.setattr(HostProcess, "key", keying)
    monkeypatch.setattr(SessionsClient, "open", opening)
    monkeypatch.setattr(SessionsClient, "resume", resuming)
    return found


def hits(secrets: dict[str, str], text: str) -> list[str]:
    """The secrets in a text, in whatever form, by name."""
    return [
        name
        for value, name in secrets.items()
        for variant in variants_of(value)
        if len(variant) >= 8 and variant in text
    ]


async def test_no_secret_stands_in_the_transcript_of_the_demo_or_its_page(
    tmp_path: Path, secrets: dict[str, str]
) -> None:
    path, part = tmp_path / "t.jsonl", tmp_path / "part.jsonl"
    recorder = Recorder(path, command=("executa", "demo", *ENVIRONMENT.values()))
    totals = await Demo(ROOT / "README.md", Silent(), "direct", "", recorder).run()
    _, failures = await DurablePart(Silent(), part).run()
    recorder.close([part])
    assert (totals["failures"], failures) == ([], [])
    kinds = set(secrets.values())
    assert {"a token", "an API key", "a resume token"} <= kinds
    assert sum(name == "a token" for name in secrets.values()) >= 10
    found = read_transcript(path)
    tree = build_tree(found)
    texts = {"the transcript": path.read_text(), "the page": make_page(found, tree, tree.roots)}
    for where, text in texts.items():
        assert "[redacted:storage_token:" in text
        assert hits(secrets, text) == [], where
    assert os.environ["DEMO_API_KEY"] not in "".join(texts.values())


async def test_a_recording_that_redacts_nothing_would_be_found_out(
    tmp_path: Path, secrets: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the scanner would find nothing anywhere."""

    def unchanged(self: Redactor, text: str) -> str:
        del self
        return text

    monkeypatch.setattr(Redactor, "json", unchanged)
    recorder = Recorder(tmp_path / "t.jsonl")
    await Demo(ROOT / "README.md", Silent(), "direct", "", recorder).run()
    recorder.close()
    assert "a token" in hits(secrets, recorder.path.read_text())
