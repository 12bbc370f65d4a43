"""Arguments of file-writing calls, waiting by file until old enough for masks.

A call's text may be masked when its file was left alone for `ArgumentRules.alone` calls; and sooner, after
`ArgumentRules.replaced` calls, where a later write of the whole file, or a whole read of it, has made it needless.
Every access counts. Work per call grows with the accesses, not with the files.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.model.shared_map import SharedMap
from pagein.policy.eviction.argument_masks import ArgumentRules
from pagein.policy.eviction.residents import Resident
from pagein.policy.eviction.shared_queues import SharedQueue

NEVER: Final = -1


@dataclass(frozen=True, slots=True)
class _TextVisit:
    """An access to a file."""

    path: str
    call: int


@dataclass(frozen=True, slots=True)
class _Written:
    """A file with writing calls in the window.

    touched, shown: calls that saw its last access, and its last whole text.
    left: whether some of the calls may be masked.
    """

    touched: int
    shown: int = NEVER
    calls: tuple[Resident, ...] = ()
    left: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Texts:
    """The arguments that wait, by file; immutable, derived from `NO_TEXTS`."""

    _files: SharedMap[_Written] = field(default_factory=SharedMap)
    _alone: SharedQueue[_TextVisit] = field(default_factory=SharedQueue)
    _over: SharedQueue[_TextVisit] = field(default_factory=SharedQueue)

    def with_arguments(self, one: Resident) -> "Texts":
        """Add arguments to the waiting arguments, new in the window or again too young."""
        file = self._files.get(one.path) or _Written(one.born)
        calls = tuple(sorted((*file.calls, one), key=lambda each: (each.message, each.block)))
        touched = max(file.touched, one.born)
        now = replace(self, _files=self._files.put(one.path, replace(file, touched=touched, calls=calls)))
        now = replace(now, _alone=self._alone.with_item(_TextVisit(one.path, touched)))
        return (
            replace(now, _over=self._over.with_item(_TextVisit(one.path, file.shown))) if one.born < file.shown else now
        )

    def touch(self, path: str, call: int, *, whole: bool) -> "tuple[Texts, bool]":
        """Record an access to a file, first seen by call number `call`.

        whole: the access makes every earlier text of the file needless.
        Also return whether arguments that were old enough must wait again.
        """
        file = self._files.get(path)
        if file is None:
            return self, False
        again = file.left and not whole
        now = replace(file, touched=max(file.touched, call), shown=call if whole else file.shown, left=False)
        visit = _TextVisit(path, call)
        files, alone = self._files.put(path, now), self._alone.with_item(visit)
        return replace(
            self, _files=files, _alone=alone, _over=self._over.with_item(visit) if whole else self._over
        ), again

    def at_call(self, call: int, rules: ArgumentRules) -> "tuple[Texts, list[Resident]]":
        """Remove and return the arguments that may be masked before call number `call`."""
        wait, soon = rules.alone, rules.replaced
        alone, idle = (
            (SharedQueue(), []) if wait is None else self._alone.split_ready(lambda visit: visit.call <= call - wait)
        )
        over, past = (
            (SharedQueue(), []) if soon is None else self._over.split_ready(lambda visit: visit.call <= call - soon)
        )
        now, out = replace(self, _alone=alone, _over=over), list[Resident]()
        for visit in idle:
            now, gone = now._release(visit, lambda file, at: file.touched == at, lambda _one, _file: True)  # noqa: SLF001 its own kind
            out += gone
        for visit in past:
            now, gone = now._release(visit, lambda file, at: file.shown == at, lambda one, file: one.born < file.shown)  # noqa: SLF001 its own kind
            out += gone
        return (now, out) if out or idle or past or wait is None or soon is None else (self, out)

    def _release(
        self, visit: _TextVisit, holds: Callable[[_Written, int], bool], may_go: Callable[[Resident, _Written], bool]
    ) -> "tuple[Texts, list[Resident]]":
        file = self._files.get(visit.path)
        if file is None or not holds(file, visit.call):  # accessed again: a later visit replaces this one
            return self, []
        gone = [one for one in file.calls if may_go(one, file)]
        if not gone:
            return self, []
        stay = tuple(one for one in file.calls if not may_go(one, file))
        return replace(self, _files=self._files.put(visit.path, replace(file, calls=stay, left=True))), gone

    def without_places(self, gone: frozenset[tuple[int, int]], before: Mapping[int, int]) -> "Texts":
        """Remove the arguments at these places, and update the tokens in front of the remaining messages."""
        now = self._files
        for path in list(now):
            file = now[path]
            stay = tuple(one.behind(before) for one in file.calls if (one.message, one.block) not in gone)
            if stay != file.calls:
                now = now.put(path, replace(file, calls=stay))
        return self if now is self._files else replace(self, _files=now)

    def __iter__(self) -> Iterator[Resident]:
        """Yield the waiting arguments, file by file."""
        for path in self._files:
            yield from self._files[path].calls


NO_TEXTS: Final = Texts()
