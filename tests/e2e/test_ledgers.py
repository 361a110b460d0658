"""The host's ledgers and nexus's say the same."""

from pathlib import Path

from executa_host import Host
from executa_nexus_stub import NexusStub


async def test_the_sums_of_nexus_equal_the_hosts(
    host: Host, nexus: NexusStub, tmp_path: Path
) -> None:
    file = tmp_path / "river.txt"
    file.write_text("The river rises in the hills. It falls into the sea.\n\n" * 300, "utf-8")
    arguments = {"path": str(file), "question": "Where does the river rise?"}
    outcomes = [
        await host.invoke("notebook", "remember", {"text": "The river rises in the hills."}),
        await host.invoke("brief", "brief", arguments),
        await host.invoke("brief", "gist", {"text": "Bread is made of flour."}),
        await host.invoke("notebook", "recall", {"query": "river"}),
    ]
    assert all(outcome.success for outcome in outcomes)
    ours = {
        name: sum(getattr(outcome.ledger, name) for outcome in outcomes)
        for name in ("sampling_calls", "agent_runs", "frames", "tokens", "storage_calls")
    }
    theirs = {
        name: getattr(nexus.ledger.total("local"), name)
        for name in ("sampling_calls", "agent_runs", "frames", "output_tokens", "storage_calls")
    }
    theirs["tokens"] = theirs.pop("output_tokens")
    assert theirs == ours
    assert all(ours.values())
