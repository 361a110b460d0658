"""No secret stands in what was redacted, in whatever form; everything else stands as it did."""

import base64
import json
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executa_host.transcripts.redaction import MARK, Redactor, is_secret_name
from executa_host.transcripts.secrets import TOKENS_KEPT, Secrets, merged, variants_of

KNOWN = 'k3y/with+"odd" \\chars é'


def redactor(*values: str) -> Redactor:
    secrets = Secrets()
    for value in values:
        secrets.add("known", value)
    return Redactor(secrets)


def redacted(value: Any, *known: str) -> Any:
    return json.loads(redactor(*known).json(json.dumps(value)))


# --- By value ------------------------------------------------------------------------------

secret_values = st.text(
    st.characters(exclude_categories=["Cs"]).filter(lambda c: c not in "[]:"), min_size=6
).filter(lambda value: not any(value in mark for mark in ("[redacted:known:", "redacted", "known")))

plain_texts = st.text(st.characters(exclude_categories=["Cs"]))


def json_with(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves | st.none() | st.booleans() | st.integers(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(plain_texts, inner, max_size=4),
        max_leaves=8,
    )


FORMS: tuple[Callable[[str], str], ...] = (
    str,
    lambda text: quote(text, safe=""),
    lambda text: base64.b64encode(text.encode()).decode(),
    lambda text: base64.urlsafe_b64encode(b"ab" + text.encode() + b"c").decode(),
    lambda text: json.dumps({"within": [text]}),
    lambda text: json.dumps(json.dumps({text: 1}, ensure_ascii=False)),
    lambda text: text.encode().hex(),
)


@given(st.data(), secret_values, st.booleans())
def test_a_known_secret_stands_nowhere_in_whatever_form(
    data: st.DataObject, secret: str, ascii_only: bool
) -> None:
    form = data.draw(st.sampled_from(FORMS))
    leaf = st.tuples(plain_texts, st.just(form(secret)), plain_texts).map("".join)
    document = data.draw(json_with(leaf | plain_texts))
    for value in (document, {form(secret): document}, [form(secret)]):
        text = redactor(secret).json(json.dumps(value, ensure_ascii=ascii_only))
        json.loads(text)
        assert secret not in "".join(strings_of(json.loads(text)))
        for variant in variants_of(secret):
            assert len(variant) < 8 or variant not in text


def strings_of(value: Any) -> list[str]:
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value)
        return [*pairs, *(text for item in pairs.values() for text in strings_of(item))]
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [text for item in items for text in strings_of(item)]
    return [value] if isinstance(value, str) else []


@given(st.lists(secret_values, min_size=1, max_size=4), plain_texts)
def test_secrets_that_overlap_leave_no_half_behind(values: list[str], between: str) -> None:
    overlapping = [*values, values[0][2:] + between + values[-1][:3]]
    text = redactor(*overlapping).text(f"<{''.join(overlapping)}>")
    assert not any(value in text for value in overlapping)


@given(secret_values, st.integers(min_value=4))
def test_a_text_that_was_cut_within_a_secret_loses_its_beginning_too(
    secret: str, length: int
) -> None:
    length = min(length, len(secret))
    cut = redactor(secret).text(f"said: {secret[:length]}", cut=True)
    assert not cut.endswith(secret[:length])


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=16, max_size=40))
def test_a_token_is_found_as_a_secret_is(value: str) -> None:
    secrets = Secrets()
    secrets.add_token("token", value)
    held = base64.b64encode(b"x" + value.encode()).decode()
    for text in (value, f"see({value})", f"run{value}s", held):
        assert value not in secrets.replace(text)
        assert held not in secrets.replace(text)


def test_old_tokens_are_forgotten_and_recent_ones_are_not() -> None:
    secrets = Secrets()
    tokens = [f"token-number-{n:08d}" for n in range(TOKENS_KEPT + 1)]
    for token in tokens:
        secrets.add_token("token", token)
    assert secrets.replace(tokens[0]) == tokens[0]
    assert all(MARK.fullmatch(secrets.replace(token)) for token in tokens[1:])


def test_the_same_secret_has_the_same_number_everywhere() -> None:
    found = redacted([KNOWN, quote(KNOWN, safe=""), f"x{KNOWN}y"], KNOWN)
    assert found == ["[redacted:known:1]", "[redacted:known:1]", "x[redacted:known:1]y"]


def test_a_short_secret_is_redacted_as_a_whole_string_only() -> None:
    assert redacted(["abc", "abcd"], "abc") == ["[redacted:known:1]", "abcd"]


def test_a_secret_written_as_a_number_is_found() -> None:
    assert redacted({"a": 73946211}, "73946211") == {"a": "[redacted:known:1]"}


def test_merged_spans_cover_each_other() -> None:
    assert list(merged([(4, 6, 2), (0, 5, 1), (6, 7, 3)])) == [(0, 6, 1), (6, 7, 3)]


