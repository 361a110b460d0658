"""What every `executa check` command takes: where reports go, which checks, what is expected.

`reporting` adds these options to a command's own, so that each command states only its own.
"""

import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from executa_conformance.patience import Patience
from executa_conformance.report import Expected
from executa_protocol.errors import UsageError


class Options(Struct, frozen=True, kw_only=True):
    """The common options, as given."""

    json: Path | None = None
    junit: Path | None = None
    sarif: Path | None = None
    html: Path | None = None
    badge: Path | None = None
    only: tuple[str, ...] = ()
    list: bool = False
    strict: bool = False
    expected_failures: Path | None = None
    jobs: int = 4
    patience: float = 1.0
    quiet: bool = False

    def waits(self) -> Patience:
        """The time-outs, multiplied. Raises `UsageError` for a factor that is no factor."""
        if not 0.01 <= self.patience <= 100:
            msg = f"--patience is {self.patience:g}; it multiplies all time-outs, by 0.01 to 100"
            raise UsageError(msg)
        return Patience().scaled(self.patience)

    def expected(self) -> Expected:
        """The expected failures. Raises `UsageError` for a file that cannot be read."""
        try:
            return Expected.read(self.expected_failures)
        except (OSError, UnicodeDecodeError) as fault:
            msg = f"{self.expected_failures} cannot be read: {fault}"
            raise UsageError(msg) from None

    def files(self) -> dict[str, Path]:
        """Where each form of the report is to be written."""
        forms = {name: getattr(self, name) for name in ("json", "junit", "sarif", "html", "badge")}
        return {name: path for name, path in forms.items() if path is not None}


_HELP: Final[Mapping[str, tuple[Any, str]]] = {
    "json": (Path | None, "Write the whole report here, as JSON."),
    "junit": (Path | None, "Write the report here, as JUnit XML."),
    "sarif": (Path | None, "Write the report here, as SARIF 2.1.0."),
    "html": (Path | None, "Write the report here, as one page with all evidence."),
    "badge": (Path | None, "Write a badge here, as SVG."),
    "only": (
        tuple[str, ...],
        "Run only the checks of this requirement, name or level, such as LIFE-*; repeatable.",
    ),
    "list": (bool, "List the checks with their requirements, and run none."),
    "strict": (bool, "Fail what tolerant hosts accept and strict ones refuse."),
    "expected_failures": (
        Path | None,
        "A file of checks that are expected to fail, one a line; one that passes fails the run.",
    ),
    "jobs": (int, "How many checks run at a time."),
    "patience": (float, "Multiplies every time-out; more for a slow machine."),
    "quiet": (bool, "Print nothing but what a failure or --list needs."),
}


def reporting(command: Callable[..., int]) -> Callable[..., int]:
    """A command that takes the common options beside its own, as its argument `options`.

    The signature and the docstring are those of both, for whatever builds a command line
    from them.
    """
    own = inspect.signature(command, eval_str=True)
    common = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=Options.__struct_defaults__[index],
            annotation=_HELP[name][0],
        )
        for index, name in enumerate(Options.__struct_fields__)
    ]
    kept = [each for each in own.parameters.values() if each.name != "options"]
    names = Options.__struct_fields__

    def wrapped(*words: Any, **values: Any) -> int:
        options = Options(**{name: values.pop(name) for name in names if name in values})
        return command(*words, **values, options=options)

    parameters = [*kept, *common]
    wrapped.__name__ = wrapped.__qualname__ = command.__name__
    wrapped.__module__ = command.__module__
    wrapped.__annotations__ = {each.name: each.annotation for each in parameters}
    wrapped.__doc__ = inspect.cleandoc(command.__doc__ or "") + "".join(
        f"\n{name}\n    {text}" for name, (_, text) in _HELP.items()
    )
    signature = Signature(parameters, return_annotation=int)
    setattr(wrapped, "__signature__", signature)  # noqa: B010 - functions declare no such member
    return wrapped
