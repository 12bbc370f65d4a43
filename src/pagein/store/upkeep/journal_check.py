"""Check journals: parents of entries, leaves of sessions, content of stubs, and evidence for read answers."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from pagein.errors import BadName
from pagein.model.entries import Body, Entry, EntryId, EpochEntry, PagedOut, PreviewEntry, is_bridge
from pagein.model.messages import UnreadableLine
from pagein.model.names import ContentHash
from pagein.model.objects import EXPIRED, ObjectId, object_ids_in
from pagein.model.store_inventory import OWN_JOURNAL, KeptSession
from pagein.ports import JournalStore
from pagein.store.sql.sql_rows import plain
from pagein.store.upkeep.store_check import CheckRun, guard_check


@dataclass(slots=True)
class JournalDamage:
    """Damage of a session's journal.

    unreadable: places of undecodable entries
    holes: ids of missing entries, each with the place of the first entry after it
    bare_stubs: evicted results that cannot be recalled
    stands_nowhere: whether the leaf is missing
    """

    session: KeptSession
    unreadable: list[int] = field(default_factory=list)
    holes: dict[EntryId, int] = field(default_factory=dict)
    bare_stubs: list[PagedOut] = field(default_factory=list)
    stands_nowhere: bool = False


def check_journals(checked: CheckRun) -> list[JournalDamage]:
    """Check every session. Return the damaged sessions, for repair."""
    found: list[JournalDamage] = []
    for session in checked.store.sessions():
        checked.saw(OWN_JOURNAL if session.is_own else "session")
        broken = JournalDamage(session)
        guard_check(checked, "session", partial(_look, checked, broken), f"session {session.name!r}")
        if broken.unreadable or broken.holes or broken.bare_stubs or broken.stands_nowhere:
            found.append(broken)
    return found


def _look(checked: CheckRun, broken: JournalDamage) -> None:
    _check_session(checked, broken, _entries(checked, broken))


def _entries(checked: CheckRun, broken: JournalDamage) -> list[Entry]:
    """Return the entries with a complete branch to the root, parents first."""
    good: dict[EntryId, Entry] = {}
    hanging: dict[EntryId, EntryId] = {}
    counts: Counter[EntryId] = Counter()
    for place, entry in checked.store.news(broken.session.name):
        checked.saw("entry")
        where = f"entry {place} of session {broken.session.name!r}"
        if isinstance(entry, UnreadableLine):
            broken.unreadable.append(place)
            checked.report.add("entry", where, f"cannot be read: {entry.why}")
            continue
        if entry.parent is None or entry.parent in good:
            good[entry.id] = entry
        else:  # report the hole once, not for each entry after it
            hole = hanging[entry.id] = hanging.get(entry.parent, entry.parent)
            broken.holes.setdefault(hole, place)
            counts[hole] += 1
        if is_bridge(entry):
            checked.report.add("entry", where, f"{entry.id!r} was lost; the session goes on without it")
    for hole, count in counts.items():
        where = f"entry {hole!r} of session {broken.session.name!r}"
        checked.report.add("entry", where, f"is not there; entries that stand behind it: {count}")
    return list(good.values())


def _entries_before_bridges(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries on complete branches. After a bridge, the content shown to the model is unknown."""
    whole: dict[EntryId, Entry] = {}
    for entry in entries:
        if not is_bridge(entry) and (entry.parent is None or entry.parent in whole):
            whole[entry.id] = entry
    return list(whole.values())


def _check_session(checked: CheckRun, broken: JournalDamage, entries: list[Entry]) -> None:
    session = broken.session
    where = f"session {session.name!r}"
    if (session.leaf is not None or entries or broken.unreadable or broken.holes) and _leaf_among(
        session, entries
    ) is None:
        broken.stands_nowhere = True
        checked.report.add("session", where, f"stands at {session.leaf!r}, which is not there")
    away: set[str] = set()
    for entry in entries:
        for paged in entry.body.paged if isinstance(entry.body, EpochEntry | PreviewEntry) else ():
            checked.saw("stub")
            why = _recall_fault(checked, paged.object_id, paged.content)
            if why is None and not _leads_back(entry.body, paged, away):
                why = "its text does not name it"
            if why is not None:
                broken.bare_stubs.append(paged)
                checked.report.add("stub", f"{paged.object_id} of {where}", why)
            away.add(paged.object_id)
    for thought in (entry.body.thought for entry in entries if isinstance(entry.body, EpochEntry)):
        if thought is not None:
            checked.saw("thinking")
            why = _recall_fault(checked, thought.object_id, thought.content)
            if why is not None:
                checked.report.add("thinking", f"{thought.object_id} of {where}", why)
    _check_turns(checked, where, entries)
    for objection in checked.audit(_entries_before_bridges(entries)):
        checked.report.add("answer", where, objection)


def _leads_back(body: Body, paged: PagedOut, away: set[str]) -> bool:
    """Return whether the replacement of a result says how to recall the result.

    away: ids evicted earlier in this session

    An answer to a repeated read names no id: it refers to text above it, which the audit verifies. A later stub in its
    place does name an id. So does the stub of a client's own reference to an earlier read, which names that read.
    """
    text = paged.short if isinstance(body, PreviewEntry) and paged.object_id not in paged.stub else paged.stub
    return any(name == paged.object_id or name in away for name in object_ids_in(text))


def _check_turns(checked: CheckRun, where: str, entries: Iterable[Entry]) -> None:
    """Check turns evicted as a whole."""
    for left in (one for entry in entries if isinstance(entry.body, EpochEntry) for one in entry.body.turns):
        checked.saw("turn")
        why = _recall_fault(checked, left.object_id, left.content)
        if why is None and left.object_id not in left.text:
            why = "its text does not name it"
        if why is not None:
            checked.report.add("turn", f"{left.object_id} of {where}", why)


def _recall_fault(checked: CheckRun, object_id: str, content: ContentHash) -> str | None:
    """Return why content evicted under this id cannot be recalled, or None if recallable."""
    try:
        stored = checked.store.find(ObjectId.parse(object_id))
    except BadName as problem:
        return str(problem)
    if stored is None or stored.kind == EXPIRED:
        return "its object is gone"
    if stored.content != content:
        return "its object holds other content"
    return checked.lacks(stored.content)


def leaf_of(store: JournalStore, session: KeptSession) -> EntryId | None:
    """Return the id of a session's leaf, or None if the leaf is missing."""
    return _leaf_among(session, (entry for entry in store.entries(session.name) if isinstance(entry, Entry)))


def _leaf_among(session: KeptSession, entries: Iterable[Entry]) -> EntryId | None:
    # databases store some ids only in the form of `plain`
    return next((entry.id for entry in entries if session.leaf in (entry.id, plain(entry.id))), None)
