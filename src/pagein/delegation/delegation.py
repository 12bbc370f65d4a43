"""Delegation for a session: a question in, a report out."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from pagein.child_models.memoized_models import AnswerMemo
from pagein.delegation.call_tree import PROCESS_CALLS, CallTree, Watch
from pagein.delegation.child_calls import ChildTools
from pagein.delegation.model_calls import USUAL_RETRIES, Retries
from pagein.delegation.operation import Means, Operation
from pagein.engine.recall.child_results import ChildResults
from pagein.errors import BadInput, PageinError
from pagein.policy.delegation.limits import DelegationSettings
from pagein.policy.delegation.reports import Question, Report
from pagein.policy.recall.pattern_search import Pattern, parse_pattern
from pagein.ports import ChildModel

NO_MODEL: Final = "No model available for recursive call. Select a model first: set `child_model` to provider/model, or name one in the call."


@dataclass(frozen=True, slots=True)
class Choice:
    """The models of an operation. names: by depth, from 1; empty if there is none. notes: names that are not known."""

    names: tuple[str, ...]
    notes: tuple[str, ...] = ()


class Delegation:
    """Asks child models on behalf of a session.

    open_model: opens a connection to the child models; called once for each operation, in its event loop.
    session_model: the model of the session, taken if no other is set; "" if it is unknown.
    """

    def __init__(  # noqa: PLR0913 -- its parts, by name
        self,
        results: ChildResults,
        open_model: Callable[[], ChildModel],
        toolset: ChildTools,
        settings: DelegationSettings,
        *,
        session_model: str = "",
        tree: CallTree = PROCESS_CALLS,
        retries: Retries = USUAL_RETRIES,
        memo: AnswerMemo | None = None,
    ) -> None:
        self._means = Means(results, toolset, settings, tree, time.monotonic, _now, _new_id, retries, memo)
        self._open_model = open_model
        self._session_model = session_model

    async def ask(
        self, question: Question, watch: Watch | None = None, begun: Callable[[str], None] = lambda _: None
    ) -> Report:
        """Return the report of an operation. Raises nothing but CancelledError: what goes wrong is told in the report.

        watch: called with each change, for a live view. begun: receives the operation's id, by which it can be cancelled.
        """
        blank = Report(f"{question.kind}-{self._means.new_id()}", question.kind)
        began = self._means.clock()
        try:
            pattern = _check(question)
            model = self._open_model()
        except PageinError as problem:
            return replace(blank, refused=str(problem))
        try:
            choice = choose_models(question.model, model, self._means.settings, self._session_model)
            if not choice.names:
                return replace(blank, refused=" ".join((*choice.notes, NO_MODEL)))
            blank = replace(blank, model=choice.names[0], notes=choice.notes)
            report = await Operation(self._means, question, pattern, blank, choice.names, model).run(watch, begun)
        finally:
            await model.close()
        return replace(report, seconds=self._means.clock() - began)


def _now() -> float:
    return time.time()  # noqa: TID251 -- the rim reads the clock


def _new_id() -> str:
    return secrets.token_hex(6)


def _check(question: Question) -> Pattern | None:
    if not question.instructions.strip():
        raise BadInput("the instructions are empty; say what the child is to find out")
    if not any(one.strip() for one in question.targets):
        raise BadInput("no target is named; give the id of one stored object or more")
    return None if question.find is None else parse_pattern(question.find)


def choose_models(asked: str, model: ChildModel, settings: DelegationSettings, session_model: str) -> Choice:
    """Return the models of an operation: the one asked for, else the one set, else the session's, else the default."""
    notes: list[str] = []

    def first_known(*wanted: str) -> str | None:
        for name in dict.fromkeys((*wanted, session_model, model.default_model)):
            if name and model.knows(name):
                return name
            if name in wanted and name:
                notes.append(f"Child model {name!r} is not known.")
        return None

    def told(name: str) -> str:
        return f"{name} {first} is asked in its place." if first is not None else name

    first = first_known(asked, settings.model_at(1))
    deep = first_known(asked, settings.model_at(2), first or "")
    return Choice(() if first is None else (first, deep or first), tuple(map(told, dict.fromkeys(notes))))
