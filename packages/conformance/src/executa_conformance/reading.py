"""Looking into JSON of unknown shape without stumbling, and insisting on what must be there."""

from typing import Any, TypeVar, cast

from executa_conformance.model import NotMet

T = TypeVar("T")


def members(value: object) -> dict[str, Any]:
    """An object's members; none of anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """An array's items; none of anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def code_of(answer: object) -> Any:
    """The code of an error answer; None where there is none."""
    return members(members(answer).get("error")).get("code")


def symbol_of(answer: object) -> str:
    """``errorCode`` of an error answer."""
    data = members(members(members(answer).get("error")).get("data"))
    return str(data.get("errorCode", ""))


def there(value: T | None, message: str) -> T:
    """What is there. Raises `NotMet` if nothing is."""
    if value is None:
        raise NotMet(message)
    return value


def expect(met: bool, message: str) -> None:
    """Raise `NotMet` unless something holds."""
    if not met:
        raise NotMet(message)
