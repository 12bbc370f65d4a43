"""Delegation in a session: the tools and the models of children, joined in a delegate."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pagein.child_models.memoized_models import AnswerMemo
from pagein.delegation.call_tree import PROCESS_CALLS, CallTree, Watch
from pagein.engine.session import Session
from pagein.policy.delegation.limits import DelegationSettings
from pagein.policy.delegation.reports import Question, Report
from pagein.ports import ChildModel, ChildTool, Signal
from pagein.tools.calls import Call, Offer
from pagein.tools.peek import PEEK
from pagein.tools.search import SEARCH

if TYPE_CHECKING:
    from pagein.delegation.delegation import Delegation

_OF_CHILDREN: Final = (PEEK, SEARCH)


@dataclass(frozen=True, slots=True)
class ChildToolset:
    """The tools of the children of a session: `peek` and `search`. What a child recalls counts as recalled in the session."""

    session: Session

    @property
    def tools(self) -> tuple[ChildTool, ...]:
        """The tools, as the model is told of them."""
        return tuple(ChildTool(one.name, one.description, one.schema) for one in _OF_CHILDREN)

    def answer(
        self, name: str, arguments: Mapping[str, object], call_id: str, stop: threading.Event, /
    ) -> tuple[str, bool]:
        """Return the text for a call, and whether it is an error."""
        tool: Offer = next(one for one in _OF_CHILDREN if one.name == name)
        result = tool.answer(self.session, Call(arguments, id=call_id, signal=stop))
        return result.text, result.is_error


@dataclass(frozen=True, slots=True)
class SessionDelegate:
    """Asks child models for sessions (see `engine.recall.delegated_questions.Delegate`).

    open_model: opens a connection to the child models. is_set: whether a user chose a child model, so that models are offered
    the tools. memo: answers that are known.
    """

    open_model: Callable[[], ChildModel]
    settings: DelegationSettings = field(default_factory=DelegationSettings)
    is_set: bool = False
    memo: AnswerMemo = field(default_factory=AnswerMemo)
    tree: CallTree = PROCESS_CALLS

    def ask_now(
        self,
        session: Session,
        question: Question,
        /,
        *,
        stop: Signal | None = None,
        watch: Watch | None = None,
        heeds_interrupt: bool = False,
    ) -> Report:
        """Return the report, without an event loop of the caller's (see `delegation.blocking_calls.ask_now`)."""
        from pagein.delegation.blocking_calls import ask_now

        return ask_now(
            self._delegation(session),
            question,
            tree=self.tree,
            stop=stop,
            watch=watch,
            heeds_interrupt=heeds_interrupt,
        )

    async def ask(self, session: Session, question: Question, /) -> Report:
        """Return the report."""
        return await self._delegation(session).ask(question)

    def _delegation(self, session: Session) -> "Delegation":
        from pagein.delegation.delegation import Delegation  # with asyncio, which most commands do without

        return Delegation(
            session.recalls.children,
            self.open_model,
            ChildToolset(session),
            self.settings,
            session_model=session.model or "",
            tree=self.tree,
            memo=self.memo if self.settings.remembers else None,
        )
