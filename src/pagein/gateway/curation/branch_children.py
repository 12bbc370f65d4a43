"""Answer the questions of a model behind the gateway to child models, on the branch of its request.

Rules of this file
------------------
1. A child reaches the content that the model itself can recall: evicted content of this branch. Other content of the store only
   if its owner lets sessions read each other (`recall_everything`).
2. No lock is held while a child thinks. Each access to the session starts again from the request's place in its journal.
3. The cap per hour holds for all clients of the gateway together, and is checked before each operation.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from pagein.child_models.memoized_models import AnswerMemo
from pagein.delegation.call_tree import PROCESS_CALLS, OperationView
from pagein.delegation.delegation import Delegation
from pagein.engine.engine import Engine
from pagein.engine.prepared_request import PreparedRequest
from pagein.engine.recall.child_results import ChildResultDraft, ChildResults, StoredAnswer, TargetText
from pagein.engine.session import Session
from pagein.errors import NotRecallable, PageinError
from pagein.gateway.curation.guarded_curator import CuratedRequest
from pagein.model.delegation_notes import DelegationKind
from pagein.policy.delegation.answer_texts import report_text
from pagein.policy.delegation.limits import DelegationSettings
from pagein.policy.delegation.reports import Question
from pagein.ports import ChildModel, ChildTool
from pagein.providers.wire.streams.model_turn import OwnCall, OwnToolResult
from pagein.providers.wire.tool_offers import ToolOffer
from pagein.tools.brief import answer_call, offers
from pagein.tools.calls import ArgumentReader
from pagein.tools.delegation_tools import BATCH, EXTRACT, QUERY

T = TypeVar("T")

_HOUR: Final = 3600.0
_TARGETS: Final = {QUERY.name: "target", BATCH.name: "targets", EXTRACT.name: "targets"}
_KINDS: Final[dict[str, DelegationKind]] = {QUERY.name: "query", BATCH.name: "batch", EXTRACT.name: "extract"}
TOOLS: Final = tuple(ToolOffer(one.name, one.description, one.schema) for one in (QUERY, BATCH, EXTRACT))
"""The tools, as models behind the gateway are offered them."""


@dataclass(frozen=True, slots=True)
class _Branch:
    """The session of a request, at the entry after the request."""

    engine: Engine
    prepared: PreparedRequest
    everything: bool

    def behind(self, work: Callable[[Session], T]) -> T:
        return self.engine.behind(self.prepared, work)


class BranchResults(ChildResults):
    """Targets and answers of the children of a request. Thread-safe."""

    def __init__(self, branch: _Branch) -> None:
        # the parts of the session are looked up anew at each step, so nothing of it is held here
        self._branch = branch

    def target(self, name: str) -> TargetText:
        """Return the text of a target that the model may recall."""

        def look(session: Session) -> TargetText:
            own = name.strip(" \t\r\n\"'`")
            if not self._branch.everything and own not in session.recalls.holdings:
                raise NotRecallable("nothing that was taken out of your context has this id")
            return session.recalls.children.target(own)

        return self._branch.behind(look)

    def tokens(self, text: str) -> int:
        """Return the estimated tokens of a text."""
        return self._branch.engine.session(self._branch.prepared.session).recalls.children.tokens(text)

    def keep(self, draft: ChildResultDraft) -> StoredAnswer | None:
        """Store an answer on the branch."""
        return self._branch.behind(lambda session: session.recalls.children.keep(draft))

    def mark_warm(self, kind: DelegationKind, names: Sequence[str], call_id: str) -> str | None:
        """Record on the branch what was asked about."""
        try:
            return self._branch.behind(lambda session: session.recalls.children.mark_warm(kind, names, call_id))
        except PageinError as problem:
            return f"{type(problem).__name__}: {problem}"

    def log(self, record: Mapping[str, object]) -> None:
        """Append a record to the log of the session."""
        self._branch.engine.session(self._branch.prepared.session).recalls.children.log(record)


@dataclass(frozen=True, slots=True)
class BranchTools:
    """The recall tools of children: what the model itself has."""

    branch: _Branch

    @property
    def tools(self) -> tuple[ChildTool, ...]:
        """The tools, as the child is told of them."""
        return tuple(
            ChildTool(one.name, one.description, one.schema) for one in offers(everything=self.branch.everything)
        )

    def answer(
        self, name: str, arguments: Mapping[str, object], call_id: str, stop: threading.Event, /
    ) -> tuple[str, bool]:
        """Return the text for a call, and whether it is an error."""
        del stop
        everything = self.branch.everything
        found = self.branch.behind(
            lambda session: answer_call(session, name, arguments, call_id, everything=everything)
        )
        return found.text, found.is_error


class GatewayChildren:
    """Answers calls of `query`, `batch` and `extract`. Implements `ChildAsker`.

    hour_usd: cap of cost per hour.
    """

    def __init__(
        self,
        engine: Engine,
        settings: DelegationSettings,
        hour_usd: float,
        *,
        everything: bool = False,
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._hour = hour_usd
        self._everything = everything
        self._spent: deque[tuple[float, float]] = deque()
        self._reserved = 0.0
        self._memo = AnswerMemo() if settings.remembers else None

    @property
    def names(self) -> frozenset[str]:
        """Names of the tools."""
        return frozenset(_TARGETS)

    async def answer(self, curated: CuratedRequest, call: OwnCall, models: ChildModel, /) -> OwnToolResult:
        """Answer a call. A failure is an answer, too."""
        prepared = curated.prepared
        question = _question(call)
        if isinstance(question, OwnToolResult):
            return question
        left = self._left()
        if prepared is None or not prepared.session:
            return OwnToolResult(call, "There is nothing to ask about here.", is_error=True)
        if left <= 0:
            words = f"The children of this gateway have cost ${self._hour:.2f} in this hour (`children_hour_usd`)."
            return OwnToolResult(call, f"{words} Search and peek instead.", is_error=True)
        branch = _Branch(self._engine, prepared, self._everything)
        limits = replace(self._settings.limits, usd=min(self._settings.limits.usd, left))
        delegation = Delegation(
            BranchResults(branch),
            lambda: models,
            BranchTools(branch),
            replace(self._settings, limits=limits),
            session_model=models.default_model,
            tree=PROCESS_CALLS,
            memo=self._memo,
        )
        began, spent = time.monotonic(), 0.0
        self._reserved += limits.usd

        def watch(operation: OperationView) -> None:  # a client that goes leaves no report, and has paid all the same
            nonlocal spent
            spent = operation.actual.usd or 0.0

        try:
            report = await delegation.ask(question, watch)
            spent = report.actual.usd or 0.0
            caps = await asyncio.to_thread(branch.behind, lambda session: session.recalls.bounds.caps)
        except Exception as problem:  # noqa: BLE001 -- law 7: the model gets an error result, and continues
            words = f"{type(problem).__name__}" + (f": {problem}" if isinstance(problem, PageinError) else "")
            return OwnToolResult(call, f"The children could not be asked ({words}).", is_error=True)
        finally:
            self._reserved -= limits.usd
            self._spent.append((began, spent))
        has_answer = any(one.status == "success" for one in report.results) or bool(report.unmatched)
        return OwnToolResult(call, report_text(report, caps), is_error=report.refused is not None or not has_answer)

    def _left(self) -> float:
        """Return the dollars that this hour has left."""
        while self._spent and self._spent[0][0] < time.monotonic() - _HOUR:
            self._spent.popleft()
        return self._hour - self._reserved - sum(cost for _, cost in self._spent)


def _question(call: OwnCall) -> Question | OwnToolResult:
    given = ArgumentReader(call.name, call.arguments)
    instructions = given.text("instructions")
    targets = given.texts(_TARGETS[call.name]) or ()
    model = given.text("model") if given.has("model") else ""
    find = given.text("find") if given.has("find") else None
    problem = given.problem()
    if problem is not None:
        return OwnToolResult(call, problem.text, is_error=True)
    return Question(_KINDS[call.name], instructions, targets, model, find, call.id)
