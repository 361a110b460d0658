"""Models out of their configuration. Owns nothing but the mapping from kinds to classes."""

from collections.abc import Sequence

from executa_nexus_stub.config import ModelSpec
from executa_nexus_stub.models.base import Model, ModelInfo
from executa_nexus_stub.models.fixture import FixtureModel
from executa_nexus_stub.models.offline import OfflineModel
from executa_nexus_stub.models.recording import RecordingModel


def build_models(specs: Sequence[ModelSpec]) -> list[Model]:
    """The configured models; the offline one if there is none. Raises `UsageError`."""
    return [_build(spec) for spec in specs] or [OfflineModel()]


def _build(spec: ModelSpec) -> Model:
    info = ModelInfo(
        name=spec.name,
        provider=spec.kind,
        cost=spec.cost,
        formats=spec.formats,
        active=spec.active,
    )
    model = _bare(spec, info)
    return RecordingModel(model, spec.record) if spec.record else model


def _bare(spec: ModelSpec, info: ModelInfo) -> Model:
    if spec.kind == "fixture":
        return FixtureModel.from_file(spec.path, info)
    if spec.kind == "openai":
        # Imported late: whoever asks no provider needs no HTTP library.
        from executa_nexus_stub.http.openai import OpenAIModel  # noqa: PLC0415

        return OpenAIModel(spec, info)
    return OfflineModel(info)
