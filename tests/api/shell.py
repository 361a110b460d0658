"""The command line in the test's own process."""

import json
from typing import Any

import pytest

from executa_host.cli import app as application


class Shell:
    """The command line in this process; what it prints is taken from the descriptors."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture
        self.out = ""
        self.err = ""

    def run(self, *words: str) -> int:
        """Run a command, and give its exit code."""
        with pytest.raises(SystemExit) as ended:
            application.main(list(words))
        self.out, self.err = self._capture.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code

    def json(self, *words: str, code: int = 0) -> dict[str, Any]:
        """Run a command for a program: one JSON object on one line."""
        assert self.run(*words, "--json") == code, self.err
        (line,) = self.out.splitlines()
        return json.loads(line)

    @property
    def said(self) -> str:
        """What was said on stderr, however it was wrapped."""
        return " ".join(self.err.split())