# --- By field --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "token", "sampling_token", "storageToken", "resume_token", "access-token", "api_key",
        "apiKey", "X-API-Key", "Authorization", "cookie", "Set-Cookie", "password",
        "clientSecret", "private_key", "credentials",
    ],
)  # fmt: skip
def test_a_member_is_redacted_by_its_name(name: str) -> None:
    assert MARK.fullmatch(redacted({"a": [{name: "value"}]})["a"][0][name])


@pytest.mark.parametrize(
    "member",
    [
        {"max_tokens": 5}, {"tokens": "many"}, {"key": "notes"}, {"tokens_used": 12},
        {"token": 7}, {"token": ""}, {"token": None}, {"signature": "def f(x)"},
        {"credentials": [{"name": "API", "description": "the key"}]},
    ],
)  # fmt: skip
def test_what_only_looks_like_a_secret_stays(member: dict[str, Any]) -> None:
    assert redacted(member) == member


def test_credentials_are_redacted_whole_and_known_from_then_on() -> None:
    both = redactor()
    first = json.loads(both.json('{"credentials":{"A":"open sesame","B":{"c":["xyzzy-plugh"]}}}'))
    assert MARK.fullmatch(first["credentials"]["A"])
    assert MARK.fullmatch(first["credentials"]["B"]["c"][0])
    again = both.text("stderr: open sesame and xyzzy-plugh")
    assert "sesame" not in again
    assert "plugh" not in again


def test_a_token_of_an_earlier_member_is_found_in_the_same_line() -> None:
    found = redacted({"echo": "it is 0123456789abcdef", "token": "0123456789abcdef"})
    assert "0123456789abcdef" not in json.dumps(found)


# --- By form -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abcdef123456", "abcdef123456"),
        ("curl -H 'Authorization: Basic dXNlcjpwYXNz'", "dXNlcjpwYXNz"),
        ("got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl", "eyJzdWIiOiJ4In0"),
        ("key exk_0123456789abcdef is new", "exk_0123456789abcdef"),
        ("https://x.example/f?name=a&X-Amz-Signature=deadbeef&b=1", "deadbeef"),
        ("https://x.example/f?expires=9&signature=c0ffee00", "c0ffee00"),
        ("postgres://me:hunter2@db.example/x", "hunter2"),
        ("API_KEY=letmein99 started", "letmein99"),
        ('{"password": "letmein99", cut off', "letmein99"),
    ],
)
def test_secrets_are_known_by_their_form(text: str, secret: str) -> None:
    found = redactor().text(text)
    assert secret not in found
    assert secret not in redacted({"a": text})["a"]
    assert redactor().text(found) == found


def test_the_rest_of_a_signed_url_stays() -> None:
    found = redactor().text("https://x.example/f?name=a&signature=c0ffee00&b=1")
    assert found == "https://x.example/f?name=a&signature=[redacted:signature:1]&b=1"


# --- What stays ----------------------------------------------------------------------------------


@given(json_with(plain_texts))
def test_a_line_without_secrets_stays_byte_for_byte(value: Any) -> None:
    line = json.dumps(value, separators=(", ", " : "))
    assert redactor("a-secret-that-is-not-there").json(line) == line


def test_numbers_and_spaces_beside_a_secret_stay_as_they_were_written() -> None:
    line = '{"a" : 1.10, "token":"x y z", "b":[1e2,12345678901234567890]}'
    assert redactor().json(line) == line.replace('"x y z"', '"[redacted:token:1]"')


@given(json_with(plain_texts | secret_values))
def test_redacting_again_changes_nothing(value: Any) -> None:
    once = redactor(KNOWN).json(json.dumps({"token": "abcdefgh12345678", "v": [value, KNOWN]}))
    assert redactor(KNOWN).json(once) == once


def test_a_long_value_without_spaces_costs_no_quadratic_time() -> None:
    line = json.dumps({"token_data": "a" * 1_000_000, "text": "token" * 50_000})
    assert json.loads(redactor(KNOWN).json(line))["text"] == "token" * 50_000


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "DB_PASSWORD", "GITHUB_TOKEN", "AWS_SECRET"])
def test_variables_are_secret_by_their_names(name: str) -> None:
    assert is_secret_name(name)
    assert not is_secret_name("PATH")
    assert not is_secret_name("OLDPWD")


def test_placeholders_stay_whatever_their_number() -> None:
    secrets = Secrets()
    numbers = [secrets.number("token", f"value {n}") for n in range(12_000)]
    placeholder = secrets.placeholder(numbers[-1])
    again = Redactor(secrets)
    assert again.text(f"token {placeholder} of password={placeholder}").count("redacted") == 2
    line = json.dumps({"token": placeholder, "text": f"api_key={placeholder}"})
    assert again.json(line) == line


@pytest.mark.parametrize("value", ["true", "null", "1234", "12e4", '","', 'a","b', "\\u0041bcd"])
def test_a_secret_that_looks_like_json_leaves_json_behind(value: str) -> None:
    line = json.dumps({"a": value, "b": [True, None, 1234, 12e4, "x", "a", "b"]})
    found = json.loads(redactor(value).json(line))
    assert value not in strings_of(found)
    assert found["b"][0] is True
    assert found["b"][1] is None
