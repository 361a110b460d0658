"""How long the kit waits, all in one place, so that a test can make it short.

Each wait ends at once when what is waited for comes; the bound is only met by a subject that
fails. `quiet` alone is waited out whole: nothing is to come.
"""

from msgspec import Struct, structs

from executa_protocol.limits import (
    DESCRIBE_TIMEOUT,
    INITIALIZE_TIMEOUT,
    INVOKE_TIMEOUT,
    STOP_GRACE,
)


class Patience(Struct, frozen=True):
    """Seconds.

    `start` is for the first answer of a new process, `answer` for every other, `invoke` for a
    tool, `quiet` for what must not come, `grace` for each rung of a stop (seed lifecycle,
    Shutdown contract), `check` for a whole check. `initialize` and `describe` are the seed's
    own limits (Five phases).
    """

    start: float = 30.0
    initialize: float = INITIALIZE_TIMEOUT
    describe: float = DESCRIBE_TIMEOUT
    answer: float = 15.0
    invoke: float = INVOKE_TIMEOUT
    quiet: float = 0.5
    grace: float = STOP_GRACE
    check: float = 120.0

    def scaled(self, factor: float) -> "Patience":
        """All of them, multiplied."""
        return Patience(**{name: getattr(self, name) * factor for name in self.__struct_fields__})

    def hurried(self) -> "Patience":
        """For a subject that did not answer the first time: it will not later either."""
        return structs.replace(
            self,
            start=min(self.start, self.initialize),
            answer=min(self.answer, self.describe),
            invoke=min(self.invoke, 2 * self.describe),
        )
