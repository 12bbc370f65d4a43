"""Interface for answering a model's questions to child models, behind the gateway."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from pagein.gateway.curation.guarded_curator import CuratedRequest
from pagein.ports import ChildModel
from pagein.providers.wire.streams.model_turn import OwnCall, OwnToolResult


class ChildAsker(Protocol):
    """Answers calls of the tools that ask child models. Used in the gateway's event loop."""

    @property
    def names(self) -> frozenset[str]:
        """Names of the tools."""
        ...

    async def answer(self, curated: CuratedRequest, call: OwnCall, models: ChildModel, /) -> OwnToolResult:
        """Answer a call, with the models that the client's own key reaches. Raises only CancelledError."""
        ...


@dataclass(frozen=True, slots=True)
class ChildQuestions:
    """How the questions in one answer are answered. names: of the tools of the asker."""

    names: frozenset[str]
    answer: Callable[[OwnCall], Awaitable[OwnToolResult]]
