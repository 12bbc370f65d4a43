"""The text in the window of each file that a client's tools read or changed, call by call, with dependencies.

Rules of this file
------------------
1. A chain holds the statements of calls about one file, in the order of the window. The model's knowledge of the file
   is folded from it.
2. An evicted result is taken out of its chain. Remaining answers that depended on it are not proven any more: they are
   named, and must leave too.
3. Forgetting a file forbids new references to its texts; existing references stay valid.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final, TypeAlias

from pagein.model.messages import ToolCall
from pagein.model.names import ContentHash
from pagein.model.read_events import FileRead, FileRefresh, FileWrite, ReadClaim, claim_of
from pagein.model.shared_map import SharedMap
from pagein.model.spans import Spans
from pagein.policy.clients.shown_files import path_key
from pagein.policy.eviction.read_ages import NEVER, Work
from pagein.policy.reads.knowledge import NOTHING, Knowledge, proven
from pagein.policy.reads.knowledge import step as with_event

FileEvent: TypeAlias = FileRead | FileWrite | FileRefresh


@dataclass(frozen=True, slots=True)
class FileStatement:
    """The statement of one call about a file.

    call: "" for a statement without a call. text: the file after it. born: the model call before which it was made.
    gutter, before, after: as in `ShownText`, of the result as it is in the request.
    """

    call: str
    event: FileEvent
    text: str
    born: int
    gutter: str = ""
    before: int = 0
    after: int = 0

    @property
    def stands_for_more(self) -> bool:
        """Whether the answer needs other text as proof."""
        return isinstance(self.event, FileRead) and self.event.mode not in ("full", "baseline_fallback")

    @property
    def claim(self) -> ReadClaim | None:
        """The claim for the witness; None for a refresh."""
        if isinstance(self.event, FileRefresh):
            return None
        return replace(claim_of(self.event), gutter=self.gutter, before=self.before, after=self.after)


@dataclass(frozen=True, slots=True)
class FileReads:
    """The window's statements about a file, in order, and the file's present text.

    text: None if uncertain.
    """

    chain: tuple[FileStatement, ...] = ()
    text: str | None = None


NO_READS: Final = FileReads()


@dataclass(frozen=True, slots=True)
class Repeat:
    """The client's own reference to an earlier read.

    base: call of the earlier read. born: the model call before which the reference was made.
    """

    base: str
    born: int


@dataclass(frozen=True, slots=True)
class ClientReads:
    """The file text shown so far in a conversation; immutable, with shared structure.

    calls: calls without a result yet.
    path_of: the file of each call in a chain.
    asked: the last call of each read, by its arguments.
    repeats: the client's own references to earlier reads.
    gone: calls of such reads with evicted results.
    turns: messages of the model so far.
    """

    known: Knowledge = NOTHING
    files: SharedMap[FileReads] = field(default_factory=SharedMap)
    calls: SharedMap[ToolCall] = field(default_factory=SharedMap)
    path_of: SharedMap[str] = field(default_factory=SharedMap)
    asked: SharedMap[str] = field(default_factory=SharedMap)
    repeats: SharedMap[Repeat] = field(default_factory=SharedMap)
    gone: frozenset[str] = frozenset()
    turns: int = 0

    def claims(self) -> dict[str, ReadClaim]:
        """Return the claim of each call in the window, for the witness."""
        held = (one for file in self.files.values() for one in file.chain)
        return {one.call: claim for one in held if one.call and (claim := one.claim) is not None}

    def versions(self) -> dict[ContentHash, bytes]:
        """Return the text of every version in the conversation."""
        held = (one for file in self.files.values() for one in file.chain)
        return {one.event.version: one.text.encode() for one in held if not isinstance(one.event, FileRefresh)}

    def statement_of(self, call: str) -> FileStatement | None:
        """Return a call's statement about its file; None if the call is in no chain."""
        path = self.path_of.get(call)
        chain = () if path is None else self.files[path].chain
        return next((one for one in reversed(chain) if one.call == call), None)

    def calls_depending_on(self, leaving: Iterable[str]) -> frozenset[str]:
        """Return the remaining calls with answers unproven after the eviction of these results."""
        gone = frozenset(leaving)
        paths = {path for call in gone if (path := self.path_of.get(call)) is not None}
        found = (_unproven(_without_calls(self.files[path].chain, gone)) for path in sorted(paths))
        return frozenset[str]().union(*found)

    def calls_needed_by_young(self, last: int, work: Work | None = None) -> frozenset[str]:
        """Return the calls with results in use by answers that stay.

        An answer stays if it was sent after call `last`; or, by `work`, if its file is still being worked on.
        """
        held = {one.base for one in self.repeats.values() if self._stays(one.base, one.born, last, work)} - self.gone
        for file in self.files.values():
            if any(one.stands_for_more and _stays(file.chain, one.born, last, work) for one in file.chain):
                held.update(one.call for one in file.chain if one.call)
        return frozenset(held)

    def _stays(self, base: str, born: int, last: int, work: Work | None) -> bool:
        path = self.path_of.get(base)
        return _stays(() if path is None else self.files[path].chain, born, last, work)

    def calls_needed_with(self, calls: Iterable[str]) -> frozenset[str]:
        """Return the calls that must stay as long as the given calls, as possible bases."""
        held: set[str] = set()
        for call in calls:
            path = self.path_of.get(call)
            chain = () if path is None else self.files[path].chain
            if any(one.call == call and one.stands_for_more for one in chain):
                held.update(one.call for one in chain if one.call)
        return frozenset(held)

    def fetch(self, path: str, version: ContentHash) -> bytes | None:
        """Return the text of a version of this file."""
        for one in reversed(self.files.get(path, NO_READS).chain):
            if not isinstance(one.event, FileRefresh) and one.event.version == version:
                return one.text.encode()
        return None


