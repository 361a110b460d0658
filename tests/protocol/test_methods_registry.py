"""The table of methods: who calls what, what unlocks it, and how it is refused."""

import pytest
from msgspec import UNSET

from executa_protocol import limits
from executa_protocol.codes import by_symbol
from executa_protocol.errors import StrictRefusal
from executa_protocol.manifest import Manifest
from executa_protocol.methods import METHODS, InvalidParams, MethodInfo, canonical_name, unlocks
from executa_protocol.methods.extensions import OLD_STORAGE_NAMES, wants_found
from executa_protocol.readings import STRICT, TOLERANT
from tests.protocol.reading import Listening

SERVED_REVERSE = [
    info for info in METHODS.values() if info.direction == "plugin_to_host" and info.served
]
REVERSE_REQUESTS = [info for info in SERVED_REVERSE if info.kind == "request"]


def name_of(info: MethodInfo) -> str:
    """For test ids."""
    return info.name


def test_every_method_of_the_seeds_is_there() -> None:
    """Seed lifecycle, Five phases and Manifest declarations; seed agent-sessions, Reverse RPC."""
    assert METHODS.keys() >= {
        "initialize",
        "describe",
        "invoke",
        "health",
        "sampling/createMessage",
        "agent/complete",
        "agent/session.create",
        "agent/session.run",
        "agent/session.cancel",
        "agent/session.history",
        "agent/session.delete",
        "storage/get",
        "files/list",
        "executa/cancel",
        "executa/progress",
    }


def test_the_table_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        METHODS["x"] = METHODS["invoke"]  # type: ignore[index]


def test_every_name_is_its_key() -> None:
    assert all(name == info.name for name, info in METHODS.items())


def test_the_answer_to_describe_is_a_manifest() -> None:
    assert METHODS["describe"].result is Manifest


@pytest.mark.parametrize("info", METHODS.values(), ids=name_of)
def test_every_error_row_that_a_method_names_is_in_the_table(info: MethodInfo) -> None:
    for symbol in (*info.errors, info.refusal, info.invalid):
        assert by_symbol(symbol)


@pytest.mark.parametrize("info", REVERSE_REQUESTS, ids=name_of)
def test_a_reverse_request_knows_how_it_is_read_and_refused(info: MethodInfo) -> None:
    assert info.params is not None
    assert info.result is not None
    assert info.read is not None
    assert info.need
    assert info.timeout
    assert info.refusal in info.errors
    assert info.token is not None


@pytest.mark.parametrize("info", REVERSE_REQUESTS, ids=name_of)
def test_params_that_are_no_object_are_refused_by_the_chapter_s_code(info: MethodInfo) -> None:
    assert info.read is not None
    with pytest.raises(InvalidParams) as caught:
        info.read(b"[]", TOLERANT)
    assert caught.value.error.code == by_symbol(info.invalid).number


@pytest.mark.parametrize("info", REVERSE_REQUESTS, ids=name_of)
def test_absent_params_are_read_as_an_empty_object(info: MethodInfo) -> None:
    assert info.read is not None
    try:
        params = info.read(UNSET, TOLERANT)
    except InvalidParams:
        return  # something is required
    assert isinstance(params, info.params or object)


@pytest.mark.parametrize(
    ("chapter", "code"), [("sampling", -32008), ("agent", -32041), ("storage", -32021)]
)
def test_each_chapter_refuses_with_its_own_code(chapter: str, code: int) -> None:
    """R-22."""
    codes = {info.refusal_row.number for info in REVERSE_REQUESTS if info.chapter == chapter}
    assert codes == {code}


def test_time_outs_are_those_of_the_limits() -> None:
    assert METHODS["initialize"].timeout == limits.INITIALIZE_TIMEOUT
    assert METHODS["agent/session.run"].timeout == limits.AGENT_RUN_TIMEOUT
    assert METHODS["files/list"].timeout == limits.FILES_TIMEOUT


def test_methods_that_are_known_and_not_served_are_refused_as_unmapped() -> None:
    """R-04."""
    unserved = {info.name for info in METHODS.values() if not info.served}
    assert {"image/generate", "web/search", "credentials/getToken", "audio/speak"} <= unserved
    for name in unserved:
        assert METHODS[name].errors == ("UNMAPPED_METHOD",)
        assert METHODS[name].refusal_row.number == -32601


@pytest.mark.parametrize(
    ("declared", "method", "missing"),
    [
        ([], "sampling/createMessage", ("llm.sample",)),
        (["llm.sample"], "sampling/createMessage", ()),
        (["llm.complete"], "sampling/createMessage", ("llm.sample",)),
        (["llm.sample"], "agent/complete", ()),
        ([], "agent/session.run", ("llm.sample", "llm.agent.auto")),
        (["llm.sample"], "agent/session.create", ("llm.agent.auto",)),
        (["llm.agent.auto"], "agent/session.create", ("llm.sample",)),
        (["llm.sample", "llm.agent.fixed"], "agent/session.create", ("llm.agent.auto",)),
        (["llm.sample", "llm.agent.auto"], "agent/session.delete", ()),
        (["aps.kv"], "storage/get", ()),
        (["aps.scope.user.read"], "storage/set", ()),
        (["aps.scope.admin"], "storage/list", ()),
        (["aps.scope.user.read"], "files/list", ("aps.files",)),
        (["aps.kv"], "files/list", ("aps.files",)),
        (["aps.files"], "files/list", ()),
        (["aps.files"], "storage/get", ("aps.kv",)),
        (["aps"], "storage/get", ()),
        (["aps"], "files/delete", ()),
        ([], "executa/progress", ()),
    ],
)
def test_a_method_is_unlocked_by_what_the_manifest_declares(
    declared: list[str], method: str, missing: tuple[str, ...]
) -> None:
    """R-22, R-29; the answer names the exact strings that are missing."""
    assert unlocks(declared, method) == missing


def test_bare_aps_unlocks_nothing_in_strict_mode() -> None:
    """R-29."""
    assert unlocks(["aps"], "storage/get", strict=True) == ("aps.kv",)


def test_an_unknown_method_is_no_question_for_the_table() -> None:
    with pytest.raises(KeyError):
        unlocks([], "no/such")


@pytest.mark.parametrize(("old", "new"), OLD_STORAGE_NAMES.items())
def test_an_older_storage_name_is_read_as_the_current_one(old: str, new: str) -> None:
    reader = Listening()
    assert canonical_name(old, reader) == new
    assert reader.ids == ["STOR-006"]
    assert METHODS[new].served
    with pytest.raises(StrictRefusal, match="STOR-006"):
        canonical_name(old, STRICT)


def test_the_short_name_of_progress_is_read_as_the_full_one() -> None:
    reader = Listening()
    assert canonical_name("progress", reader) == "executa/progress"
    assert reader.ids == ["CORE-008"]


def test_any_other_name_stays_as_it_is() -> None:
    assert canonical_name("storage/get", STRICT) == "storage/get"
    assert canonical_name("no/such", STRICT) == "no/such"


def test_only_the_older_get_answers_found() -> None:
    assert [name for name in OLD_STORAGE_NAMES if wants_found(name)] == ["storage/kv_get"]
