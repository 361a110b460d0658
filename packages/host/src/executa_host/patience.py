"""How long a host waits for what: the protocol's numbers, each of which may be changed."""

from msgspec import Struct

from executa_protocol import limits


class Patience(Struct, frozen=True, kw_only=True):
    """Time-outs of a host, in seconds.

    `initialize`, `describe`, `describe_onefile` and `health` bound one answer each (seed
    lifecycle, Five phases). `stop` is each rung of the stop ladder, `kill` how long the
    kernel may take after SIGKILL (R-26). `cancel` is how long a late answer to a cancelled
    invoke counts (R-45), `drain` how long a reload waits for running invokes, `cleanup` how
    long tidying up at nexus may take.
    """

    initialize: float = limits.INITIALIZE_TIMEOUT
    describe: float = limits.DESCRIBE_TIMEOUT
    describe_onefile: float = limits.DESCRIBE_TIMEOUT_ONEFILE
    health: float = limits.HEALTH_TIMEOUT
    stop: float = limits.STOP_GRACE
    kill: float = limits.KILL_WAIT
    cancel: float = limits.CANCEL_GRACE
    drain: float = limits.DRAIN_TIMEOUT
    cleanup: float = limits.CLEANUP_TIMEOUT
