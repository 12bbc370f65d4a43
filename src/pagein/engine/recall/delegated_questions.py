"""The questions that a session may ask child models, for users of the library."""

from collections.abc import Sequence
from typing import Any, Protocol

from pagein.errors import BadSetting
from pagein.policy.delegation.reports import Confirm, Question, Report


class Delegate(Protocol):
    """What asks child models for a session. `session` is the session itself."""

    def ask_now(self, session: Any, question: Question, /) -> Report:  # noqa: ANN401 -- its class stands above this module
        """Return the report, without an event loop of the caller's."""
        ...

    async def ask(self, session: Any, question: Question, /) -> Report:  # noqa: ANN401 -- as above
        """Return the report."""
        ...


class _Recalls(Protocol):
    @property
    def delegate(self) -> Delegate | None: ...


class DelegatedQuestions:
    """The methods of a session by which child models are asked about stored objects.

    targets: ids or names of objects. model: `provider/model`; "" for the one that is set. find: targets in which this text, or
    `/expression/flags`, does not stand are not asked about. confirm: asks a person above a number of children.
    Raises BadSetting or HostError for a session without child models; everything else that goes wrong is told in the report.
    """

    def query(
        self,
        instructions: str,
        targets: Sequence[str],
        *,
        model: str = "",
        find: str | None = None,
        confirm: Confirm | None = None,
    ) -> Report:
        """Ask one child about the targets together."""
        question = Question("query", instructions, _named(targets), model, find, confirm=confirm)
        return self._delegate().ask_now(self, question)

    async def aquery(
        self,
        instructions: str,
        targets: Sequence[str],
        *,
        model: str = "",
        find: str | None = None,
        confirm: Confirm | None = None,
    ) -> Report:
        """As `query`, for coroutines."""
        question = Question("query", instructions, _named(targets), model, find, confirm=confirm)
        return await self._delegate().ask(self, question)

    def batch(
        self,
        instructions: str,
        targets: Sequence[str],
        *,
        model: str = "",
        find: str | None = None,
        confirm: Confirm | None = None,
    ) -> Report:
        """Ask one child about each target, several at the same time. The results have the order of the targets."""
        question = Question("batch", instructions, _named(targets), model, find, confirm=confirm)
        return self._delegate().ask_now(self, question)

    async def abatch(
        self,
        instructions: str,
        targets: Sequence[str],
        *,
        model: str = "",
        find: str | None = None,
        confirm: Confirm | None = None,
    ) -> Report:
        """As `batch`, for coroutines."""
        question = Question("batch", instructions, _named(targets), model, find, confirm=confirm)
        return await self._delegate().ask(self, question)

    def extract(
        self,
        instructions: str,
        targets: Sequence[str],
        *,
        model: str = "",
        find: str | None = None,
        confirm: Confirm | None = None,
    ) -> Report:
        """Ask a child about the joined targets, and store the answer as an object with references to the targets."""
        question = Question("extract", instructions, _named(targets), model, find, confirm=confirm)
        return self._delegate().ask_now(self, question)

    async def aextract(
        self,
        instructions: str,
        targets: Sequence[str],
        *,
        model: str = "",
        find: str | None = None,
        confirm: Confirm | None = None,
    ) -> Report:
        """As `extract`, for coroutines."""
        question = Question("extract", instructions, _named(targets), model, find, confirm=confirm)
        return await self._delegate().ask(self, question)

    @property
    def recalls(self) -> _Recalls:
        """The session's recall."""
        raise NotImplementedError

    @property
    def delegate(self) -> Delegate | None:
        """The port to child models of this session, or None."""
        return self.recalls.delegate

    def _delegate(self) -> Delegate:
        delegate = self.delegate
        if delegate is None:
            raise BadSetting("this session has no child models; open it by `pagein.open`")
        return delegate


def _named(targets: Sequence[str]) -> tuple[str, ...]:
    return (targets,) if isinstance(targets, str) else tuple(targets)
