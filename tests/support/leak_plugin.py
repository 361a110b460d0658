"""The leak check as a pytest plugin: `tests/conftest.py` takes it in, other runs use `-p`.

Owns when `leaks` looks. It is set up before a test's other fixtures and so looks after all of them
are torn down. Tasks are looked for earlier: after the fixtures that use the test's loop, and just
before the loop closes. There is no way to opt out.
"""

import asyncio
from collections.abc import Generator, Iterator

import pytest

from tests.support.leaks import LeakCheck, stray_tasks

_CHECK = pytest.StashKey[LeakCheck]()


@pytest.fixture(autouse=True)
def leak_check(request: pytest.FixtureRequest) -> Iterator[LeakCheck]:
    """Fails the test if it leaves anything behind; `leak_check.watch(peer)` checks more."""
    check = LeakCheck()
    node: pytest.Item = request.node
    node.stash[_CHECK] = check
    yield check
    check.finish()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Report what the fixture found, once pytest has looked at warnings of this test.

    Raised by the fixture, it would put these off: what the leak check's own garbage collection
    turns up would be charged to the next test.
    """
    check = item.stash.get(_CHECK, None)
    try:
        yield
    except BaseException as error:
        if check is not None and check.found:
            error.add_note(_report(check.found))
        raise
    if check is not None:
        _fail_on(check.found)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Put the look for tasks between a loop's last user and its closing.

    Finalizers run last in, first out: the runner's own was added during this set-up, those of the
    async fixtures that use it come later.
    """
    value = yield
    if isinstance(value, asyncio.Runner):
        node: pytest.Item | pytest.Collector = request.node
        fixturedef.addfinalizer(lambda: _end_of_loop(node, value))
    return value


def pytest_configure() -> None:
    """Let uvloop open, before the first test, the pipe that it keeps as long as the process."""
    try:
        import uvloop  # noqa: PLC0415 - only here, and only where it is installed
    except ImportError:
        return
    uvloop.new_event_loop().close()


def _end_of_loop(node: pytest.Item | pytest.Collector, runner: asyncio.Runner) -> None:
    check = node.stash.get(_CHECK, None)
    if check is not None and not check.finished:
        check.end_of_loop(runner)
    else:  # a loop that outlives its tests, shared by a module for instance
        _fail_on(stray_tasks(runner))


def _fail_on(leaks: list[str]) -> None:
    if leaks:
        pytest.fail(_report(leaks), pytrace=False)


def _report(leaks: list[str]) -> str:
    return "\n  ".join(["the test left behind:", *leaks])
