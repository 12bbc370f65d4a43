"""The residency rules: eviction or residence of each result, decided before each model call.

Results grow old. A result may be evicted after `keep_calls` calls. A read of a file, which an edit may have to quote,
may be evicted when the work on that file is over (`policy.eviction.read_ages`), or after `keep_reads` calls where its
file is not known. Where a rewrite is cheap anyway, because the cache is cold or a person has just spoken, other results
may be evicted after `keep_calls_free`. Evictions go in one batch, oldest first, down to `low_water_tokens`, when the
batch is worth it: `batch_tokens` is the least, and with `economics` the prices decide
(`policy.economics.rewrite_cost`). One batch is one rewrite of the window, which voids the provider's cache behind the
frontier, so batches must be rare.

A group (an assistant message with its results) stays together in the request. Only the content of results is ever
replaced.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final, Literal, TypeAlias, TypedDict

from pagein.errors import BadSetting
from pagein.model.messages import ToolResult
from pagein.policy.economics.rewrite_cost import (
    CAUTION,
    Account,
    Economics,
    Moment,
    account_after_call,
    calls_below,
    cliff_savings,
    falls_short,
    is_cold,
    is_user_turn,
    pays,
    readable,
    rewrite_cost,
    rewritten,
)
from pagein.policy.eviction.argument_masks import ArgumentRules
from pagein.policy.eviction.read_ages import NO_FILES, FileRules, WaitingReads, of_path
from pagein.policy.eviction.residents import STUB_TOKENS, Resident
from pagein.policy.eviction.shared_queues import QueueLink, SharedQueue, link_items, upside_down, walk
from pagein.policy.eviction.written_texts import NO_TEXTS, Texts
from pagein.policy.stubs.previews import Previews
from pagein.policy.stubs.result_stubs import LONGEST

__all__ = [
    "EMPTY",
    "PRICED",
    "STUB_TOKENS",
    "THRIFTY",
    "Epoch",
    "EpochPlan",
    "Residency",
    "Resident",
    "ResidentSet",
    "Thinking",
    "decide",
    "plan",
    "removable",
]


Thinking: TypeAlias = Literal["kept", "leaves"]
"""Fate of thinking behind the frontier of an epoch, on models that do not bind thinking to the messages before it."""


@dataclass(frozen=True, slots=True)
class Residency:
    """Settings of eviction, in tokens and model calls.

    files: how long reads stay, by the last access to their files (`policy.eviction.read_ages`); None: by age alone,
        `keep_reads` calls.
    economics: prices; None decides by `batch_tokens` alone.
    previews: None lets every output enter whole (*lossless only*).
    arguments: when texts in the arguments of calls may be masked; None: never, as where the echo guard cannot hold a
        call back.
    thinking: whether an epoch also removes the thinking of finished turns behind its frontier where the model could
        keep it.
    """

    batch_tokens: int = 40_000
    keep_calls: int = 10
    low_water_tokens: int = 0
    min_tokens: int = 200
    keep_reads: int = 0
    keep_calls_free: int = 0
    files: FileRules | None = None
    economics: Economics | None = None
    previews: Previews | None = None
    arguments: ArgumentRules | None = None
    thinking: Thinking = "kept"

    def __post_init__(self) -> None:
        least_of = {"batch_tokens": 1}
        for name in ("batch_tokens", "keep_calls", "low_water_tokens", "min_tokens", "keep_reads", "keep_calls_free"):
            least = least_of.get(name, 0)
            if getattr(self, name) < least:
                raise BadSetting(f"{name} must be {least} or more, not {getattr(self, name)}")
        if self.low_water_tokens >= self.batch_tokens:
            raise BadSetting(
                f"low_water_tokens must be less than batch_tokens ({self.batch_tokens}), not {self.low_water_tokens}"
            )

    def with_prices_of(self, other: "Residency") -> "Residency":
        """Return these settings at the prices of another value."""
        return replace(self, economics=other.economics)

    @property
    def reads_wait(self) -> int:
        """Minimum calls that a read of an unknown file stays."""
        return max(self.keep_reads, self.keep_calls)

    @property
    def free_wait(self) -> int:
        """Minimum calls that any result but a read stays where a rewrite is cheap."""
        return min(self.keep_calls_free, self.keep_calls) if self.keep_calls_free else self.keep_calls


PRICED: Final = Residency(
    batch_tokens=1,
    keep_calls=5,
    min_tokens=200,
    keep_reads=20,
    keep_calls_free=3,
    files=FileRules(),
    economics=Economics(),
    previews=Previews(),
)
"""Default settings. The figures are from replays of recorded sessions (docs/residency.md)."""

THRIFTY: Final = replace(PRICED, keep_reads=10, files=FileRules(after_edit=3, after_task=4, untouched=12))
"""Settings that put the bill first: reads leave sooner, so more edits have to recall their quotes (docs/residency.md).
"""


@dataclass(frozen=True, slots=True)
class _OldResident:
    """A resident old enough for eviction.

    since: the call at which it became old enough.
    """

    resident: Resident
    since: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResidentSet:
    """The residents of a branch, by age; immutable, derived from `EMPTY`, each step O(1) amortised with shared
    structure.

    old_tokens: tokens of the residents that may be evicted.
    ripe_gain, old_gain: tokens saved by evicting the ripe, the old residents.
    call: the upcoming call.
    """

    # Results wait in `young`, then in `ripe` once a free rewrite may evict them; reads in `files`, or by age in `reads`.
    _young: SharedQueue[Resident] = field(default_factory=SharedQueue)
    _ripe: SharedQueue[Resident] = field(default_factory=SharedQueue)
    _reads: SharedQueue[Resident] = field(default_factory=SharedQueue)
    _files: WaitingReads = NO_FILES
    # Arguments wait in `texts`; arguments with replaced text also wait in `replaced`, by age, for masking of that text.
    _replaced: SharedQueue[Resident] = field(default_factory=SharedQueue)
    _texts: Texts = NO_TEXTS
    # Residents that may be evicted, newest first.
    _old: QueueLink[_OldResident] | None = None
    old_tokens: int = 0
    ripe_gain: int = 0
    old_gain: int = 0
    # Sum over the old of gain times the call at which each grew old: their rent so far is read * (call * gain - this).
    old_since: int = 0
    # Tokens in front of the first of the old.
    old_before: int = 0
    call: int = 0

    def born(self, resident: Resident) -> "ResidentSet":
        """Add a result that entered the window, or the arguments of an answered call."""
        if resident.form == "replaced":
            return replace(self, _replaced=self._replaced.with_item(resident))
        if resident.form == "texts":
            return replace(self, _texts=self._texts.with_arguments(resident))
        if resident.is_read and resident.path:
            return replace(self, _files=self._files.with_read(resident))
        if resident.is_read:
            return replace(self, _reads=self._reads.with_item(resident))
        return replace(self, _young=self._young.with_item(resident))

    def touch(self, path: str, call: int, *, edited: bool, whole: bool = False) -> "ResidentSet":
        """Record an access to a file: its reads, and the arguments of its writes, wait again.

        call: the call that sees the result first.
        whole: the whole file was written or shown, so earlier text of it is needless.
        """
        files, reads_again = self._files.touch(path, call, edited=edited)
        texts, texts_again = self._texts.touch(path, call, whole=whole)
        if files is self._files and texts is self._texts:
            return self
        now = replace(self, _files=files, _texts=texts)
        if not reads_again and not texts_again:
            return now
        aged = list(walk(upside_down(self._old)))
        back = of_path((one.resident for one in aged), path) if reads_again else []
        for one in back:
            files = files.with_read(one)
        written = [one.resident for one in aged if texts_again and _is_text_of(one.resident, path)]
        for one in written:
            texts = texts.with_arguments(one)
        waiting = {(_place(one), one.form) for one in (*back, *written)}
        left = [one for one in aged if (_place(one.resident), one.resident.form) not in waiting]
        return replace(now, _files=files, _texts=texts, **_sums(left))

    def spoken(self, call: int) -> "ResidentSet":
        """Start a new task at call number `call`, after a person spoke."""
        return replace(self, _files=self._files.spoken(call))

    def at_call(self, call: int, settings: Residency) -> "ResidentSet":
        """Advance to the model call number `call`, from 0, and mark the residents old enough for eviction."""
        # A group that the next call sees for the first time answers the latest assistant message: it stays.
        young, ripened = self._young.split_ready(_born_by(call - max(settings.free_wait, 1)))
        ripe = self._ripe
        for resident in ripened:
            ripe = ripe.with_item(resident)
        ripe, grown = ripe.split_ready(_born_by(call - max(settings.keep_calls, 1)))
        reads, read_grown = self._reads.split_ready(_born_by(call - max(settings.reads_wait, 1)))
        files, left = self._files.at_call(call, settings.files) if settings.files is not None else (self._files, [])
        ripe_gain = self.ripe_gain + sum(one.gain for one in ripened) - sum(one.gain for one in grown)
        now = replace(self, _young=young, _ripe=ripe, _reads=reads, _files=files, ripe_gain=ripe_gain, call=call)
        now, masked = now._mask(call, settings.arguments)  # noqa: SLF001 its own kind
        every = (*grown, *read_grown, *left, *masked)
        return now._age(every) if every else now  # noqa: SLF001 its own kind

    def _mask(self, call: int, rules: ArgumentRules | None) -> "tuple[ResidentSet, list[Resident]]":
        """Remove and return the arguments that may be masked from call number `call` on.

        Arguments that may be masked wholly are no longer listed for their replaced text.
        """
        if rules is None:
            return self, []
        texts, whole = self._texts.at_call(call, rules)
        soon = rules.replaced
        halves, due = (self._replaced, []) if soon is None else self._replaced.split_ready(_born_by(call - soon))
        if texts is self._texts and not due:
            return self, []
        now = replace(self, _texts=texts, _replaced=halves)
        places = set(map(_place, whole))
        if not places:
            return now, due
        halves = SharedQueue.of(one for one in halves if _place(one) not in places)
        aged = [
            one
            for one in walk(upside_down(self._old))
            if one.resident.form != "replaced" or _place(one.resident) not in places
        ]
        due = [one for one in due if _place(one) not in places]
        return replace(now, _replaced=halves, **_sums(aged)), [*due, *whole]

    def _age(self, grown: Iterable[Resident]) -> "ResidentSet":
        old, tokens, gain, since = self._old, self.old_tokens, self.old_gain, self.old_since
        before = self.old_before if old is not None else None
        for resident in sorted(grown, key=_place):
            old = QueueLink(_OldResident(resident, self.call), old)
            tokens += resident.tokens
            gain += resident.gain
            since += resident.gain * self.call
            before = resident.before if before is None else min(before, resident.before)
        return replace(self, _old=old, old_tokens=tokens, old_gain=gain, old_since=since, old_before=before or 0)

    def without(self, places: Iterable[tuple[int, int]], before: Mapping[int, int] | None = None) -> "ResidentSet":
        """Remove the results at these places, given by message and block.

        before: tokens in front of each message now, for messages that moved. Residents behind them begin to pay rent
            anew.
        """
        gone = frozenset(places)
        lines = (self._young, self._ripe, self._reads, self._replaced, self.old())
        young, ripe, reads, halves, old = (SharedQueue.of(_residents_left(line, gone, before or {})) for line in lines)
        files, texts = self._files.without_places(gone, before or {}), self._texts.without_places(gone, before or {})
        moved = replace(self, _young=young, _ripe=ripe, _reads=reads, _replaced=halves, _files=files, _texts=texts)
        stays = replace(moved, **_sums([]))
        return replace(stays, ripe_gain=sum(one.gain for one in ripe))._age(old)  # noqa: SLF001 its own kind

    def with_return(self, resident: Resident) -> "ResidentSet":
        """Add a formerly absent result at its true age."""
        if resident.form == "replaced":
            return replace(
                self, _replaced=SharedQueue.of(sorted((*self._replaced, resident), key=lambda one: one.born))
            )
        if resident.form == "texts":
            return replace(self, _texts=self._texts.with_arguments(resident))
        if resident.is_read and resident.path:
            return replace(self, _files=self._files.with_read(resident))
        line = self._reads if resident.is_read else self._young
        joined = SharedQueue.of(sorted((*line, resident), key=lambda one: one.born))
        return replace(self, _reads=joined) if resident.is_read else replace(self, _young=joined)

    def hasten(self, calls: Collection[str], before: int) -> "ResidentSet":
        """Let the results of these calls be evicted at any age, except results from call `before` or later."""
        old = {(_place(one), one.form) for one in self.old()}
        every = (one for one in self.all() if (_place(one), one.form) not in old)
        waiting = [one for one in every if one.call_id in calls and one.born < before]
        return self.without(map(_place, waiting))._age(waiting) if waiting else self  # noqa: SLF001 its own kind

    def old(self) -> Iterator[Resident]:
        """Yield the residents that may be evicted, in the order of becoming old enough."""
        yield from (one.resident for one in walk(upside_down(self._old)))

    def ripe(self) -> Iterator[Resident]:
        """Yield the residents that may be evicted where a rewrite is cheap, oldest first."""
        yield from self._ripe

    def all(self) -> Iterator[Resident]:
        """Yield every resident, oldest first."""
        lines = (self._ripe, self._young, self._reads, self._files, self._replaced)
        # arguments that wait in two queues are yielded once, in the form that is masked in the end
        yield from sorted({_place(one): one for one in chain(self.old(), *lines, self._texts)}.values(), key=_place)

    def without_arguments(self) -> "ResidentSet":
        """Return only the results, for requests without masks. O(1) without arguments."""
        if self._texts is NO_TEXTS:
            return self
        old = [one for one in walk(upside_down(self._old)) if one.resident.form == "result"]
        return replace(self, _texts=NO_TEXTS, _replaced=SharedQueue(), **_sums(old))

    def texts(self) -> Iterator[Resident]:
        """Yield the arguments too young for a mask of every file text."""
        yield from self._texts

    def first_before(self, *, ripe_too: bool) -> int:
        """Return the tokens in front of the first resident that may be evicted."""
        first_ripe = next(self.ripe(), None) if ripe_too else None
        if first_ripe is None:
            return self.old_before
        return first_ripe.before if self._old is None else min(self.old_before, first_ripe.before)

    def first_of_all(self, most: int, *, without: Collection[tuple[int, int]] = ()) -> int:
        """Return the tokens in front of the first resident outside `without`, or `most`.

        O(n), for calls that write the whole prompt anew.
        """
        every = chain(self.old(), self._ripe, self._young, self._reads, self._files, self._replaced, self._texts)
        return min((one.before for one in every if _place(one) not in without), default=most)

    @property
    def task(self) -> int:
        """The first call of the current task."""
        return self._files.task

    def rent(self, read: float) -> float:
        """Return the cost of carrying the old residents since each became old enough, this call included."""
        return read * ((self.call + 1) * self.old_gain - self.old_since)


EMPTY: Final = ResidentSet()


@dataclass(frozen=True, slots=True)
class Epoch:
    """A decision to rewrite the window.

    frontier: index of the first message that changes. page_out: evicted residents, oldest first.
    """

    frontier: int
    page_out: tuple[Resident, ...] = field(default=())
    reason: str = "batch"


@dataclass(frozen=True, slots=True)
class EpochPlan:
    """The decision before a call: an epoch or None, with the account of the call.

    account: the account with the epoch. alone: the account without the epoch.
    """

    epoch: Epoch | None
    account: Account
    alone: Account


def removable(result: ToolResult, tokens: int, settings: Residency) -> bool:
    """Return whether this result may ever be evicted.

    Errors, images and redacted results stay, and a small result is not worth a stub.
    """
    big = tokens >= settings.min_tokens and tokens > 0 and len(result.text) > LONGEST and result.withheld is None
    return big and not result.is_error and not result.images


def decide(standing: ResidentSet, settings: Residency) -> Epoch | None:
    """Choose the results to evict by size alone, before the call of `standing`; None for no eviction."""
    if standing.old_tokens < settings.batch_tokens:
        return None
    return _batch(standing.old(), settings, standing.old_tokens, "batch")


def plan(standing: ResidentSet, settings: Residency, moment: Moment, account: Account) -> EpochPlan:
    """Decide on evictions before this call; O(1) if nothing is evicted, else linear in the evicted results."""
    economics = settings.economics
    if economics is None:
        return EpochPlan(decide(standing, settings), account, account)
    alone = account_after_call(account, moment, economics)
    cold = is_cold(moment, economics)
    if economics.uncached is not None:  # this call leaves no entry in the cache
        alone = replace(alone, anew=moment.size, found=0)
    elif cold or moment.last is None:
        alone = replace(alone, anew=moment.size, found=standing.first_of_all(moment.size))
    spoken = is_user_turn(moment, economics)
    easy = cold or spoken
    gain = standing.old_gain + (standing.ripe_gain if easy else 0)
    if gain <= economics.entrance:
        return EpochPlan(None, alone, alone)
    before = readable(account, economics, standing.first_before(ripe_too=easy))
    cost, below = rewrite_cost(moment, economics, before, gain), cliff_savings(moment, economics, gain)
    risked = rewrite_cost(moment, replace(economics, void=False), before, gain) if economics.void else cost
    richer = replace(alone, saved=alone.saved + below / CAUTION)
    rent = moment.scale * standing.rent(economics.read) + below * calls_below(moment, economics, gain)
    if not pays(rent, risked, moment, economics, richer) or falls_short(moment, economics, gain):
        return EpochPlan(None, alone, alone)
    candidates = sorted(chain(standing.old(), standing.ripe() if easy else ()), key=_place)
    epoch = _batch(candidates, settings, sum(one.tokens for one in candidates), _reason(moment, economics, below))
    gain = sum(one.gain for one in epoch.page_out)
    going = {_place(one) for one in epoch.page_out}
    found = standing.first_of_all(standing.first_before(ripe_too=easy), without=going)
    found = found if economics.uncached is None else 0
    return EpochPlan(epoch, replace(rewritten(alone, moment, economics, risked - below, gain), found=found), alone)


def _reason(moment: Moment, economics: Economics, below: float) -> str:
    if is_cold(moment, economics):
        return "changed front" if economics.void else "cold cache"
    if is_user_turn(moment, economics):
        return "user turn"
    return "price cliff" if below > 0.0 else "rent paid"


def _batch(candidates: Iterable[Resident], settings: Residency, left: int, reason: str) -> Epoch:
    """Return an epoch with candidates, oldest first, down to the low-water mark, without splitting a group."""
    going: list[Resident] = []
    for resident in candidates:
        if left <= settings.low_water_tokens and resident.born != going[-1].born:
            break
        going.append(resident)
        left -= resident.tokens
    return Epoch(min(one.message for one in going), tuple(going), reason)


def _residents_left(
    residents: Iterable[Resident], gone: frozenset[tuple[int, int]], before: Mapping[int, int]
) -> Iterator[Resident]:
    return (one.behind(before) for one in residents if (one.message, one.block) not in gone)


class _Sums(TypedDict):
    _old: QueueLink[_OldResident] | None
    old_tokens: int
    old_gain: int
    old_since: int
    old_before: int


def _sums(aged: Sequence[_OldResident]) -> _Sums:
    """Return the fields of a resident set with exactly these old residents."""
    return {
        "_old": link_items(aged),
        "old_tokens": sum(one.resident.tokens for one in aged),
        "old_gain": sum(one.resident.gain for one in aged),
        "old_since": sum(one.resident.gain * one.since for one in aged),
        "old_before": min((one.resident.before for one in aged), default=0),
    }


def _is_text_of(one: Resident, path: str) -> bool:
    return one.form == "texts" and one.path == path


def _born_by(last: int) -> Callable[[Resident], bool]:
    return lambda one: one.born <= last


def _place(resident: Resident) -> tuple[int, int]:
    return resident.message, resident.block
