"""The command without the libraries of its extra."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("library", ["cyclopts", "rich"])
def test_without_a_library_of_the_extra_it_says_how_to_install_it(library: str) -> None:
    code = f"import sys; sys.modules[{library!r}] = None; from executa_host.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode == 2
    assert done.stderr == (
        f'the executa command needs {library}: pip install "executa-host[cli]"\n'
    )
