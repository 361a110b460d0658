"""A headless Chromium for tests, over its DevTools pipe: no port, no library, nothing fetched."""

import fcntl
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 60.0
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # tests may run as root; it opens one page of our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--no-default-browser-check",
    "--remote-debugging-pipe",
    "--window-size=1280,800",
)


def find() -> str | None:
    """The Chromium of this machine: EXECUTA_TEST_CHROMIUM, or one on the PATH."""
    named = os.environ.get("EXECUTA_TEST_CHROMIUM", "")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One page. `faults` are console errors, uncaught exceptions, and what the browser blocked."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading = reading
        self._writing = writing
        self._rest = b""
        self._last = 0
        self._session = ""
        self._loaded = False
        self.faults: list[str] = []
        self.requests: list[str] = []
        """What it asked the network for, the page itself included."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def open(self, url: str) -> None:
        """Load a page to its end."""
        self._loaded = False
        self.call("Page.navigate", url=url)
        while not self._loaded:
            self._take(self._receive())

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page, awaited."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, expression: str, holds: Callable[[Any], bool]) -> Any:
        """The value of an expression once it is as wanted; looked at with each frame drawn."""
        bound = time.monotonic() + PATIENCE
        while not holds(value := self.evaluate(expression)):
            assert time.monotonic() < bound, f"{expression} stays {value!r}"
            self.evaluate("new Promise(done => requestAnimationFrame(() => done(0)))")
        return value

    def click(self, selector: str) -> None:
        """A real click in the middle of an element."""
        box = self.evaluate(
            f"(() => {{ const b = document.querySelector({json.dumps(selector)})"
            ".getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=box[0],
                y=box[1],
                button="left",
                clickCount=1,
            )

    def press(self, key: str) -> None:
        """A key, as it comes from a keyboard."""
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command of the DevTools protocol, and its answer."""
        self._last += 1
        frame: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if self._session:
            frame["sessionId"] = self._session
        os.write(self._writing, json.dumps(frame).encode() + b"\0")
        while True:
            message = self._receive()
            if message.get("id") == self._last:
                assert "error" not in message, message
                return message["result"]
            self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        params: dict[str, Any] = message.get("params", {})
        match message.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Runtime.exceptionThrown":
                self.faults.append(json.dumps(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.faults.append(json.dumps(params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.faults.append(params["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case _:
                pass

    def _receive(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._reading], [], [], max(0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            data = os.read(self._reading, 1 << 16)
            assert data, "the browser has ended"
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\0")
        return json.loads(line)


@contextmanager
def browser(program: str, profile: Path) -> Generator[Page]:
    """A browser with one page, gone with all its processes at the end."""
    their_in, our_out = os.pipe()
    our_in, their_out = os.pipe()
    nowhere = os.open(os.devnull, os.O_RDWR)
    # The protocol is spoken over descriptors 3 and 4 of the browser; ours may bear these numbers.
    given = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (nowhere, their_in, their_out)]
    for fd in (nowhere, their_in, their_out):
        os.close(fd)
    targets = [(given[0], 0), (given[0], 1), (given[0], 2), (given[1], 3), (given[2], 4)]
    child = os.posix_spawn(
        program,
        [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, fd, number) for fd, number in targets],
        setsid=True,
    )
    for fd in given:
        os.close(fd)
    try:
        yield Page(our_in, our_out)
    finally:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(our_in)
        os.close(our_out)
