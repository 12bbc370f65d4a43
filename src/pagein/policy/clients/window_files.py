"""The text of files that the window shows: the statements of calls about each file, with dependencies.

A statement is a read, a write or an edit of a file, as the request shows it. Two sources make statements: pagein's own
read tool (`engine.reads.evidence`) and the client's tools (`policy.clients.client_reads`). Each has its chains. Whoever
decides what may leave the window asks `WindowFiles`, which answers from both.

Rules of this file
------------------
1. A chain holds the statements about one file, in the order of the window. The model's knowledge of the file is folded
   from it.
2. An evicted result is taken out of its chain. Remaining answers that depended on it are not proven any more: they are
   named, and must leave too.
3. A refresh forbids new references to earlier texts of a file; existing references stay valid, because the texts are
   still in the window.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.model.names import ContentHash
from pagein.model.read_events import FileEvent, FileRead, FileRefresh, FileWrite, ReadClaim, claim_of
from pagein.model.shared_collections import QueueLink, SharedMap, in_order, link_items, walk
from pagein.policy.eviction.read_ages import ReadAges
from pagein.policy.eviction.session_work import NEVER
from pagein.policy.reads.knowledge import NOTHING, proven
from pagein.policy.reads.knowledge import step as with_event


@dataclass(frozen=True, slots=True)
class FileStatement:
    """The statement of one call about a file.

    call: "" for a statement without a call in the window.
    born: the model call before which it was made.
    text: the file after it; None if only the store has it.
    gutter, before, after: as in `ShownText`, of the result as it is in the request.
    given: the path as the call wrote it; "" if not recorded.
    message: number of the message with the call, from 1; 0 if not recorded.
    trusted: True if new markers may depend on it.
    """

    call: str
    event: FileEvent
    born: int
    text: str | None = None
    gutter: str = ""
    before: int = 0
    after: int = 0
    given: str = ""
    message: int = 0
    trusted: bool = True

    @property
    def stands_for_more(self) -> bool:
        """True for a marker or a diff, because other text must prove the answer."""
        return isinstance(self.event, FileRead) and self.event.mode not in ("full", "baseline_fallback")

    @property
    def claim(self) -> ReadClaim | None:
        """The claim for the witness; None without text in the window."""
        if isinstance(self.event, FileRefresh) or not self.call:
            return None
        return replace(claim_of(self.event), gutter=self.gutter, before=self.before, after=self.after)


@dataclass(frozen=True, slots=True)
class Repeat:
    """The client's own reference to an earlier read.

    base: call of the earlier read.
    born: the model call before which the reference was made.
    """

    base: str
    born: int


@dataclass(frozen=True, slots=True)
class FileChains:
    """The statements of one source about files; immutable, with shared structure.

    chains: statements by path, the last one first.
    path_of: path, by call.
    unproven: calls whose answers the window does not prove; kept for pagein's own tool alone.
    repeats: the client's own references to earlier reads, by call.
    gone: calls of reads whose text left the window, or never was there.
    """

    chains: SharedMap[QueueLink[FileStatement]] = field(default_factory=SharedMap)
    path_of: SharedMap[str] = field(default_factory=SharedMap)
    unproven: frozenset[str] = frozenset()
    repeats: SharedMap[Repeat] = field(default_factory=SharedMap)
    gone: frozenset[str] = frozenset()

    # --- questions ---

    def statements(self, path: str) -> list[FileStatement]:
        """Return the statements about a file, in window order."""
        return in_order(self.chains.get(path))

    def statement_of(self, call: str) -> FileStatement | None:
        """Return the statement of a call; None if the call is in no chain."""
        return next((one for one in reversed(self._chain_of(call)) if one.call == call), None)

    def _chain_of(self, call: str) -> list[FileStatement]:
        path = self.path_of.get(call)
        return [] if path is None else self.statements(path)

    def paths_of(self, calls: Iterable[str]) -> list[str]:
        """Return the paths in the statements of some calls."""
        return sorted({path for call in calls if (path := self.path_of.get(call)) is not None})

    def claims(self, path: str | None = None) -> dict[str, ReadClaim]:
        """Return the claim of each call in the window, for the witness.

        path: restrict the claims to one file; None for any file.
        """
        paths = self.chains if path is None else (path,)
        found = (one for name in paths for one in self.statements(name))
        return {one.call: claim for one in found if (claim := one.claim) is not None}

    def versions(self) -> dict[ContentHash, bytes]:
        """Return the text of every version that is not in the store alone."""
        return {
            one.event.version: text.encode()
            for chain in self.chains.values()
            for one in walk(chain)
            if (text := one.text) is not None and not isinstance(one.event, FileRefresh)
        }

    def fetch(self, path: str, version: ContentHash) -> bytes | None:
        """Return the text of a version of this file; None if no statement holds the text."""
        for one in walk(self.chains.get(path)):
            if not isinstance(one.event, FileRefresh) and one.event.version == version and one.text is not None:
                return one.text.encode()
        return None

    def calls_depending_on(self, leaving: Iterable[str]) -> frozenset[str]:
        """Return the remaining calls with answers unproven after the eviction of these results."""
        gone = frozenset(leaving)
        rest = (unproven_calls(_without_calls(self.statements(path), gone)) for path in self.paths_of(gone))
        return (self.unproven - gone).union(*rest)

    def calls_needed_by_young(self, last: int, work: ReadAges | None = None) -> frozenset[str]:
        """Return the calls with results in use by answers that stay.

        An answer stays if it was made after call `last`; or, by `work`, if its file is still being worked on.
        """
        repeats = (one for one in self.repeats.values() if one.base not in self.gone)
        held = {one.base for one in repeats if _stays(self._chain_of(one.base), one.born, last, work)}
        for path in self.chains:
            chain = self.statements(path)
            if any(one.stands_for_more and _stays(chain, one.born, last, work) for one in chain):
                held.update(one.call for one in chain if one.call)
        return frozenset(held)

    def calls_needed_with(self, calls: Iterable[str]) -> frozenset[str]:
        """Return the calls that must stay as long as the given calls, as possible bases."""
        held = set[str]()
        for call in calls:
            chain = self._chain_of(call)
            if any(one.call == call and one.stands_for_more for one in chain):
                held.update(one.call for one in chain if one.call)
        return frozenset(held)

    # --- changes ---

    def with_statement(self, path: str, made: FileStatement) -> "FileChains":
        """Return the chains with a further statement about a file."""
        chains = self.chains.put(path, QueueLink(made, self.chains.get(path)))
        return replace(self, chains=chains, path_of=self.path_of.put(made.call, path) if made.call else self.path_of)

    def with_chain(self, path: str, statements: Iterable[FileStatement]) -> "FileChains":
        """Return the chains with new statements about a file in place of all earlier statements."""
        left = list(statements)
        gone = {one.call for one in walk(self.chains.get(path))} - {one.call for one in left}
        path_of, chain = self.path_of, link_items(left)
        for call in gone:
            path_of = path_of.without(call)
        chains = self.chains.without(path) if chain is None else self.chains.put(path, chain)
        return replace(self, chains=chains, path_of=path_of, unproven=self.unproven - gone)

    def without(self, calls: frozenset[str]) -> "FileChains":
        """Return the chains after the texts of these calls left the window."""
        chains = self
        for path in self.paths_of(calls):
            chains = chains.with_chain(path, _without_calls(self.statements(path), calls))
        return chains


NO_CHAINS: Final = FileChains()


@dataclass(frozen=True, slots=True)
class WindowFiles:
    """The text of files that the window shows.

    own: by pagein's own read tool, and by writes reported to it.
    client: by the client's tools.
    """

    own: FileChains = NO_CHAINS
    client: FileChains = NO_CHAINS

    def claims(self) -> dict[str, ReadClaim]:
        """Return the claim of each call in the window, for the witness."""
        return self.own.claims() | self.client.claims()

    def versions(self) -> dict[ContentHash, bytes]:
        """Return the text of every version that is not in the store alone."""
        return self.own.versions() | self.client.versions()

    def calls_depending_on(self, leaving: Iterable[str]) -> frozenset[str]:
        """Return the calls with unproven answers in a window without some results."""
        gone = frozenset(leaving)
        return self.own.calls_depending_on(gone) | self.client.calls_depending_on(gone)

    def calls_needed_by_young(self, last: int, work: ReadAges | None = None) -> frozenset[str]:
        """Return the calls with results in use by answers that stay.

        An answer of pagein's own tool stays if it was made after call `last`; one of the client's tools by `work`, if
        there is any.
        """
        return self.own.calls_needed_by_young(last) | self.client.calls_needed_by_young(last, work)

    def calls_needed_with(self, calls: frozenset[str]) -> frozenset[str]:
        """Return the calls that must stay as long as the given calls, as possible bases."""
        return self.own.calls_needed_with(calls) | self.client.calls_needed_with(calls)


NO_FILES: Final = WindowFiles()


def unproven_calls(statements: Iterable[FileStatement]) -> frozenset[str]:
    """Return the calls with answers that the statements about a file do not prove.

    Such an answer leaves the window with all the lines that it shows, so it proves nothing for later answers.
    """
    seen, wrong = NOTHING, set[str]()
    for one in statements:
        if isinstance(one.event, FileRefresh):
            continue  # the texts are still in the window
        if isinstance(one.event, FileRead) and not proven(seen, one.event):
            wrong.add(one.call)
            continue
        seen = with_event(seen, one.event)
    return frozenset(wrong)


def _without_calls(statements: Iterable[FileStatement], gone: frozenset[str]) -> Iterator[FileStatement]:
    """Yield the statements without the texts of some calls, but with their changes of the file."""
    for one in statements:
        if one.call not in gone:
            yield one
        elif isinstance(one.event, FileWrite):
            yield replace(one, call="", event=one.event.unseen)


def _stays(chain: list[FileStatement], born: int, last: int, work: ReadAges | None) -> bool:
    """Return whether an answer stays, given its first call and the statements about the file."""
    if work is None or not chain:
        return born > last
    changes = (one.born for one in chain if not isinstance(one.event, FileRead))
    return work.keeps(born, touched=chain[-1].born, edited=max(changes, default=NEVER))
