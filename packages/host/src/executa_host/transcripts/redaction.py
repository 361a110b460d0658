"""Takes secrets out of what is recorded: by the name of a field, by value, and by form.

A line of JSON keeps every byte but those of redacted strings: numbers as they were
written, members in their order. What is looked for: members that hold secrets by their name,
all known secrets in any string or key, bearer tokens, signed tokens, API keys, and the
signatures of URLs; and all of this again in JSON that stands in a string.
"""

import json
import re
from typing import Final, cast

from executa_host.transcripts.secrets import LEAST_CHARS, Secrets

MARK: Final = re.compile(r"\[redacted:[\w.\-]*:\d+\]")
"""What stands in the place of a secret: its name, and a number that tells it from others."""

_DEEPEST: Final = 4
"""How deep JSON in strings of JSON is followed; below it, encoded values are still found."""

_NAMES: Final = (
    "token", "secret", "password", "passwd", "passphrase", "apikey", "accesskey", "secretkey",
    "privatekey", "authorization", "cookie", "bearer", "credential", "credentials",
)  # fmt: skip
"""Ends of names, without separators and in lower case, of members that hold secrets."""

_NAMED: Final = re.compile(
    r"(?:(?:token|secret|password|passwd|passphrase|(?:api|access|secret|private)[._-]?key"
    r"|authorization|cookie|bearer|credentials?|signature|sig|auth|code|policy)[._-]*"
    r"|[?&;]key)[\\\"']*\s*[=:](?!\s*(?:\"\"|null|true|false|\"?\[redacted:)|\d+\])"
)
"""Finds, in lower case, every secret that is one by its name, and a few more."""

_HIDING: Final = ("\\u", "\\/", "\\\\\\\\")
"""Escapes in which a letter can hide, and JSON in strings deeper than secrets are looked for."""

_HINTS: Final = (
    "bearer", "basic", "eyj", "exk", "sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "ghp", "gho", "ghs",
    "xox", "akia", "://",
)  # fmt: skip
"""Pieces in lower case without which nothing is secret by its form alone."""

_FORMS: Final = re.compile(
    r"(?P<bearer>(?i:\b(?:bearer|basic)\s+)(?P<bearer_value>[\w.\-~+/=%]{8,}))"
    r"|(?P<signed>\beyJ[\w-]{6,}\.[\w-]{4,}(?:\.[\w-]*)*)"
    r"|(?P<key>\b(?:exk|sk|pk|rk|ghp|gho|ghs|xox[abp])[_-][\w-]{12,}|\bAKIA[0-9A-Z]{16}\b)"
    r"|(?P<user>://[^\s/@:\"]*:(?P<user_value>[^\s/@\"]+)@)"
    r"|(?P<query>[?&;](?i:[\w.%-]*(?:signature|sig|token|secret|password|api_?key|credential)"
    r"|key|auth|code|policy)=(?P<query_value>[^\s&#;\"'<>]+))"
    r"|(?P<pair>(?<![\w-])(?<!redacted:)(?i:[\w-]{0,60}?(?:token|secret|password|passwd|passphrase|api_?-?key|access_?key"
    r"|private_?key|authorization|credential|cookie)[\"']?)\s*[=:]\s*"
    r"(?!(?i:bearer|basic)\s)[\"']?(?P<pair_value>[^\s,;\"'}\]]{4,}))"
)
_KINDS: Final = ("bearer", "signed", "key", "user", "query", "pair")
_NAME_BEFORE: Final = re.compile(r"[?&;]?([\w.%-]+)")
_LEARNT: Final = 12
"""Characters of a member's value from which it counts as a secret wherever else it stands."""

_STRING: Final = r'"(?:[^"\\]|\\.)*"'
_TOKEN: Final = re.compile(
    rf'(?P<string>{_STRING})|(?P<mark>[\[\]{{}},:])|(?P<other>[^\s\[\]{{}},:"]+)'
)

_CONTEXT: Final = frozenset({"samplingtoken", "storagetoken"})


