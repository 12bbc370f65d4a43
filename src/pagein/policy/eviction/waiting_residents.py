"""The residents too young to leave: one queue per row of the residency table.

A queue holds what waits for its row alone, in the order in which the ages began: residents, where the age begins when
they are shown; accesses to files, where it begins with the last access. So work per call grows with what is new and
what leaves, not with what waits. Every access counts, also a failed one.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.model.shared_collections import QueueLink, SharedMap, SharedQueue, walk
from pagein.policy.eviction.quote_odds import ReadCounts, shown_later
from pagein.policy.eviction.residency_rules import FILE_KINDS, QuoteLimit, ResidencyRule, ResidencyRules, ResidentKind
from pagein.policy.eviction.residents import WHOLE, Resident
from pagein.policy.eviction.session_work import NEVER, SessionWork

_LAST_JUDGED: Final = 60
"""Idle calls after which a read is judged no more, so that the work of a call does not grow with the session."""

ARGUMENT_KINDS: Final[frozenset[ResidentKind]] = frozenset(("replaced text", "file text"))


@dataclass(frozen=True, slots=True)
class _Wait:
    """An item of a queue.

    since: the call at which the wait began: the age, or the last judgement.
    one: a resident, or the key of a file whose residents wait together.
    call: the call at which the age began.
    """

    since: int
    one: Resident | str
    call: int


@dataclass(frozen=True, slots=True)
class _RuleQueue:
    """The queue of a row, and the residents that may leave already where a rewrite is cheap, with their gain."""

    waiting: SharedQueue[_Wait] = field(default_factory=SharedQueue)
    ripe: SharedQueue[_Wait] = field(default_factory=SharedQueue)
    ripe_gain: int = 0

    def split_due(self, rule: ResidencyRule, call: int) -> "tuple[_RuleQueue, list[_Wait]]":
        """Remove and return what is due by the rule before call number `call`."""
        if rule.wait is None:
            return self, []
        last = call - rule.wait
        if rule.cheap_wait is None:
            waiting, due = self.waiting.split_until(last)
            return (replace(self, waiting=waiting) if due else self), due
        first = call - max(rule.cheap_wait, 1)
        waiting, ripened = self.waiting.split_until(first)
        ripe = self.ripe
        for wait in ripened:
            ripe = ripe.with_item(wait)
        ripe, due = ripe.split_until(last)
        if not ripened and not due:
            return self, due
        return _RuleQueue(waiting, ripe, self.ripe_gain + _gain(ripened) - _gain(due)), due

    def without(self, gone: Collection[tuple[int, int]], before: Mapping[int, int]) -> "_RuleQueue":
        """Remove the residents at some places, and update the tokens in front of the rest."""
        ripe = SharedQueue.of(_waits_left(self.ripe, gone, before))
        return _RuleQueue(SharedQueue.of(_waits_left(self.waiting, gone, before)), ripe, _gain(ripe))


def rule_holds(rule: ResidencyRule, born: int, *, edited: int, work: SessionWork) -> bool:
    """Return whether the condition of a row holds for a resident first shown by call number `born`.

    edited: call that saw the last edit of its file. work: what the session has done.
    """
    match rule.only:
        case "edited":
            return born <= edited
        case "older task":
            return born < work.task
        case "only reads":
            return work.only_reads
        case _:
            return True


@dataclass(frozen=True, slots=True)
class _File:
    """The residents of a kind that waits for the accesses to a file.

    touched, edited, shown: calls that first saw its last access, its last edit, its last whole text.
    left: whether some of its residents may leave by now.
    """

    touched: int
    edited: int = NEVER
    shown: int = NEVER
    residents: tuple[Resident, ...] = ()
    left: bool = False

    def may_leave(self, rule: ResidencyRule, work: SessionWork) -> list[Resident]:
        """Return the residents that this row allows to leave."""
        return [
            one
            for one in self.residents
            if rule_holds(rule, one.born, edited=self.edited, work=work)
            and (rule.clock != "shown whole" or one.born < self.shown)
        ]

    def covered(self) -> list[bool]:
        """Return for each resident whether a later one shows the same lines."""
        lines = [one.lines for one in self.residents]
        return shown_later(lines) if len(lines) > 1 else [False] * len(lines)

    def age_began(self, rule: ResidencyRule) -> int:
        """Return the call at which the age for a row began."""
        return self.shown if rule.clock == "shown whole" else self.touched


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WaitingResidents:
    """The residents that wait; immutable, derived from `NONE_WAITING`, with shared structure.

    work: what the session has done.
    has_arguments: whether arguments of calls ever waited.
    """

    _queues: SharedMap[_RuleQueue] = field(default_factory=SharedMap)
    _files: SharedMap[_File] = field(default_factory=SharedMap)
    # Files with residents that were touched since a person spoke last, newest first.
    _fresh: QueueLink[str] | None = None
    work: SessionWork = field(default_factory=SessionWork)
    has_arguments: bool = False

    def with_resident(self, one: Resident, rules: ResidencyRules, *, newest: bool = True) -> "WaitingResidents":
        """Add a resident.

        newest: whether no waiting resident was shown later; else the resident joins those of its age.
        """
        now = self if self.has_arguments or one.kind not in ARGUMENT_KINDS else replace(self, has_arguments=True)
        if one.kind in FILE_KINDS:
            return now._with_file_resident(one, rules)  # noqa: SLF001 its own kind
        queues = now._queues  # noqa: SLF001 its own kind
        for rule in rules.by_kind.get(one.kind, ()):
            queue = queues.get(rule.name) or _RuleQueue()
            wait = _Wait(one.born, one, one.born)
            if newest:
                waiting = queue.waiting.with_item(wait)
            else:
                waiting = SharedQueue.of(sorted((*queue.waiting, wait), key=lambda each: each.since))
            queues = queues.put(rule.name, replace(queue, waiting=waiting))
        return replace(now, _queues=queues)

    def _with_file_resident(self, one: Resident, rules: ResidencyRules) -> "WaitingResidents":
        key = _key(one.kind, one.path)
        file = self._files.get(key) or _File(one.born)
        residents = (*file.residents, one)
        if file.residents:
            residents = tuple(sorted(residents, key=lambda each: each.place))
        file = replace(file, touched=max(file.touched, one.born), residents=residents)
        return self._visit(
            key, file, (rule for rule in rules.by_kind.get(one.kind, ()) if _waits_for(file, rule, self.work, one))
        )

    def _visit(self, key: str, file: _File, rules: Iterable[ResidencyRule]) -> "WaitingResidents":
        """Store a file, and queue the file's residents for the rows."""
        queues = self._queues
        for rule in rules:
            if rule.wait is not None:
                queue = queues.get(rule.name) or _RuleQueue()
                began = file.age_began(rule)
                wait = _Wait(began, key, began)
                queues = queues.put(rule.name, replace(queue, waiting=queue.waiting.with_item(wait)))
        return replace(self, _queues=queues, _files=self._files.put(key, file), _fresh=QueueLink(key, self._fresh))

    def with_access(
        self, path: str, call: int, rules: ResidencyRules, *, edited: bool, whole: bool
    ) -> "tuple[WaitingResidents, dict[ResidentKind, int]]":
        """Record an access to a file, first seen by call number `call`.

        whole: the whole file was written or shown.
        Also return the kinds of which residents that might have left wait again, with the call of the access before.
        """
        work = self.work.with_edit(call) if edited else replace(self.work, accesses=self.work.accesses + 1)
        now, again = replace(self, work=work), dict[ResidentKind, int]()
        for kind in FILE_KINDS:
            key = _key(kind, path)
            file = self._files.get(key)
            if file is None:
                continue
            rows = rules.by_kind.get(kind, ())
            # a resident that a whole text of the file made needless does not wait again
            needless = whole and any(rule.clock == "shown whole" for rule in rows)
            if file.left and not needless:
                again[kind] = file.touched
            file = replace(
                file,
                touched=max(file.touched, call),
                edited=call if edited else file.edited,
                shown=call if whole else file.shown,
                left=False,
            )
            waiting = (
                rule
                for rule in rows
                if (rule.clock == "shown whole" and whole) or _waits_since_touch(file, rule, now.work)
            )
            now = now._visit(key, file, waiting)  # noqa: SLF001 its own kind
        return now, again

    def with_task(self, call: int, rules: ResidencyRules, words: str) -> "WaitingResidents":
        """Start a new task at call number `call`, the first call after a person spoke these words."""
        work = self.work.with_task(call, words)
        begins = {"older task", "only reads"} if work.only_reads else {"older task"}
        keys = dict.fromkeys(walk(self._fresh))
        queues = self._queues
        for kind in FILE_KINDS:
            rows = [rule for rule in rules.by_kind.get(kind, ()) if rule.only in begins and rule.wait is not None]
            found = [key for key in keys if rows and key.startswith(_key(kind, ""))]
            visits = [
                _Wait(file.touched, key, file.touched) for key in found if (file := self._files.get(key)) is not None
            ]
            for rule in rows if visits else ():
                queue = queues.get(rule.name) or _RuleQueue()
                waiting = SharedQueue.of(sorted((*queue.waiting, *visits), key=lambda wait: wait.since))
                queues = queues.put(rule.name, replace(queue, waiting=waiting))
        return replace(self, _queues=queues, _fresh=None, work=work)

    def at_call(self, call: int, rules: ResidencyRules) -> "tuple[WaitingResidents, list[tuple[Resident, str]]]":
        """Remove and return the residents free to leave before call number `call`, each with the name of its row.

        A resident whose every file text may leave no longer waits for its replaced text alone.
        """
        now, out = self, list[tuple[Resident, str]]()
        for rule in rules.rows:
            queue = self._queues.get(rule.name)
            if queue is None:
                continue
            left, due = queue.split_due(rule, call)
            if left is not queue:
                now = replace(now, _queues=now._queues.put(rule.name, left))
            if rule.limit is not None:
                now, gone = now._judge(due, rule, rule.limit, call) if due else (now, [])  # noqa: SLF001 its own kind
                out += [(one, rule.name) for one in gone]
                continue
            for wait in due:
                if isinstance(wait.one, Resident):
                    out.append((wait.one, rule.name))
                else:
                    now, gone = now._release(wait.one, wait.call, rule)  # noqa: SLF001 its own kind
                    out += [(one, rule.name) for one in gone]
        whole = {one.place for one, _ in out if one.form == "texts"}
        if not whole:
            return now, out
        return now._without_replaced(whole, rules), [  # noqa: SLF001 its own kind
            (one, rule) for one, rule in out if one.form != "replaced" or one.place not in whole
        ]

    def _release(self, key: str, began: int, rule: ResidencyRule) -> "tuple[WaitingResidents, list[Resident]]":
        file = self._files.get(key)
        if file is None or file.age_began(rule) != began:  # accessed again: a later wait replaces this one
            return self, []
        gone = file.may_leave(rule, self.work)
        return (self._let_go(key, file, gone) if gone else self), gone

    def _let_go(self, key: str, file: _File, gone: Iterable[Resident]) -> "WaitingResidents":
        places = {one.place for one in gone}
        stay = tuple(one for one in file.residents if one.place not in places)
        return replace(self, _files=self._files.put(key, replace(file, residents=stay, left=True)))

    def _judge(
        self, due: Iterable[_Wait], rule: ResidencyRule, limit: QuoteLimit, call: int
    ) -> "tuple[WaitingResidents, list[Resident]]":
        """Remove and return the residents with few expected quotes by edits; the rest is judged again after as many
        calls.
        """
        files = {
            key: file
            for wait in due
            if (file := self._files.get(key := str(wait.one))) is not None and file.touched == wait.call
        }
        reads = [one for file in files.values() for one in self._counts(file, call)]
        reasons = limit.odds.reasons_of_unlikely(reads, limit.quotes)
        now, out = self, list[Resident]()
        for key, file in files.items() if reasons else ():
            gone = [one for one in file.residents if one.call_id in reasons]
            if gone:
                now = now._let_go(key, file, gone)
                out += [replace(one, why=reasons[one.call_id]) for one in gone]
        again = [
            _Wait(call, key, file.touched)
            for key, file in files.items()
            if call - file.touched < _LAST_JUDGED and any(one.call_id not in reasons for one in file.residents)
        ]
        if not again:
            return now, out
        queue = now._queues.get(rule.name) or _RuleQueue()  # noqa: SLF001 its own kind
        queue = replace(queue, waiting=queue.waiting.with_items(again))
        return replace(now, _queues=now._queues.put(rule.name, queue)), out  # noqa: SLF001 its own kind

    def _counts(self, file: _File, call: int) -> Iterator[ReadCounts]:
        for one, covered in zip(file.residents, file.covered(), strict=True):
            yield ReadCounts(
                one.call_id,
                one.path,
                tokens=one.tokens,
                idle=call - file.touched,
                since_edit=call - max(self.work.edited, 0),
                older=one.born < self.work.task,
                covered=covered,
                whole=one.lines == WHOLE,
                work=self.work,
            )

    def _without_replaced(self, places: Collection[tuple[int, int]], rules: ResidencyRules) -> "WaitingResidents":
        queues = self._queues
        for rule in rules.by_kind.get("replaced text", ()):
            queue = queues.get(rule.name)
            if queue is not None:
                queues = queues.put(rule.name, queue.without(places, {}))
        return replace(self, _queues=queues)

    def without(self, gone: Collection[tuple[int, int]], before: Mapping[int, int]) -> "WaitingResidents":
        """Remove the residents at these places, and update the tokens in front of the remaining messages."""
        queues, files = self._queues, self._files
        for name in list(queues):
            queues = queues.put(name, queues[name].without(gone, before))
        for key in list(files):
            file = files[key]
            stay = tuple(one.behind(before) for one in file.residents if one.place not in gone)
            if stay != file.residents:
                files = files.put(key, replace(file, residents=stay))
        return replace(self, _queues=queues, _files=files)

    def without_arguments(self) -> "WaitingResidents":
        """Return only the results."""
        arguments = [one.place for one in self if one.kind in ARGUMENT_KINDS]
        return replace(self.without(frozenset(arguments), {}), has_arguments=False)

    @property
    def ripe_gain(self) -> int:
        """Tokens saved by the eviction of the ripe residents."""
        return sum(queue.ripe_gain for queue in self._queues.values())

    def ripe(self) -> Iterator[Resident]:
        """Yield the residents that may leave where a rewrite is cheap, oldest first by row."""
        for queue in self._queues.values():
            yield from _residents_in(queue.ripe)

    def first_ripe_before(self) -> int | None:
        """Return the tokens in front of the first ripe resident; None without any."""
        firsts = (next(_residents_in(queue.ripe), None) for queue in self._queues.values())
        return min((one.before for one in firsts if one is not None), default=None)

    def of_kind(self, kind: ResidentKind) -> Iterator[Resident]:
        """Yield the waiting residents of a kind."""
        return (one for one in self if one.kind == kind)

    def __iter__(self) -> Iterator[Resident]:
        """Yield every waiting resident, residents of files last."""
        for queue in self._queues.values():
            yield from _residents_in(queue.ripe)
            yield from _residents_in(queue.waiting)
        for file in self._files.values():
            yield from file.residents


NONE_WAITING: Final = WaitingResidents()


def _key(kind: ResidentKind, path: str) -> str:
    return f"{kind}\n{path}"


def _waits_since_touch(file: _File, rule: ResidencyRule, work: SessionWork) -> bool:
    return rule.clock == "touched" and bool(file.may_leave(rule, work) or not rule.only)


def _waits_for(file: _File, rule: ResidencyRule, work: SessionWork, one: Resident) -> bool:
    """Return whether a file waits for a row once a resident was added."""
    return one.born < file.shown if rule.clock == "shown whole" else _waits_since_touch(file, rule, work)


def _waits_left(
    waits: Iterable[_Wait], gone: Collection[tuple[int, int]], before: Mapping[int, int]
) -> Iterator[_Wait]:
    for wait in waits:
        if not isinstance(wait.one, Resident):
            yield wait
        elif wait.one.place not in gone:
            yield replace(wait, one=wait.one.behind(before))


def _residents_in(waits: Iterable[_Wait]) -> Iterator[Resident]:
    return (wait.one for wait in waits if isinstance(wait.one, Resident))


def _gain(waits: Iterable[_Wait]) -> int:
    return sum(one.gain for one in _residents_in(waits))
