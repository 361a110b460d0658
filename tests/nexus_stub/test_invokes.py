"""What opening an invoke gives, and for how long (R-39)."""

import pytest

from executa_nexus_stub import NexusStub, StubConfig, create
from executa_nexus_stub.clock import ManualClock
from executa_nexus_stub.grants import PluginGrant, User
from executa_protocol.errors import UsageError
from executa_protocol.nexus import AppContext, Grants, Nexus
from tests.nexus_stub.calls import EVERYTHING, ask, opening, refused_as, tokens


async def test_the_manifest_decides_which_tokens_an_invoke_carries(nexus: Nexus) -> None:
    nothing = await nexus.open_invoke(opening(()))
    sampling = await nexus.open_invoke(opening(("llm.sample",)))
    scoped = await nexus.open_invoke(opening(("aps.scope.user.read",)))
    bare = await nexus.open_invoke(opening(("aps",)))

    assert nothing.sampling_token is nothing.storage_token is None
    assert sampling.sampling_token is not None
    assert sampling.storage_token is None
    assert scoped.storage_token is not None
    assert bare.storage_token is not None
    assert bare.storage_token.scopes == ("user", "tool")


async def test_the_app_scope_needs_an_app_that_the_host_attests(nexus: Nexus) -> None:
    grant = await nexus.open_invoke(opening(app=AppContext("app-1", "planner")))

    assert grant.storage_token is not None
    assert grant.storage_token.scopes == ("user", "tool", "app")


async def test_what_the_user_takes_away_is_gone_from_the_next_invoke_on(
    nexus: Nexus, stub: NexusStub
) -> None:
    before = await nexus.open_invoke(opening())
    stub.directory.change("ada", "brief", sampling=False, agent=False, granted_tools=())
    after = await nexus.open_invoke(opening())
    other = await nexus.open_invoke(opening(user="bob"))

    assert before.grants == Grants(True, True, True, True)
    assert after.grants == Grants(False, False, True, True)
    assert after.sampling_token is None
    assert after.granted_tools == ()
    assert other.grants == before.grants
    assert other.granted_tools == ("*",)


async def test_a_grant_taken_away_holds_for_tokens_that_were_minted_before(
    nexus: Nexus, stub: NexusStub
) -> None:
    sampling, storage = await tokens(nexus)
    stub.directory.change("ada", "brief", sampling=False, storage=False)

    with refused_as("SAMPLING_NOT_GRANTED", 403):
        await nexus.sample(sampling, ask("Hello."))
    with refused_as("STORAGE_NOT_GRANTED", 403):
        await nexus.storage(storage, "storage/get", b'{"key":"a","scope":"tool"}')


async def test_a_plugins_own_credential_overrides_the_users(clock: ManualClock) -> None:
    user = User(
        credentials={"API_KEY": "users", "OTHER": "o"},
        plugins={"brief": PluginGrant(credentials={"API_KEY": "plugins"})},
    )
    stub = NexusStub(StubConfig(users={"ada": user}), clock=clock)
    wanted = ("API_KEY", "OTHER", "UNKNOWN")

    brief = await stub.open_invoke(opening(credentials=wanted))
    notebook = await stub.open_invoke(opening(plugin="notebook", credentials=wanted[:1]))

    assert brief.credentials == {"API_KEY": "plugins", "OTHER": "o"}
    assert notebook.credentials == {"API_KEY": "users"}


async def test_no_secret_is_in_a_repr(clock: ManualClock) -> None:
    user = User(
        credentials={"API_KEY": "s3cret"},
        plugins={"brief": PluginGrant(credentials={"API_KEY": "s3cret"})},
    )
    stub = NexusStub(StubConfig(users={"ada": user}), clock=clock)
    grant = await stub.open_invoke(opening(credentials=("API_KEY",)))
    assert grant.sampling_token is not None

    shown = repr(
        [stub, stub.config, stub.directory, stub.tokens, stub.directory.grant("ada", "brief")]
    ) + repr([grant, grant.sampling_token, user])

    assert "s3cret" not in shown
    assert grant.sampling_token.value not in shown
    assert grant.sampling_token.value.rpartition(".")[2] not in shown


async def test_opening_the_same_invoke_again_is_harmless_and_another_of_its_id_is_refused(
    nexus: Nexus,
) -> None:
    first = opening()
    await nexus.open_invoke(first)
    again = await nexus.open_invoke(first)

    assert again.sampling_token is not None
    with refused_as("INVALID_PARAMS", 409):
        await nexus.open_invoke(
            type(first)("eve", "tool-eve", "eve", "main", first.invoke_id, EVERYTHING)
        )


@pytest.mark.parametrize("invoke_id", ["", "abc", "g" * 32, "0" * 33])
async def test_an_invoke_id_is_32_hexadecimal_digits(nexus: Nexus, invoke_id: str) -> None:
    bad = type(opening())("ada", "tool-a", "a", "main", invoke_id)

    with refused_as("INVALID_PARAMS", 422, match="invoke_id"):
        await nexus.open_invoke(bad)


async def test_a_grant_that_is_changed_leaves_the_settings_as_they_were(clock: ManualClock) -> None:
    config = StubConfig(users={"ada": User()})
    stub = NexusStub(config, clock=clock)

    stub.directory.change("ada", "brief", sampling=False)

    assert config.users["ada"].plugins == {}
    assert (await stub.open_invoke(opening())).grants.sampling is False


async def test_an_unknown_user_may_not_enter_a_closed_stub(clock: ManualClock) -> None:
    stub = NexusStub(StubConfig(users={"ada": User()}, open_to_all=False), clock=clock)

    await stub.open_invoke(opening())
    with refused_as("INVALID_PARAMS", 403, match="user_id"):
        await stub.open_invoke(opening(user="eve"))


async def test_an_invoke_that_nobody_closed_is_forgotten_with_its_tokens(
    stub: NexusStub, clock: ManualClock
) -> None:
    await stub.open_invoke(opening())
    clock.advance(611)
    await stub.open_invoke(opening())

    assert stub.open_invokes == 1
    assert stub.tokens.live_count == 2


async def test_a_closed_invoke_leaves_nothing_behind(nexus: Nexus, stub: NexusStub) -> None:
    for _ in range(50):
        first = opening()
        await nexus.open_invoke(first)
        await nexus.close_invoke(first.invoke_id)
        await nexus.close_invoke(first.invoke_id)

    assert stub.open_invokes == stub.tokens.live_count == 0


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"token_tll": 1}, "token_tll"),
        ({"token_ttl": "long"}, "token_ttl"),
        ({"models": [{"name": "m", "kind": "magic"}]}, "kind"),
        ({"grant": {"sampling": "yes"}}, "sampling"),
        ({"users": {"ada": {"plan": "gold"}}}, "gold"),
        ({"models": [{"name": "m", "kind": "fixture", "path": "missing.jsonl"}]}, "missing.jsonl"),
        ({"models": [{"name": "m", "kind": "openai"}]}, "base_url"),
    ],
)
async def test_a_wrong_setting_is_refused_by_name(values: dict[str, object], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        create(values)
