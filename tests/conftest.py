"""What every test has: the leak check. Fixtures of one package's tests live in that folder."""

from tests.support.leak_plugin import (
    leak_check,
    pytest_configure,
    pytest_fixture_setup,
    pytest_runtest_teardown,
)

__all__ = ["leak_check", "pytest_configure", "pytest_fixture_setup", "pytest_runtest_teardown"]
