"""Who may ask what, and how lists are read (R-23, R-48)."""

from functools import partial
from typing import Any

from executa_conformance.actions.scene import ActionsScene, identity, refused
from executa_conformance.reading import expect, items, members
from executa_conformance.registry import check

actions = partial(check, role="actions")


@actions("ACTN-015")
async def limits_are_not_clamped(scene: ActionsScene) -> None:
    action = await scene.submit("echo")
    for limit in (0, 1001, -1):
        refused(await scene.get(f"/actions?limit={limit}"), f"limit {limit}", 400, 422)
        path = f"/actions/{identity(action)}/events?limit={limit}"
        refused(await scene.get(path), f"limit {limit} of events", 400, 422)
    for limit in (1, 1000):
        answer = await scene.get(f"/actions?limit={limit}")
        expect(answer.status == 200, f"limit {limit} was answered with {answer}")


@actions("ACTN-016")
async def waits_are_not_clamped(scene: ActionsScene) -> None:
    action = identity(await scene.submit("echo"))
    for wait in ("30.5", "31", "-1"):
        for path in (f"/actions/{action}/result", f"/actions/{action}/events"):
            refused(await scene.get(f"{path}?wait={wait}"), f"a wait of {wait} s", 400, 422)
    answer = await scene.get(f"/actions/{action}/result?wait=30", seconds=30)
    expect(answer.status == 200, f"a wait of 30 s was answered with {answer}")


@actions("ACTN-017")
async def lists_are_pages(scene: ActionsScene) -> None:
    mine = {"transaction": {"transaction_id": scene.mark}}
    made = [identity(await scene.submit("echo", {}, **mine)) for _ in range(5)]
    found: list[str] = []
    cursor = ""
    for _ in range(10):
        more = f"&cursor={cursor}" if cursor else ""
        answer = await scene.get(f"/actions?transaction={scene.mark}&limit=2&order=oldest{more}")
        expect(answer.status == 200, f"a page was answered with {answer}")
        page = [members(one) for one in items(answer.members.get("records"))]
        expect(len(page) <= 2, f"a page of 2 has {len(page)}")
        found += [identity(one) for one in page]
        cursor = str(answer.members.get("next_cursor") or "")
        if not cursor:
            break
    expect(found == made, f"of {made} the pages gave {found}")
    refused(await scene.get("/actions?cursor=made-up"), "a cursor that is none", 400, 422)


@actions("ACTN-018")
async def lists_are_filtered(scene: ActionsScene) -> None:
    session = identity(members((await scene.opened()).get("session")))
    mine: dict[str, Any] = {"transaction": {"transaction_id": scene.mark}}
    one = await scene.submit("echo", {}, **mine, session_id=session)
    other = await scene.submit("fail", {}, **mine)
    await scene.ended(one)
    await scene.ended(other)
    base = f"/actions?transaction={scene.mark}"
    for query, wanted in (
        (f"{base}&state=completed", one),
        (f"{base}&state=failed", other),
        (f"{base}&capability={scene.name('fail')}", other),
        (f"/actions?session={session}", one),
    ):
        answer = await scene.get(query)
        found = [identity(members(row)) for row in items(answer.members.get("records"))]
        expect(found == [identity(wanted)], f"{query} gave {found}")


@actions("ACTN-031")
async def no_key_no_answer(scene: ActionsScene) -> None:
    for path in ("/actions", "/capabilities", "/sessions", f"/actions/act_{'0' * 26}"):
        for key in ("", "no-key-of-anybodys"):
            answer = await scene.client.ask("GET", path, bearer=key)
            expect(answer.status == 401, f"{path} without a key was answered with {answer}")


@actions("ACTN-032")
async def refusals_have_a_form(scene: ActionsScene) -> None:
    body: dict[str, Any] = {"capability": "nobody.nothing", "input": {}}
    refused(await scene.post("/actions", body), "an unknown capability")
    refused(await scene.post("/actions", {"capability": 5}), "a body that does not fit")
    answer = await scene.client.ask("POST", "/actions", raw=b"{", bearer=scene.key)
    refused(answer, "a body that is no JSON")
    refused(await scene.get(f"/sessions/ses_{'0' * 26}"), "an unknown session", 404)
    refused(await scene.get("/no/such/path"), "an unknown path", 404)
