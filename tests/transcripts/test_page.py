"""The page of a transcript: opened in a browser, it works, loads nothing and runs nothing else."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.transcripts import chromium
from tests.transcripts.conftest import executa, frame, write

ROWS = "[...document.querySelectorAll('.row[data-kind=invoke] .label')].map(e => e.textContent)"
EVIL = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)> <b>{{script}}"


@pytest.fixture
def page(tmp_path: Path) -> Iterator[chromium.Page]:
    """A page of a headless Chromium, which must end without a fault."""
    program = chromium.find()
    if program is None:
        pytest.skip("there is no Chromium here; EXECUTA_TEST_CHROMIUM names one")
    with chromium.browser(program, tmp_path / "profile") as opened:
        yield opened
        assert opened.faults == []


def open_page(page: chromium.Page, transcript: Path, folder: Path) -> None:
    made = folder / "t.html"
    done = executa("show", str(transcript), "--html", str(made))
    assert done.returncode == 0, done.stderr
    page.open(made.as_uri())


def test_the_demos_invokes_are_there_and_a_click_opens_one(
    page: chromium.Page, demo_transcript: Path, tmp_path: Path
) -> None:
    open_page(page, demo_transcript, tmp_path)
    labels = set(page.evaluate(ROWS))
    assert {"notebook.remember", "brief.brief", "brief.gist", "brief.overreach"} <= labels
    assert page.evaluate("document.querySelector('#details').hidden")
    page.click(".row[data-kind=invoke]")
    details = page.evaluate("document.querySelector('#details').innerText")
    assert "notebook.remember" in details
    exact = page.evaluate("document.querySelector('#details pre').textContent")
    assert exact in demo_transcript.read_text(encoding="utf-8").splitlines()
    own = [url for url in page.requests if not url.startswith("file:") and url != "data:,"]
    assert own == []


def test_it_is_searched_filtered_and_zoomed(
    page: chromium.Page, demo_transcript: Path, tmp_path: Path
) -> None:
    open_page(page, demo_transcript, tmp_path)
    page.press("/")
    for letter in "overreach":
        page.press(letter)
    page.until("document.querySelector('#found').innerText", lambda text: "match" in text)
    shown = page.evaluate("[...document.querySelectorAll('.row .label')].map(e => e.textContent)")
    assert "brief.overreach" in shown
    assert "brief.gist" not in shown
    page.press("Escape")
    page.press("Escape")
    page.click("#errors")
    assert "brief.overreach" in page.evaluate(ROWS)
    page.click("#in")
    assert not page.evaluate("document.querySelector('#window').hidden")
    page.click("#fit")
    assert page.evaluate("document.querySelector('#window').hidden")


def test_it_is_used_by_keyboard_alone(
    page: chromium.Page, demo_transcript: Path, tmp_path: Path
) -> None:
    open_page(page, demo_transcript, tmp_path)
    page.evaluate("document.querySelector('#rows').focus()")
    page.press("e")
    assert page.evaluate("document.querySelector('#details dd.bad').textContent") == "refused"
    active = page.evaluate(
        "document.getElementById(document.querySelector('#rows')"
        ".getAttribute('aria-activedescendant')).getAttribute('aria-selected')"
    )
    assert active == "true"
    page.press("ArrowLeft")
    page.press("ArrowLeft")
    picked = "document.querySelector('.row.pick').getAttribute('aria-expanded')"
    assert page.evaluate(picked) == "false"
    page.press("ArrowRight")
    assert page.evaluate(picked) == "true"
    page.press("Escape")
    assert page.evaluate("document.querySelector('#details').hidden")


def test_nothing_in_a_transcript_runs_as_code(page: chromium.Page, tmp_path: Path) -> None:
    answer = {"jsonrpc": "2.0", "id": 1, "result": {EVIL: EVIL}}
    events = [
        {"event": "invoke", "invoke_id": EVIL, "tool": EVIL},
        frame("out", answer, method=EVIL, invoke_id=EVIL),
        {"event": "stderr", "line": EVIL, "plugin": EVIL},
    ]
    open_page(page, write(tmp_path / "evil.jsonl", events), tmp_path)
    assert page.evaluate("document.title") == "evil.jsonl · Executa transcript"
    assert page.evaluate("document.images.length") == 0
    assert page.evaluate(ROWS) == [f"p.{EVIL}"]
    page.click(".row[data-kind=frame]")
    exact = page.evaluate("document.querySelector('#details pre').textContent")
    assert json.loads(exact)["line"] == answer


@pytest.mark.slow
def test_a_hundred_thousand_frames_stay_usable(page: chromium.Page, tmp_path: Path) -> None:
    """The document holds what is in sight, whatever there is."""
    line = {"jsonrpc": "2.0", "method": "executa/progress", "params": {"note": "x" * 100}}
    events = [frame("out", line | {"number": number}) for number in range(100_000)]
    open_page(page, write(tmp_path / "long.jsonl", events), tmp_path)
    rows = "document.querySelectorAll('.row').length"
    assert 10 < page.evaluate(rows) < 200
    page.evaluate("document.querySelector('#scroll').scrollTop = 1e9")
    last = page.evaluate(
        "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => "
        "done(document.querySelector('#rows').lastChild.id))))"
    )
    assert last == "item-99999"
    assert page.evaluate(rows) < 200
    page.evaluate("document.querySelector('#search').focus()")
    for letter in '"number": 77777':
        page.press(letter)
    found = page.until("document.querySelector('#found').innerText", lambda t: "match" in t)
    assert found == "1 of 100,000 items match"
