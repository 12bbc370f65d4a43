"""The residents of a branch, in two groups: too young to be evicted, and old enough."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from pagein.model.shared_collections import QueueLink, link_items, upside_down, walk
from pagein.policy.eviction.residency_rules import ResidencyRules, ResidentKind
from pagein.policy.eviction.residents import Resident
from pagein.policy.eviction.session_work import SessionWork
from pagein.policy.eviction.waiting_residents import ARGUMENT_KINDS, NONE_WAITING, WaitingResidents


@dataclass(frozen=True, slots=True)
class _OldResident:
    """A resident old enough for eviction.

    since: the call at which it became old enough.
    rule: name of the row that lets it go; "" where no row does.
    """

    resident: Resident
    since: int
    rule: str = ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _OldResidents:
    """The residents that may leave, newest first, with their sums.

    tokens, gain: their tokens, and the tokens saved by their eviction.
    since: sum of gain times the call at which each became old; their rent so far is read * (call * gain - since).
    before: tokens in front of the first of them.
    """

    newest: QueueLink[_OldResident] | None = None
    tokens: int = 0
    gain: int = 0
    since: int = 0
    before: int = 0

    @classmethod
    def of(cls, aged: Sequence[_OldResident]) -> "_OldResidents":
        """Return exactly these residents, in their order."""
        return cls(
            link_items(aged),
            sum(one.resident.tokens for one in aged),
            sum(one.resident.gain for one in aged),
            sum(one.resident.gain * one.since for one in aged),
            min((one.resident.before for one in aged), default=0),
        )

    def with_grown(self, grown: Iterable[tuple[Resident, str]], call: int) -> "_OldResidents":
        """Add the residents that become old at a call, each with the name of its row."""
        newest, tokens, gain, since = self.newest, self.tokens, self.gain, self.since
        before = self.before if newest is not None else None
        for resident, rule in sorted(grown, key=lambda one: one[0].place):
            newest = QueueLink(_OldResident(resident, call, rule), newest)
            tokens += resident.tokens
            gain += resident.gain
            since += resident.gain * call
            before = resident.before if before is None else min(before, resident.before)
        return _OldResidents(newest, tokens, gain, since, before or 0)

    def split(self, test: Callable[[_OldResident], bool], since: int) -> "tuple[_OldResidents, list[Resident]]":
        """Remove and return the residents that pass a test and became old at call number `since` or later."""
        newest, stay, gone = self.newest, list[_OldResident](), list[_OldResident]()
        while newest is not None and newest.last.since >= since:
            (gone if test(newest.last) else stay).append(newest.last)
            newest = newest.before
        for one in reversed(stay):
            newest = QueueLink(one, newest)
        back = [one.resident for one in reversed(gone)]
        before = self.before
        if any(one.before == before for one in back):
            before = min((one.resident.before for one in walk(newest)), default=0)
        return _OldResidents(
            newest,
            self.tokens - sum(one.tokens for one in back),
            self.gain - sum(one.gain for one in back),
            self.since - sum(one.resident.gain * one.since for one in gone),
            before,
        ), back

    def __iter__(self) -> Iterator[_OldResident]:
        """Yield the residents in the order of becoming old enough."""
        yield from walk(upside_down(self.newest))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResidentSet:
    """The residents of a branch; immutable, derived from `EMPTY`, each step O(1) amortised with shared structure.

    call: the upcoming call.
    """

    _waiting: WaitingResidents = NONE_WAITING
    _old: _OldResidents = field(default_factory=_OldResidents)
    call: int = 0

    @property
    def old_tokens(self) -> int:
        """Tokens of the residents that may be evicted."""
        return self._old.tokens

    @property
    def old_gain(self) -> int:
        """Tokens saved by evicting the residents that may be evicted."""
        return self._old.gain

    @property
    def ripe_gain(self) -> int:
        """Tokens saved by evicting the residents that may be evicted where a rewrite is cheap."""
        return self._waiting.ripe_gain

    @property
    def work(self) -> SessionWork:
        """The session's work so far."""
        return self._waiting.work

    def with_work(self, work: SessionWork) -> "ResidentSet":
        """Set the session's work for a window built anew."""
        return replace(self, _waiting=replace(self._waiting, work=work))

    def with_resident(self, resident: Resident, rules: ResidencyRules) -> "ResidentSet":
        """Add a result that entered the window, or the arguments of an answered call."""
        return replace(self, _waiting=self._waiting.with_resident(resident, rules))

    def with_return(self, resident: Resident, rules: ResidencyRules) -> "ResidentSet":
        """Add a formerly absent result at its true age."""
        return replace(self, _waiting=self._waiting.with_resident(resident, rules, newest=False))

    def with_access(
        self, path: str, call: int, rules: ResidencyRules, *, edited: bool, whole: bool = False
    ) -> "ResidentSet":
        """Record an access to a file: its reads, and the arguments of its writes, wait again.

        call: the call that sees the result first.
        whole: the whole file was written or shown, so earlier text of it is needless.
        """
        waiting, again = self._waiting.with_access(path, call, rules, edited=edited, whole=whole)
        now = self._with_work_of(waiting, rules)
        if not again:
            return now
        since = min(again.values())  # none of them could leave before
        return now._waits_again(  # noqa: SLF001 its own kind
            lambda one: one.resident.path == path and one.resident.kind in again, rules, since
        )

    def with_task(self, call: int, rules: ResidencyRules, words: str = "") -> "ResidentSet":
        """Start a new task at call number `call`, after a person spoke these words."""
        return self._with_work_of(self._waiting.with_task(call, rules, words), rules)

    def _with_work_of(self, waiting: WaitingResidents, rules: ResidencyRules) -> "ResidentSet":
        """Set the waiting residents; once the session does more than read, the residents freed by reading alone wait
        again.
        """
        now = replace(self, _waiting=waiting)
        if not self.work.only_reads or waiting.work.only_reads:
            return now
        names = {row.name for row in rules.rows if row.only == "only reads"}
        return now._waits_again(lambda one: one.rule in names, rules)  # noqa: SLF001 its own kind

    def _waits_again(
        self, test: Callable[[_OldResident], bool], rules: ResidencyRules, since: int = 0
    ) -> "ResidentSet":
        old, back = self._old.split(test, since)
        waiting = self._waiting
        for one in back:
            waiting = waiting.with_resident(replace(one, why="") if one.why else one, rules)
        return replace(self, _waiting=waiting, _old=old) if back else self

    def at_call(self, call: int, rules: ResidencyRules) -> "ResidentSet":
        """Advance to the model call number `call`, from 0, and mark the residents old enough for eviction."""
        waiting, grown = self._waiting.at_call(call, rules)
        now = replace(self, _waiting=waiting, call=call)
        if not grown:
            return now
        # arguments that may be masked wholly are no longer listed for their replaced text
        whole = {one.place for one, _ in grown if one.form == "texts"}
        old = now._old  # noqa: SLF001 its own kind
        if whole:
            old = _OldResidents.of(
                [one for one in old if one.resident.form != "replaced" or one.resident.place not in whole]
            )
        return replace(now, _old=old.with_grown(grown, call))

    def without(self, places: Iterable[tuple[int, int]], before: Mapping[int, int] | None = None) -> "ResidentSet":
        """Remove the results at these places, given by message and block.

        before: tokens in front of each message now, for messages that moved. Residents behind them begin to pay rent
            anew.
        """
        gone = frozenset(places)
        stay = [(one.resident.behind(before or {}), one.rule) for one in self._old if one.resident.place not in gone]
        old = _OldResidents().with_grown(stay, self.call)
        return replace(self, _waiting=self._waiting.without(gone, before or {}), _old=old)

    def hasten(self, calls: Collection[str], before: int) -> "ResidentSet":
        """Let the results of these calls be evicted at any age, except results from call `before` or later."""
        old = {(one.place, one.form) for one in self.old()}
        every = (one for one in self.all() if (one.place, one.form) not in old)
        waiting = [one for one in every if one.call_id in calls and one.born < before]
        if not waiting:
            return self
        left = self.without(map(_place, waiting))
        return replace(left, _old=left._old.with_grown(((one, "") for one in waiting), self.call))  # noqa: SLF001 its own kind

    def old(self) -> Iterator[Resident]:
        """Yield the residents that may be evicted, in the order of becoming old enough."""
        yield from (one.resident for one in self._old)

    def ripe(self) -> Iterator[Resident]:
        """Yield the residents that may be evicted where a rewrite is cheap, oldest first."""
        yield from self._waiting.ripe()

    def waiting(self, kind: ResidentKind) -> Iterator[Resident]:
        """Yield the residents of a kind that are too young."""
        yield from self._waiting.of_kind(kind)

    def all(self) -> Iterator[Resident]:
        """Yield every resident, oldest first."""
        # arguments that wait in two queues are yielded once, in the form that is masked in the end
        yield from sorted({one.place: one for one in chain(self.old(), self._waiting)}.values(), key=_place)

    def without_arguments(self) -> "ResidentSet":
        """Return only the results, for requests without masks. O(1) without arguments."""
        if not self._waiting.has_arguments:
            return self
        old = [one for one in self._old if one.resident.kind not in ARGUMENT_KINDS]
        return replace(self, _waiting=self._waiting.without_arguments(), _old=_OldResidents.of(old))

    def first_before(self, *, ripe_too: bool) -> int:
        """Return the tokens in front of the first resident that may be evicted."""
        first = self._waiting.first_ripe_before() if ripe_too else None
        if first is None:
            return self._old.before
        return first if self._old.newest is None else min(self._old.before, first)

    def first_of_all(self, most: int) -> int:
        """Return the tokens in front of the first resident, or `most`.

        O(n), for calls that write the whole prompt anew.
        """
        return min((one.before for one in chain(self.old(), self._waiting)), default=most)

    def rent(self, read: float) -> float:
        """Return the cost of carrying the old residents since each became old enough, this call included."""
        return read * ((self.call + 1) * self._old.gain - self._old.since)


EMPTY: Final = ResidentSet()


def _place(resident: Resident) -> tuple[int, int]:
    return resident.place
