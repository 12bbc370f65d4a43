"""The parts of a session, given by its engine."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pagein.engine.engine_resources import EngineResources
from pagein.engine.log.pageout import Pager
from pagein.engine.reads.session_reads import Outside
from pagein.engine.recall.session_recall import RecallBranch, SessionRecall
from pagein.policy.eviction.overflow import NO_VALVE, Valve
from pagein.policy.eviction.residency import Residency
from pagein.policy.privacy.exclusions import EXCLUDED
from pagein.ports import JournalStore, SnapshotStore, TokenCounter

S = TypeVar("S")
"""The type of the sessions that an engine makes: `Session`, which imports this module."""


@dataclass(frozen=True, slots=True)
class SessionParts(Generic[S]):
    """The parts of a session.

    pager: stores and recalls evicted content.
    counter: token counter.
    residency: settings of the policy.
    journals: store of sessions; None for a session that ends with its process.
    begin: opens a new session of the same engine, for forks.
    outside: resources of reads; None for a session that reads no files.
    recalling: makes the recall of a session; None for a session that only evicts.
    excluded: name patterns of files whose content is never evicted.
    valve: settings of the overflow.
    manifest: most tokens of a manifest page; None for no manifest.
    rereads: True to answer repeated reads by the client's own tools with a marker or a diff.
    marks: True to add cache breakpoints beside the client's.
    shared: resources shared with the engine's other sessions; None for separate ones.
    snapshots: store of session states; None for no snapshots.
    again: reopens the session of a name after an erasure.
    """

    pager: Pager
    counter: TokenCounter
    residency: Residency
    journals: JournalStore | None = None
    begin: Callable[[str], S] | None = None
    outside: Outside | None = None
    recalling: Callable[[RecallBranch], SessionRecall] | None = None
    excluded: tuple[str, ...] = EXCLUDED
    valve: Valve = NO_VALVE
    manifest: int | None = None
    rereads: bool = True
    marks: bool = True
    shared: EngineResources | None = None
    snapshots: SnapshotStore | None = None
    again: Callable[[str], S] | None = None
