"""What a host can say of one plugin of one user."""

from collections import Counter

from msgspec import Struct

from executa_host.memory import resident_by_group
from executa_host.supervisor import Supervisor
from executa_protocol.lifecycle import State
from executa_protocol.limits import STDERR_LINES


class PluginStatus(Struct, frozen=True, kw_only=True):
    """One plugin of one user, at one moment.

    `pid`, `resident_bytes` (the whole process group, None where the system does not tell)
    and `uptime` (seconds since it was ready) are None while no process runs. `protocol` is
    the negotiated version, empty before. `launches` counts processes, `exit_codes` are the
    last ones (negative for a signal), `faults` those in a row (R-25) with the `last_fault`
    in words. `in_flight` counts invokes. `last_words` are the last lines of stderr, of
    the process that runs and of those before it; `stderr_lines` counts all that there were.
    """

    plugin: str
    user_id: str
    state: State
    protocol: str = ""
    pid: int | None = None
    uptime: float | None = None
    resident_bytes: int | None = None
    launches: int = 0
    exit_codes: tuple[int, ...] = ()
    faults: int = 0
    last_fault: str = ""
    in_flight: int = 0
    last_words: tuple[str, ...] = ()
    stderr_lines: int = 0


def status_of(
    supervisor: Supervisor, now: float, resident: Counter[int] | None = None
) -> PluginStatus:
    """The status at `now` of the host's monotonic clock.

    `resident` saves a walk through the system's processes for each of many plugins.
    """
    connection = supervisor.connection
    words, lines = list(supervisor.last_words), supervisor.stderr_lines
    pid = uptime = memory = None
    if connection is not None:
        pid = connection.pid
        memory = (resident_by_group() if resident is None else resident).get(pid)
        words += connection.telling.last_words
        lines += connection.telling.stderr.count
        if supervisor.ready_at is not None:
            uptime = now - supervisor.ready_at
    return PluginStatus(
        plugin=supervisor.spec.name,
        user_id=supervisor.user_id,
        state=supervisor.state,
        protocol=""
        if supervisor.ready_at is None or connection is None
        else connection.negotiated.version,
        pid=pid,
        uptime=uptime,
        resident_bytes=memory,
        launches=supervisor.launches,
        exit_codes=tuple(supervisor.exit_codes),
        faults=supervisor.faults,
        last_fault=supervisor.last_fault,
        in_flight=0 if connection is None else len(connection.invokes),
        last_words=tuple(words)[-STDERR_LINES:],
        stderr_lines=lines,
    )
