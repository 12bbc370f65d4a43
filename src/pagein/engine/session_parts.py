"""The parts of a session, given by its engine."""

from collections.abc import Callable
from dataclasses import dataclass

from pagein.engine.engine_resources import EngineResources
from pagein.engine.log.pageout import Pager
from pagein.engine.log.session_log import SessionLog
from pagein.engine.log.tool_uses import ToolUses
from pagein.engine.reads.read_resources import Outside
from pagein.engine.recall.session_recall import SessionRecall
from pagein.policy.economics.tool_deferral import FloorPaging
from pagein.policy.eviction.overflow import NO_VALVE, Valve
from pagein.policy.eviction.residency import Residency
from pagein.policy.guards.limits import DEFAULT_GUARDS, GuardSettings
from pagein.policy.pools.pool_values import USUAL, PoolRules
from pagein.policy.privacy.exclusions import EXCLUDED
from pagein.ports import JournalStore, SnapshotStore, TokenCounter


@dataclass(frozen=True, slots=True)
class SessionParts:
    """The parts of a session.

    pager: stores and recalls evicted content.
    counter: token counter.
    residency: settings of the policy.
    journals: store of sessions; None for a session that ends with its process.
    outside: resources of reads; None for a session that reads no files.
    make_recall: makes the recall of a session; None for a session that only evicts.
    excluded: name patterns of files whose content is never evicted.
    valve: settings of the overflow.
    manifest: most tokens of a manifest page; None for no manifest.
    rereads: True to answer repeated reads by the client's own tools with a marker or a diff.
    marks: True to add cache breakpoints beside the client's.
    shared: resources shared with the engine's other sessions; None for separate ones.
    snapshots: store of session states; None for no snapshots.
    floor_paging: when unused tools are deferred; unless never, an attachment that the window shows already is sent as a stub.
    tool_uses: the tools that the store's sessions used; None to defer no tools.
    guards: how reads are guarded.
    pools: bounds of the active content.
    pooled: names of the clients whose new conversations are pooled, empty for every client; None for none.
    """

    pager: Pager
    counter: TokenCounter
    residency: Residency
    journals: JournalStore | None = None
    outside: Outside | None = None
    make_recall: Callable[[SessionLog], SessionRecall] | None = None
    excluded: tuple[str, ...] = EXCLUDED
    valve: Valve = NO_VALVE
    manifest: int | None = None
    rereads: bool = True
    marks: bool = True
    shared: EngineResources | None = None
    snapshots: SnapshotStore | None = None
    floor_paging: FloorPaging = "never"
    tool_uses: ToolUses | None = None
    guards: GuardSettings = DEFAULT_GUARDS
    pools: PoolRules = USUAL
    pooled: tuple[str, ...] | None = None
