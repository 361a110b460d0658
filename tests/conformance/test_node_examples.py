"""The plugin and the parser in plain Node conform: the kit checks what is not Python, too."""

import asyncio
import shutil
from pathlib import Path

import pytest

from executa_conformance.cli.running import Ran, Work
from executa_conformance.golden.target import check_parser
from executa_conformance.model import Role
from executa_conformance.patience import Patience
from executa_conformance.plugin.target import check_plugin
from executa_conformance.registry import checks

NODE = shutil.which("node") or ""
EXAMPLES = Path(__file__).parents[2] / "examples" / "node"

pytestmark = pytest.mark.skipif(not NODE, reason="there is no node on this machine")


def run(role: Role, work: Work) -> Ran:
    async def whole() -> Ran:
        return await work(checks(role), Patience(), 4, None)

    return asyncio.run(whole())


def test_the_plugin_keeps_every_must_of_what_it_declares() -> None:
    ran = run("plugin", check_plugin((NODE, str(EXAMPLES / "plugin.js")), {}))

    broken = [(one.check, one.message) for one in ran.results if one.word in ("fail", "non-strict")]
    assert not broken
    assert (ran.name, ran.version) == ("words", "1.0.0")
    levels = {one.level for one in ran.results if one.word == "pass"}
    assert {"core", "v2", "sampling", "storage"} <= levels


@pytest.mark.parametrize("strict", [False, True], ids=["tolerant", "strict"])
def test_the_parser_reads_the_golden_lines_of_its_chapters(*, strict: bool) -> None:
    ran = run("parser", check_parser((NODE, str(EXAMPLES / "parser.js")), strict=strict))

    broken = [(one.check, one.message) for one in ran.results if one.word == "fail"]
    assert not broken
    read = {one.level for one in ran.results if one.word == "pass"}
    assert read == {"framing", "wire", "handshake"}
