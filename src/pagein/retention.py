"""Retention of ended sessions: announce the removal of journals, wait, and remove the journals. Their objects stay.

Rules of this file
------------------
1. A session is removed only if it was announced at least `GRACE` before, and was not used since.
2. Announcements are entries of the journal `RETENTION`, so that every process and every command knows them.
3. The objects of a session are made before its journal is removed.
4. Sessions that this process may hold open, because they were used since it began, stay.
5. Gateways of one store may have different settings. Each removes what is due by its own, and leaves the announcements of the others
   until they lapse. An announcement lapses if nobody carries it out: its gateway is gone, or has other settings now.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pagein.engine.log.journal import entry_name
from pagein.memory.indexer import Indexer
from pagein.model.entries import Entry, NoteEntry
from pagein.model.journal_notes import OtherNote
from pagein.model.store_inventory import KeptSession
from pagein.ports import JournalStore, WholeStore
from pagein.store.upkeep.collection import DAY, Retention, collect, ended_sessions, plan

RETENTION: Final = "pagein.retention"
"""Name of the journal of announcements."""
GRACE: Final = DAY
"""Seconds from the announcement of a removal to the removal."""
IDLE: Final = 7 * DAY
"""Seconds without use after which a session counts as ended for a quota."""
LAPSE: Final = 7 * DAY
"""Seconds from the earliest removal after which an announcement lapses, except for a gateway that would remove the session itself."""
_SECOND: Final = 1.0
"""What the time of the last use may lack: it is a whole number of seconds."""
_KIND: Final = "retention.announced"


@dataclass(frozen=True, slots=True)
class RetentionNews:
    """What a run of the retention did.

    announced: sessions that were announced now
    removed: sessions whose journals were removed now
    freed: approximate number of bytes that were freed
    """

    announced: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    freed: int = 0

    @property
    def lines(self) -> tuple[str, ...]:
        """What there is to tell a person."""
        told: list[str] = []
        if self.announced:
            told.append(
                f"{len(self.announced)} sessions unused for long will lose their journals, in {GRACE / 3600:.0f} hours at the earliest; "
                "what they said and touched stays searchable, outputs that left their windows cannot be recalled any more. "
                "`pagein status` counts them; the settings retention = 0 and quota = 0 keep them"
            )
        if self.removed:
            told.append(f"removed the journals of {len(self.removed)} sessions, about {self.freed:,} bytes")
        return tuple(told)


@dataclass(frozen=True, slots=True)
class Announcement:
    """The sessions to remove, each with the earliest time of its removal, seconds since 1970."""

    sessions: Mapping[str, float] = field(default_factory=dict)


def announcement(store: JournalStore) -> Announcement:
    """Return the last announcement. Raises StoreError."""
    last = next(iter(store.entries(RETENTION)), None)
    if not isinstance(last, Entry) or not isinstance(last.body, NoteEntry):
        return Announcement()
    try:
        told = json.loads(last.body.data)
    except ValueError:
        return Announcement()
    sessions = told.get("sessions") if isinstance(told, dict) else None
    if not isinstance(sessions, dict):
        return Announcement()
    return Announcement({name: float(at) for name, at in sessions.items() if isinstance(at, int | float)})


def apply_retention(
    store: WholeStore,
    keep: float | None,
    now: float,
    began: float,
    quota: int | None = None,
    go_on: Callable[[], bool] = lambda: True,
) -> RetentionNews:
    """Announce the due sessions, and remove the sessions after their grace period. Raises StoreError.

    keep: seconds since its last use after which a session is removed; None for never
    now, began: the time, and the beginning of this process, in seconds since 1970
    quota: bytes; if the store takes more, the sessions that were not used for `IDLE` are removed too, the oldest first
    go_on: called between two transactions, to wait for calls; returns whether to go on
    """
    idle = math.inf if keep is None else keep
    if quota is not None:
        idle = min(idle, IDLE)
    retention = Retention(idle=idle, keep=keep, quota=quota)
    ended = _last_uses(ended_sessions(store, retention, now))
    due = [name for name, last in ended.items() if last <= began]  # another gateway may remove the rest
    known = announcement(store).sessions
    used = ended if known.keys() <= ended.keys() else _last_uses(store.sessions())
    # an announcement made before the session was used again counts no more
    counting = {
        name: at
        for name, at in known.items()
        if name in used and used[name] <= at - GRACE and (name in ended or now < at + LAPSE)
    }
    told = dict.fromkeys(due, now + GRACE) | counting
    fresh = tuple(sorted(told.keys() - counting.keys()))
    ripe = frozenset(name for name in due if told[name] <= now)
    planned = None
    if ripe:
        has_objects = Indexer(store).follow_all(ripe, now)
        planned = collect(store, plan(store, retention, now, only=ripe), go_on, has_objects)
    removed = () if planned is None else tuple(one.name for one in planned.sessions)
    left = {name: at for name, at in told.items() if name not in removed}
    if left != known:
        _announce(store, left, now)
    return RetentionNews(fresh, removed, 0 if planned is None else planned.freed)


def _last_uses(sessions: Iterable[KeptSession]) -> dict[str, float]:
    return {one.name: one.touched + _SECOND for one in sessions if one.touched is not None}


def _announce(store: WholeStore, sessions: Mapping[str, float], now: float) -> None:
    """Journal which sessions will be removed, in place of the announcement before."""
    body = NoteEntry.of(OtherNote(_KIND, json.dumps({"sessions": dict(sorted(sessions.items()))})))
    with store.exclusive():
        store.drop_sessions([RETENTION])
        store.append(RETENTION, [Entry(entry_name(None, body), None, body, now)])
