"""Answers that come by file, from a real plugin: each fault fails its own call alone (R-12)."""

import os
from pathlib import Path
from typing import Any

import pytest

from executa_protocol import transcript
from executa_protocol.errors import PeerViolation
from executa_protocol.limits import MAX_FILE_TRANSPORT, MIB
from tests.host.conftest import Rig

GOOD = '{"jsonrpc":"2.0","id":$ID,"result":{"success":true,"data":{"by":"file"}}}'


async def _answer(rig: Rig, kind: str = "file", content: str = GOOD, **more: Any) -> Any:
    arguments = {"name": "executa-resp-1.json", "kind": kind, "content": content} | more
    return await rig.host.invoke("raw", "by_file", arguments, timeout=20)


async def _folder(rig: Rig) -> Path:
    return Path((await rig.host.invoke("raw", "whoami")).data["env"]["TMPDIR"])


async def test_an_answer_in_a_file_is_read_and_the_file_deleted(rig: Rig) -> None:
    rig.add_rude()
    assert (await _answer(rig)).data == {"by": "file"}
    folder = await _folder(rig)
    assert list(folder.iterdir()) == []
    await rig.host.stop("raw")
    assert not folder.exists()


async def test_a_result_too_large_for_a_line_comes_by_file(rig: Rig) -> None:
    rig.add_rude()
    text = "x" * (20 * MIB)
    content = f'{{"jsonrpc":"2.0","id":$ID,"result":{{"success":true,"data":"{text}"}}}}'
    big = Path(os.environ.get("TMPDIR", "/tmp")) / f"executa-test-{os.getpid()}.json"  # noqa: S108
    big.write_text(content.replace("$ID", "2"))  # the first call after the handshake
    try:
        outcome = await rig.host.invoke("raw", "by_file", {"name": str(big), "kind": "none"})
        assert outcome.data == text
        assert not big.exists()
    finally:
        big.unlink(missing_ok=True)


async def test_an_error_may_come_by_file_too(rig: Rig) -> None:
    rig.add_rude()
    content = '{"jsonrpc":"2.0","id":$ID,"error":{"code":-32602,"message":"by file"}}'
    with pytest.raises(Exception, match="by file"):
        await _answer(rig, content=content)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"kind": "none"}, "cannot be opened"),
        ({"kind": "fifo"}, "no regular file"),
        ({"kind": "folder"}, "no regular file"),
        ({"kind": "link"}, "cannot be opened"),
        ({"kind": "sparse", "content": str(MAX_FILE_TRANSPORT + 1)}, "cap is"),
        ({"content": GOOD.replace("$ID", "999")}, "another id"),
        ({"content": GOOD.replace("$ID", "true")}, "another id"),
        ({"content": ""}, "empty"),
        ({"content": "not json"}, "no response"),
        ({"content": '{"jsonrpc":"2.0","id":$ID,"method":"x"}'}, "holds a request"),
        ({"content": '{"jsonrpc":"2.0","id":$ID,"__file_transport":"/x"}'}, "pointer again"),
        ({"kind": "none", "name": "/etc/hostname"}, "outside"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
async def test_a_file_that_breaks_a_rule_fails_its_call_alone(
    rig: Rig, arguments: dict[str, Any], told: str
) -> None:
    rig.add_rude()
    with pytest.raises(PeerViolation, match=told):
        await _answer(rig, **arguments)
    assert (await rig.host.invoke("raw", "echo", {"value": {}})).success


async def test_a_file_that_broke_a_rule_is_left_until_the_plugin_stops(rig: Rig) -> None:
    rig.add_rude()
    with pytest.raises(PeerViolation):
        await _answer(rig, content="not json")
    folder = await _folder(rig)
    assert [path.name for path in folder.iterdir()] == ["executa-resp-1.json"]
    await rig.host.stop("raw")
    assert not folder.exists()


async def test_the_older_pointer_is_read_in_tolerant_mode(rig: Rig) -> None:
    rig.add_rude()
    assert (await _answer(rig, key="__trans_file__")).data == {"by": "file"}
    assert any("WIRE-005" in event.message for event in rig.seen(transcript.Noise))


async def test_a_plugin_whose_files_the_host_cannot_see_is_offered_none(rig: Rig) -> None:
    rig.add_rude(file_transport=False)
    with pytest.raises(PeerViolation, match="not offered"):
        await _answer(rig)
