"""The worth of each decision of pagein in a session: the saving expected by the engine, and the saving realised in
the end.

The realised saving of a decision is a difference of two bills: with all decisions before this one and none after, and
with this one added. Cache TTLs and keep-alive requests stay as they were; their own saving is reported apart, as the
difference between append-only and the bill without any decision. So the parts add up to the saving of the session,
recalls and bad luck included. The ledger runs again for each decision; the engine does not, because its decisions are
on record.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.engine.log.state import State
from pagein.engine.prepared_request import WindowRequest
from pagein.engine.session import Session
from pagein.engine.window.decision_inputs import account_after_previews
from pagein.engine.window_stages import moment_of
from pagein.model.bill import DecisionRow, Why
from pagein.model.entries import MASKED_ON_ENTRY, SHOWN_ONCE, EpochEntry
from pagein.model.entries import PreviewEntry as Entered
from pagein.policy.economics.rewrite_cost import (
    CAUTION,
    HELD_BACK,
    USER_TURN_RENT,
    Economics,
    bankroll,
    is_user_turn,
    rewrite_cost,
)
from pagein.policy.eviction.residency import Residency, plan
from pagein.providers.cache_simulator import CacheUsage
from pagein.providers.prices.price_lookup import Prices
from pagein.replay.policies.frontier import Frontier
from pagein.replay.policies.keepalive_bill import Course, KeptLedger
from pagein.replay.policies.ledger import Ledger, Recall
from pagein.replay.prompt.billable_session import BillableSession
from pagein.replay.prompt.model_calls import Block
from pagein.replay.prompt.prompt_changes import NOTHING, Hide, MaskedArguments, PreviewedBlock, ReadAgain, Removable
from pagein.replay.prompt.prompt_sizes import SizedCall

_MOST_WORK: Final = 400_000
"""Maximum number of calls billed again for one session. Above it only the total saving is computed, not the parts."""


@dataclass(frozen=True, slots=True)
class DecisionStep:
    """One recorded decision: an epoch, a batch of previews, or results that are shown once.

    hide: what it changes in the prompt, at call number `hidden_at`.
    expected: saving expected by the engine at this moment, BIT.
    bankroll: the bankroll at this moment, BIT.
    unlikely: for each read that left because an edit would hardly quote it, the counts that said so.
    shown_once: calls with results that stand after the last cache breakpoint at this call; their stubs follow one call later.
    """

    call: int
    at: float
    reason: str
    hide: Hide
    expected: float
    bankroll: float
    hidden_at: int
    shown_once: tuple[str, ...] = ()
    unlikely: tuple[str, ...] = ()


@dataclass(slots=True)
class Steps:
    """The decisions of a session under a policy, collected during the replay."""

    residency: Residency
    all: list[DecisionStep] = field(default_factory=list)

    def note(
        self, sized: SizedCall, hide: Hide, prepared: WindowRequest, session: Session, prices: Economics | None
    ) -> None:
        """Record the decision made at this call under these prices.

        Call this right after the decision: the expected saving is read from the newest entries of the journal.
        """
        at = sized.call.at
        if hide.previews or hide.rereads:
            self._note_entries(sized, hide, prepared, session, prices)
        if prepared.opened is not None and hide.rewrites:
            state = _before(session, EpochEntry)
            expected = self._saving_expected(state, at, prices)
            hidden = replace(hide, previews=(), rereads=())
            bankroll = _bankroll(state, prices)
            index = sized.call.index
            unlikely = tuple(one.why for one in prepared.opened.paged if one.why)
            reason = prepared.opened.reason
            self.all.append(DecisionStep(index, at, reason, hidden, expected, bankroll, index, unlikely=unlikely))
        self._note_shown_once(sized, hide, prepared, session, prices)

    def _note_shown_once(
        self, sized: SizedCall, hide: Hide, prepared: WindowRequest, session: Session, prices: Economics | None
    ) -> None:
        """Record the results that a request shows once, and the stubs of those that the previous request showed."""
        at, index, shown = sized.call.at, sized.call.index, prepared.shown_once
        opened = None if prepared.opened is None else prepared.opened.reason
        if opened == MASKED_ON_ENTRY:
            state = session.journal.state_at(session.leaf)
            spared = sum(one.block.tokens - one.tokens for one in hide.masked)
            expected = 0.0 if prices is None else HELD_BACK * prices.write * spared
            hidden = replace(hide, previews=(), rereads=(), tail=0)
            self.all.append(DecisionStep(index, at, opened, hidden, expected, _bankroll(state, prices), index))
        elif hide.is_uncached:
            place = max(number for number, step in enumerate(self.all) if step.shown_once)
            hidden = replace(hide, previews=(), rereads=(), tail=0)
            self.all[place] = replace(self.all[place], hide=hidden, hidden_at=index)
        if shown is not None:
            bankroll = _bankroll(session.journal.state_at(session.leaf), prices)
            step = DecisionStep(index, at, SHOWN_ONCE, NOTHING, shown.expected, bankroll, index, shown.calls)
            self.all.append(step)

    def _note_entries(
        self, sized: SizedCall, hide: Hide, prepared: WindowRequest, session: Session, prices: Economics | None
    ) -> None:
        """Record results that entered in a shorter form: large outputs and repeated reads."""
        state = _before(session, Entered)
        read = {one.block.call_id for one in hide.rereads}
        for reason, entering in (
            ("big output", Hide(previews=hide.previews)),
            ("read again", Hide(rereads=hide.rereads)),
        ):
            paged = tuple(one for one in prepared.previewed if (one.call_id in read) == bool(entering.rereads))
            if entering.previews or entering.rereads:
                after = account_after_previews(state.account, paged, self.residency, state.scale)
                expected = after.saved - state.account.saved
                at, index, bankroll = sized.call.at, sized.call.index, _bankroll(state, prices)
                self.all.append(DecisionStep(index, at, reason, entering, expected, bankroll, index))

    def _saving_expected(self, state: State, at: float, prices: Economics | None) -> float:
        """Return the expected saving: the immediate one, and the future rent by the engine's own rule.

        By the ski-rental rule the future rent is expected to equal the rent paid so far. At a user turn a part of the
        rent is enough to rewrite, so the expectation is larger by the same factor.
        """
        moment = moment_of(state, at)
        if prices is None:
            return 0.0
        planned = plan(state.standing, replace(self.residency, economics=prices), moment, state.account)
        due = USER_TURN_RENT if is_user_turn(moment, prices) else 1.0
        return planned.account.saved - planned.alone.saved + moment.scale * state.standing.rent(prices.read) / due


def _bankroll(state: State, prices: Economics | None) -> float:
    return 0.0 if prices is None else bankroll(state.account, prices)


def _before(session: Session, kind: type[EpochEntry] | type[Entered]) -> State:
    """Return the state in which the latest decision of this kind was made."""
    name = session.leaf
    while name is not None:
        entry = session.journal.entry(name)
        name = entry.parent
        if isinstance(entry.body, kind):
            break
    return session.journal.state_at(name)


def idle(state: State, residency: Residency) -> str:
    """Explain why nothing more was evicted, from the state at the last call of the session."""
    standing, prices = state.standing, residency.economics
    residents = list(standing.all())
    if not residents:
        return f"no result of {residency.min_tokens} tokens and more that may leave was in the window"
    if prices is None or not standing.old_gain:
        return (
            f"of {sum(one.tokens for one in residents):,} tokens that may leave one day, nothing was old enough: "
            f"{residency.rules.ages['keep_calls'].calls} calls, {residency.reads_wait} for reads of files"
        )
    moment = moment_of(state, state.sent_at)
    rent = moment.scale * standing.rent(prices.read)
    cost = rewrite_cost(moment, prices, standing.first_before(ripe_too=False), standing.old_gain)
    if rent <= cost:
        return (
            f"carrying {standing.old_tokens:,} tokens had cost {rent:,.0f} BIT by the last call, "
            f"and taking them out {cost:,.0f}"
        )
    allowed = bankroll(state.account, prices)
    if CAUTION * cost > allowed:
        return f"taking {standing.old_tokens:,} tokens out cost {cost:,.0f} BIT, more than {allowed:,.0f} in hand allow"
    return f"the session ended before {standing.old_tokens:,} tokens left"


class _Rerun:
    """A policy that repeats recorded decisions up to a given number. Cache TTLs stay as recorded."""

    name = "rerun"
    recall: Recall = "slice"
    caches = True

    def __init__(self, steps: Sequence[DecisionStep], frontier: Frontier, course: Course) -> None:
        self._course = course
        self.ttl: int | None = None
        self.exposable = 0.0
        self._steps: dict[int, list[DecisionStep]] = {}
        self._shown = {step.call: step.shown_once for step in steps if step.shown_once}
        for step in steps:
            self._steps.setdefault(step.hidden_at, []).append(step)
        self._frontier = frontier

    def decide(self, sized: SizedCall, ledger: Ledger) -> Hide:
        self.ttl = self._course.ttls.get(sized.call.index)
        self.exposable = self._course.exposable.get(sized.call.index, 0.0)
        notices = self._course.notices.get(sized.call.index, 0.0)
        steps = self._steps.get(sized.call.index, ())
        if sized.opens_segment or any(step.hide.rewrites for step in steps):
            self._frontier.reset()
        shown = self._shown.get(sized.call.index, ())
        if not steps and not shown:
            return Hide(notices=notices) if notices else NOTHING
        residents = {one.call_id: one for one in ledger.resident}
        previews = [
            replace(one, block=residents[one.block.call_id])
            for step in steps
            for one in step.hide.previews
            if one.block.call_id in residents
        ]
        rereads = [
            replace(one, block=residents[one.block.call_id])
            for step in steps
            for one in step.hide.rereads
            if one.block.call_id in residents
        ]
        stubs = [
            (residents[one.call_id], stub)
            for step in steps
            for one, stub in step.hide.stubs
            if one.call_id in residents
        ]
        masked = [
            replace(one, block=ledger.arguments[one.block.call_id])
            for step in steps
            for one in step.hide.masked
            if one.block.call_id in ledger.arguments
        ]
        return Hide(
            stubs,
            previews,
            rereads,
            masked,
            notices,
            reason=steps[-1].reason if steps else SHOWN_ONCE,
            finished=max((step.hide.finished for step in steps), default=0),
            gone=next((replace(step.hide.gone, copies=()) for step in steps if step.hide.gone), None),
            is_uncached=not any(step.hide.rewrites for step in steps),
            tail=min((residents[call].position for call in shown if call in residents), default=0),
        )

    def frontier(self, ledger: Ledger) -> int:
        return self._frontier.position(ledger)

    def note_recall(self, copy: Removable, ledger: Ledger) -> None:  # noqa: ARG002 nothing is decided any more
        return

    def note_usage(self, sized: SizedCall, served: CacheUsage) -> None:  # noqa: ARG002 it was decided
        return

    def keeps(self, sized: SizedCall, answered: Sequence[Block]) -> bool:  # noqa: ARG002 it was decided
        return sized.call.index in self._course.kept_alive

    def note_keepalive(self, sized: SizedCall, at: float, cost: float) -> None:  # noqa: ARG002 it is on record
        return


@dataclass(frozen=True, slots=True)
class DecisionWorth:
    """The inputs for the realised saving of each decision.

    smallest: minimum size of a result that may be evicted, tokens.
    paid: the bill of the session, BIT.
    course: cache TTLs and keep-alive requests of the session.
    """

    recording: BillableSession
    prices: Prices
    smallest: float
    paid: float
    stress: bool = True
    course: Course = field(default_factory=Course)

    def why(self, steps: Sequence[DecisionStep], held: str) -> Why:
        """Return the report on a session. held: the reason why nothing more was evicted."""
        head = self.recording.head
        begin = self.recording.calls.calls[0].at
        appended, bare = self._cost((), Course()), self._cost((), self.course)
        known = len(steps) * len(self.recording.sized) <= _MOST_WORK
        costs = [bare, *(self._cost(steps[:number], self.course) for number in range(1, len(steps)))] if known else []
        costs.append(self.paid)
        decisions = [
            _decision_row(step, step.at - begin, costs[number] - costs[number + 1] if known else None)
            for number, step in enumerate(steps)
        ]
        return Why(
            file=head.file,
            id=head.id,
            source=head.source,
            calls=len(self.recording.sized),
            saved=round(appended - self.paid, 1),
            lifetimes=round(appended - bare, 1),
            decisions=decisions,
            idle=held,
        )

    def _cost(self, steps: Sequence[DecisionStep], course: Course) -> float:
        policy = _Rerun(steps, Frontier(self.smallest), course)
        ledger = KeptLedger(self.recording, policy, self.prices, stress=self.stress, trace=False)
        ledger.run()
        return ledger.tally.cost


def _decision_row(step: DecisionStep, at: float, realised: float | None) -> DecisionRow:
    partly: list[PreviewedBlock | ReadAgain | MaskedArguments] = [
        *step.hide.previews,
        *step.hide.rereads,
        *step.hide.masked,
    ]
    leaving = [one for one, _ in step.hide.stubs] + [one.block for one in partly]
    whole = step.hide.gone
    stays = sum(stub for _, stub in step.hide.stubs) + sum(one.tokens for one in partly)
    return DecisionRow(
        call=step.call,
        at=round(at, 1),
        kind=_kind(step),
        reason=step.reason,
        paged=len(leaving) + (len(whole.ordinals) if whole else 0),
        tokens=round(sum(one.tokens for one in leaving) - stays + (whole.spared if whole else 0)),
        expected=round(step.expected, 1),
        realised=None if realised is None else round(realised, 1),
        bankroll=round(step.bankroll, 1),
        unlikely=list(step.unlikely),
    )


def _kind(step: DecisionStep) -> str:
    if step.shown_once:
        return SHOWN_ONCE
    if step.hide.changes_sent:
        return "epoch"
    return "previews" if step.hide.previews else "rereads"
