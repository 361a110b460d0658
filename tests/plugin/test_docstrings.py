"""Docstrings of the three common styles say what a tool and its parameters are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executa_sdk.docstrings import parse

GOOGLE = """Find notes.

    The best match
    comes first.

    Args:
        query: Words to look for,
            in any order.
        limit (int, optional): How many: at most ten.
        *rest: More words.

    Returns:
        The notes.

    Raises:
        ToolError: When it is raining.
    """

SPHINX = """
    Find notes.

    The best match comes first.

    :param query: Words to look for,
        in any order.
    :param int limit: How many: at most ten.
    :keyword rest: More words.
    :type rest: str
    :returns: The notes.
    """

NUMPY = """Find notes.

    The best match comes first.

    Parameters
    ----------
    query : str
        Words to look for,
        in any order.
    limit : int, optional
        How many: at most ten.
    rest
        More words.

    Returns
    -------
    list
        The notes.
    """


@pytest.mark.parametrize("docstring", [GOOGLE, SPHINX, NUMPY], ids=["google", "sphinx", "numpy"])
def test_each_style_says_the_same(docstring: str) -> None:
    documented = parse(docstring)

    assert documented.description == "Find notes.\n\nThe best match comes first."
    assert documented.parameters == {
        "query": "Words to look for, in any order.",
        "limit": "How many: at most ten.",
        "rest": "More words.",
    }


def test_two_names_of_one_numpy_entry_share_its_text() -> None:
    documented = parse("Add.\n\n    Parameters\n    ----------\n    a, b : int\n        A term.\n")

    assert documented.parameters == {"a": "A term.", "b": "A term."}


def test_a_one_line_docstring_is_the_description() -> None:
    assert parse("Greet someone.").description == "Greet someone."


@pytest.mark.parametrize("docstring", [None, "", "   ", "\n\n"])
def test_no_docstring_says_nothing(docstring: str | None) -> None:
    documented = parse(docstring)

    assert documented.description == ""
    assert documented.parameters == {}


def test_a_colon_in_the_prose_begins_no_section() -> None:
    documented = parse("Say it.\n\n    Note well: arguments: matter.\n")

    assert documented.description == "Say it.\n\nNote well: arguments: matter."
    assert documented.parameters == {}


def test_text_after_a_section_ends_it() -> None:
    documented = parse("Say it.\n\n    Args:\n        a: One.\n\n    Afterwards, rest: well.\n")

    assert documented.parameters == {"a": "One."}


@given(st.text(alphabet="aA :\n\t-*()_.rgsPparameters"))
def test_any_text_can_be_read(text: str) -> None:
    documented = parse(text)

    assert all(name.isidentifier() and value for name, value in documented.parameters.items())