START: Final = ClientReads()


def _stays(chain: tuple[FileStatement, ...], born: int, last: int, work: Work | None) -> bool:
    """Return whether an answer stays, given its first call and the later statements about the file."""
    if work is None or not chain:
        return born > last
    changes = (one.born for one in chain if not isinstance(one.event, FileRead))
    return work.keeps(born, touched=chain[-1].born, edited=max(changes, default=NEVER))


def with_held(state: ClientReads, path: str, held: FileStatement) -> ClientReads:
    """Return the state after a call's statement about a file."""
    chain = (*state.files.get(path, NO_READS).chain, held)
    return replace(
        state,
        known=with_event(state.known, held.event),
        files=state.files.put(path, FileReads(chain, held.text)),
        path_of=state.path_of.put(held.call, path),
    )


def with_text(state: ClientReads, path: str, text: str) -> ClientReads:
    """Return the state with a new text of the file that no result in the window shows."""
    file = state.files.get(path, NO_READS)
    return replace(state, files=state.files.put(path, replace(file, text=text)))


def forgotten(state: ClientReads, given: str) -> ClientReads:
    """Return the state in which no earlier text of this file may be a base."""
    path = path_key(given)
    file = state.files.get(path)
    if file is None:
        return state
    event = FileRefresh(path)
    chain = (*file.chain, FileStatement("", event, "", state.turns))
    return replace(state, known=with_event(state.known, event), files=state.files.put(path, FileReads(chain)))


def without(state: ClientReads, calls: Iterable[str]) -> ClientReads:
    """Return the state after the results of these calls, and their dependents, have left the window."""
    gone = frozenset(calls)
    paths = sorted({path for call in gone if (path := state.path_of.get(call)) is not None})
    bases = frozenset(call for call in state.asked.values() if call in gone)
    state = replace(state, gone=state.gone | bases)
    for path in paths:
        file = state.files[path]
        chain = tuple(_without_calls(file.chain, gone))
        path_of = reduce(
            lambda kept, one: kept.without(one.call), (one for one in file.chain if one.call in gone), state.path_of
        )
        files = state.files.put(path, replace(file, chain=chain))
        state = _refold_path(replace(state, files=files, path_of=path_of), path)
    return state


def _without_calls(chain: Iterable[FileStatement], gone: frozenset[str]) -> Iterator[FileStatement]:
    """Yield the chain without the texts of some calls, but with their changes of the file."""
    for one in chain:
        if one.call not in gone:
            yield one
        elif isinstance(one.event, FileWrite):
            yield replace(one, call="", event=one.event.unseen)


def _refold_path(state: ClientReads, path: str) -> ClientReads:
    folded = reduce(with_event, (one.event for one in state.files[path].chain), NOTHING)
    known = folded.paths.get(path)
    others = state.known.paths.without(path) if known is None else state.known.paths.put(path, known)
    return replace(state, known=Knowledge(others, max(state.known.seq, folded.seq)))


def restore_results(state: ClientReads, calls: Iterable[str]) -> ClientReads:
    """Return the state after the client's own results are back in the window for some calls."""
    for call in calls:
        path = state.path_of.get(call)
        if path is None:
            continue
        file = state.files[path]
        chain = tuple(_in_full(one) if one.call == call else one for one in file.chain)
        state = _refold_path(replace(state, files=state.files.put(path, replace(file, chain=chain))), path)
    return state


def _in_full(held: FileStatement) -> FileStatement:
    event = held.event
    if not isinstance(event, FileRead) or not held.stands_for_more:
        return held
    emitted = Spans.of((event.first, event.last))
    return replace(held, event=replace(event, mode="full", base=None, emitted=emitted, copies=(), v=1))


def _unproven(chain: Iterable[FileStatement]) -> frozenset[str]:
    """Return the calls in the rest of a chain that are not proven any more."""
    seen, wrong = NOTHING, set[str]()
    for one in chain:
        if isinstance(one.event, FileRefresh):
            continue  # the texts are still in the window
        if isinstance(one.event, FileRead) and not proven(seen, one.event):
            wrong.add(one.call)
        seen = with_event(seen, one.event)
    return frozenset(wrong)
