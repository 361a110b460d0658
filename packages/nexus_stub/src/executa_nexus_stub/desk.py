"""What every endpoint needs: who is calling, what they may do now, and what it costs them.

Owns the checks that several endpoints share and the entries in the ledger. `core` and
`agent_desk` serve the endpoints; the parts below them know no token.
"""

import contextlib
from collections.abc import Generator

from executa_nexus_stub.clock import Clock
from executa_nexus_stub.grants import Directory, PluginGrant
from executa_nexus_stub.invokes import Invokes
from executa_nexus_stub.ledger import Ledger
from executa_nexus_stub.models.catalogue import Catalogue
from executa_nexus_stub.refusals import refused
from executa_nexus_stub.tokens import Binding, Claims, TokenAuthority


class Desk:
    """The parts that endpoints share."""

    def __init__(
        self,
        clock: Clock,
        directory: Directory,
        tokens: TokenAuthority,
        invokes: Invokes,
        catalogue: Catalogue,
    ) -> None:
        self.clock = clock
        self.directory = directory
        self.tokens = tokens
        self.invokes = invokes
        self.catalogue = catalogue
        self.ledger = Ledger()
        self.calls = 0

    def grant(self, owner: Claims | Binding) -> PluginGrant:
        """What the owner's user allows its plugin, now and not when the token was minted."""
        plugin = owner.plugin if isinstance(owner, Binding) else owner.plugin_name
        return self.directory.grant(owner.user_id, plugin)

    def check_day(self, user_id: str) -> None:
        """Raise `NexusError` (-32002) once the plan's tokens of the day are used."""
        most = self.directory.plan(user_id).tokens_per_day
        if most is not None and self.ledger.spent_today(user_id, self.clock.now()) >= most:
            reason = f"the plan's {most:,} tokens of today are used"
            raise refused("SAMPLING_QUOTA_EXCEEDED", reason)

    def charge(self, claims: Claims, **amounts: int) -> None:
        """Enter what a call consumed (members of `Consumed`)."""
        self.ledger.charge(claims.user_id, claims.plugin_name, claims.tool_invoke_id, **amounts)

    def spend(self, claims: Claims, input_tokens: int, output_tokens: int, **amounts: int) -> None:
        """Enter tokens as well, and count them against the user's day."""
        self.ledger.spend(claims.user_id, input_tokens + output_tokens, self.clock.now())
        self.charge(claims, input_tokens=input_tokens, output_tokens=output_tokens, **amounts)

    @contextlib.contextmanager
    def serving(self) -> Generator[None]:
        """A call is in flight."""
        self.calls += 1
        try:
            yield
        finally:
            self.calls -= 1


def binding_of(claims: Claims) -> Binding:
    """Whom the token speaks for."""
    return Binding(
        claims.user_id, claims.executa_tool_id, claims.tool_invoke_id, claims.plugin_name
    )
