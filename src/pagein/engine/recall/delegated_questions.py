"""The questions that a session may ask child models, for users of the library."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol, TypedDict, Unpack

from pagein.errors import BadSetting
from pagein.model.delegation_notes import DelegationKind
from pagein.policy.delegation.reports import Confirm, Question, Report


class Delegate(Protocol):
    """What asks child models for a session. `session` is the session itself."""

    def ask_now(self, session: Any, question: Question, /) -> Report:  # noqa: ANN401 -- its class stands above this module
        """Return the report, without an event loop of the caller's."""
        ...

    async def ask(self, session: Any, question: Question, /) -> Report:  # noqa: ANN401 -- as above
        """Return the report."""
        ...


class QuestionOptions(TypedDict, total=False):
    """The options of a question.

    model: `provider/model`; "" for the one that is set.
    find: targets in which this text, or `/expression/flags`, does not stand are not asked about.
    confirm: asks a person above a number of children.
    """

    model: str
    find: str | None
    confirm: Confirm | None


class _Recalls(Protocol):
    @property
    def delegate(self) -> Delegate | None: ...


class DelegatedQuestions(ABC):
    """The methods of a session by which child models are asked about stored objects.

    targets: ids or names of objects. Each method takes the options of `QuestionOptions`.
    Raises BadSetting or HostError for a session without child models; everything else that goes wrong is told in the report.
    """

    def query(self, instructions: str, targets: Sequence[str], **options: Unpack[QuestionOptions]) -> Report:
        """Ask one child about the targets together."""
        return self._ask_now("query", instructions, targets, options)

    async def aquery(self, instructions: str, targets: Sequence[str], **options: Unpack[QuestionOptions]) -> Report:
        """As `query`, for coroutines."""
        return await self._ask("query", instructions, targets, options)

    def batch(self, instructions: str, targets: Sequence[str], **options: Unpack[QuestionOptions]) -> Report:
        """Ask one child about each target, several at the same time. The results have the order of the targets."""
        return self._ask_now("batch", instructions, targets, options)

    async def abatch(self, instructions: str, targets: Sequence[str], **options: Unpack[QuestionOptions]) -> Report:
        """As `batch`, for coroutines."""
        return await self._ask("batch", instructions, targets, options)

    def extract(self, instructions: str, targets: Sequence[str], **options: Unpack[QuestionOptions]) -> Report:
        """Ask a child about the joined targets, and store the answer as an object with references to the targets."""
        return self._ask_now("extract", instructions, targets, options)

    async def aextract(self, instructions: str, targets: Sequence[str], **options: Unpack[QuestionOptions]) -> Report:
        """As `extract`, for coroutines."""
        return await self._ask("extract", instructions, targets, options)

    @property
    @abstractmethod
    def recalls(self) -> _Recalls:
        """The session's recall."""

    @property
    def delegate(self) -> Delegate | None:
        """The port to child models of this session, or None."""
        return self.recalls.delegate

    def _ask_now(
        self, kind: DelegationKind, instructions: str, targets: Sequence[str], options: QuestionOptions
    ) -> Report:
        return self._delegate().ask_now(self, _question(kind, instructions, targets, **options))

    async def _ask(
        self, kind: DelegationKind, instructions: str, targets: Sequence[str], options: QuestionOptions
    ) -> Report:
        return await self._delegate().ask(self, _question(kind, instructions, targets, **options))

    def _delegate(self) -> Delegate:
        delegate = self.delegate
        if delegate is None:
            raise BadSetting("this session has no child models; open it by `pagein.open`")
        return delegate


def _question(
    kind: DelegationKind,
    instructions: str,
    targets: Sequence[str],
    *,
    model: str = "",
    find: str | None = None,
    confirm: Confirm | None = None,
) -> Question:
    named = (targets,) if isinstance(targets, str) else tuple(targets)
    return Question(kind, instructions, named, model, find, confirm=confirm)
