"""Which method is served by what."""

from collections.abc import Mapping

from executa_host.agent_sessions import AgentSessions
from executa_host.reverse.agent import AgentCalls
from executa_host.reverse.gateway import Serve
from executa_host.reverse.nested import ToolRunner
from executa_host.reverse.runs import AgentRuns
from executa_host.reverse.sampling import Sampling
from executa_host.reverse.storage import Storage
from executa_host.runtime import Runtime
from executa_protocol.nexus import Nexus

_STORAGE = (
    "storage/get",
    "storage/set",
    "storage/delete",
    "storage/list",
    "files/upload_begin",
    "files/upload_complete",
    "files/download_url",
    "files/list",
    "files/delete",
)


def routes(
    nexus: Nexus, cache: AgentSessions, agent: AgentCalls, runner: ToolRunner, runtime: Runtime
) -> Mapping[str, Serve]:
    """Every method that this host serves."""
    sampling = Sampling(nexus, runtime.bounds)
    runs = AgentRuns(nexus, cache, runner, runtime)
    storage = Storage(nexus, runtime.bounds)
    return {
        "sampling/createMessage": sampling.sample,
        "agent/complete": sampling.complete,
        "agent/session.create": agent.create,
        "agent/session.run": runs.run,
        "agent/session.cancel": agent.cancel,
        "agent/session.history": agent.history,
        "agent/session.delete": agent.delete,
        "agent/session.list": agent.list_own,
        "agent/session.refresh": agent.refresh,
        **dict.fromkeys(_STORAGE, storage.serve),
    }
