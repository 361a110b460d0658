"""Which model answers: the catalogue and the preference rules of the field.

Owns the choice (*observed*): the first hint that is part of an active model's name, in
any case; else the user's own preference; else the cheapest active model. Priorities are
accepted and do not change the choice. It knows nothing of what models do.
"""

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from executa_nexus_stub.models.base import Model, ModelError
from executa_protocol.methods.sampling import ModelPreferences


class Catalogue:
    """The models on offer."""

    def __init__(self, models: Sequence[Model]) -> None:
        self._models = list(models)

    def choose(
        self, preferences: ModelPreferences | UnsetType = UNSET, user_preference: str = ""
    ) -> Model:
        """The model for a call. Raises `ModelError` if none is active."""
        active = sorted(
            (model for model in self._models if model.info.active),
            key=lambda model: (model.info.cost, model.info.name),
        )
        if not active:
            msg = "no model is active"
            raise ModelError(msg, status=503)
        wanted = (
            [hint.name for hint in (preferences.hints or ()) if hint.name] if preferences else []
        )
        for word in [*wanted, user_preference]:
            fitting = [m for m in active if word and word.casefold() in m.info.name.casefold()]
            if fitting:
                return fitting[0]
        return active[0]

    async def aclose(self) -> None:
        """Close every model."""
        for model in self._models:
            await model.aclose()