class Redactor:
    """Redacts for one recording. `secrets` are known beforehand; others are learnt from fields."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    def json(self, text: str) -> str:
        """A line of JSON without secrets; it stays JSON."""
        if not any(escape in text for escape in _HIDING):
            # The common case: at most values that may be replaced where they stand.
            plain = self._secrets.replace_plain(text)
            if plain is not None and not _suspect(plain):
                return plain
        return self._json(text, 0)

    def text(self, text: str, *, cut: bool = False) -> str:
        """Any other text without secrets. `cut` says that it may have been longer."""
        return self._string(text, 0, cut=cut)

    # --- JSON --------------------------------------------------------------------------

    def _json(self, text: str, depth: int) -> str:
        """Walk through the tokens of `text`, which is JSON."""
        self._learn(text)
        out: list[str] = []
        # For each open object or array: whether it is an object, whether all of it is hidden,
        # and the name of an array, which its items have too.
        stack: list[tuple[bool, bool, str]] = []
        position, name, is_key = 0, "", False
        for token in _TOKEN.finditer(text):
            out.append(text[position : token.start()])
            position = token.end()
            word = token[0]
            if token.lastgroup == "mark":
                if word in "[{":
                    is_object = word == "{"
                    hidden = bool(stack) and stack[-1][1]
                    # Of a list, such as a manifest has, the items only declare credentials.
                    is_member = is_object and bool(stack) and stack[-1][0]
                    hidden = hidden or (is_member and _plain(name).endswith("credentials"))
                    stack.append((is_object, hidden, name))
                elif word in "]}" and stack:
                    stack.pop()
                if word != ":":
                    name = "" if not stack or stack[-1][0] else stack[-1][2]
                is_key = word in "{," and bool(stack) and stack[-1][0]
            elif is_key:
                name = _decoded(word)
                out.append(self._encoded(word, name, self._string(name, depth)))
                is_key = False
                continue
            else:
                word = self._value(word, name, depth, whole=bool(stack) and stack[-1][1])
            out.append(word)
        return "".join([*out, text[position:]])

    def _value(self, word: str, name: str, depth: int, *, whole: bool) -> str:
        is_string = word.startswith('"')
        value = _decoded(word) if is_string else word
        if is_string and value and (whole or is_secret(name, value)):
            marked = MARK.fullmatch(value) is not None
            number = self._secrets.number(name, value)
            return word if marked else json.dumps(self._secrets.placeholder(number))
        if is_string:
            return self._encoded(word, value, self._string(value, depth))
        replaced = self._secrets.replace(word) if len(word) > 5 else word
        if replaced == word and word[:1].isdigit() and _plain(name).endswith(_SPELT):
            replaced = self._secrets.placeholder(self._secrets.number(name, word))
        return word if replaced == word else json.dumps(replaced)

    def _learn(self, text: str) -> None:
        """Know the secrets of its members before any string of it is looked at."""
        if _NAMED.search(text.lower()) is None:
            return
        try:
            value: object = json.loads(text)
        except (ValueError, RecursionError):
            return
        waiting: list[tuple[str, bool, object]] = [("", False, value)]
        while waiting:
            name, hidden, each = waiting.pop()
            if isinstance(each, dict):
                inner = hidden or _plain(name).endswith("credentials")
                members = cast("dict[str, object]", each)
                waiting += [(key, inner, item) for key, item in members.items()]
            elif isinstance(each, list):
                items = cast("list[object]", each)
                waiting += [(name if isinstance(i, str) else "", hidden, i) for i in items]
            elif isinstance(each, str) and MARK.search(each) is None:
                if hidden or _plain(name) in _CONTEXT:
                    add = self._secrets.add if hidden else self._secrets.add_token
                    add(name, each)
                elif len(each) >= _LEARNT and " " not in each and is_secret(name, each):
                    self._secrets.add_token(name, each)

    @staticmethod
    def _encoded(word: str, before: str, after: str) -> str:
        """A string as it was written if nothing in it has changed."""
        return word if before == after else json.dumps(after, ensure_ascii=False)

    # --- Strings -------------------------------------------------------------------------

    def _string(self, text: str, depth: int, *, cut: bool = False) -> str:
        if len(text) < LEAST_CHARS:
            return self._secrets.replace(text)
        if depth < _DEEPEST and _looks_like_json(text):
            text = self._json(text, depth + 1)
        text = self._secrets.replace(text, cut=cut)
        return _FORMS.sub(self._formed, text) if _suspect(text) else text

    def _formed(self, match: "re.Match[str]") -> str:
        whole = match[0]
        kind = next(name for name in _KINDS if match[name] is not None)
        group = f"{kind}_value" if f"{kind}_value" in match.re.groupindex else kind
        value = match[group]
        if "[redacted:" in value:  # what stands here has been replaced already
            return whole
        name = _NAME_BEFORE.match(whole) if kind in ("query", "pair") else None
        number = self._secrets.number(kind if name is None else name[1], value)
        start, end = match.start(group) - match.start(), match.end(group) - match.start()
        return whole[:start] + self._secrets.placeholder(number) + whole[end:]


_SPELT: Final = ("password", "passwd", "passphrase", "secret")
"""Names whose numbers are secrets too; of a `token` a number may be a count."""

_FOLDERS: Final = ("pwd", "oldpwd")
"""Where a shell is and was, which is no password."""

_SIGNATURE: Final = re.compile(r"[\w+/=.\-%]{16,}")


def is_secret(name: str, value: str) -> bool:
    """Whether a member of this name with this text holds a secret."""
    plain = _plain(name)
    if plain.endswith(("signature", "sig")):
        return _SIGNATURE.fullmatch(value) is not None
    return plain.endswith(_NAMES)


def is_secret_name(name: str) -> bool:
    """Whether an environment variable of this name holds a secret."""
    plain = _plain(name)
    return plain not in _FOLDERS and plain.endswith((*_NAMES, "key", "pwd", "auth"))


def _suspect(text: str) -> bool:
    """Whether anything here may be secret by its name or form."""
    lowered = text.lower()
    if _NAMED.search(lowered) is not None:
        return True
    return any(hint in lowered for hint in _HINTS) and _FORMS.search(text) is not None


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").replace(".", "").lower()


def _decoded(word: str) -> str:
    if "\\" not in word:
        return word[1:-1]
    try:
        value: object = json.loads(word, strict=False)
    except ValueError:
        return word.strip('"')
    return value if isinstance(value, str) else word


def _looks_like_json(text: str) -> bool:
    first = text.lstrip()[:1]
    if first not in ("{", "[", '"'):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
