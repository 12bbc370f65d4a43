"""Repair of a store: what was lost in one place is taken from another, and holes in journals are bridged.

Rules of this file
------------------
1. Bytes are put back only where they hash to the name that is missed: a journal keeps every tool result that it paged out.
2. Where an entry is lost, a bridge of its name takes its place, behind the entry that was appended before it. So what stands behind it is
   kept. A bridge makes nothing up: the window goes on without the entry, and nothing shown before it is relied upon. It is told by every
   check until the entry is said again or imported.
3. A line that cannot be read is kept elsewhere before a bridge takes its place.
4. A session that stands at an entry which is not there stands at the last one that is.
5. Every repair is a transaction of its own, and a second run finds nothing left to do.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pagein.model.codec import decode_entry
from pagein.model.entries import Entry, EntryId, MessageEntry, PagedOut, bridge
from pagein.model.messages import ToolResult
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, Origin, StoredObject
from pagein.model.store_listing import JournalLine
from pagein.model.version_hash import encode_content
from pagein.policy.stubs.result_stubs import description
from pagein.ports import WholeStore
from pagein.store.sql.sql_blobs import plain
from pagein.store.upkeep.journal_check import JournalDamage, check_journals
from pagein.store.upkeep.store_check import CheckReport, CheckRun

Salvage = Callable[[JournalLine], object]


def mend(checked: CheckRun, broken: Sequence[JournalDamage], salvage: Salvage) -> None:
    """Repair what a check found, as far as that can be done; another check tells how far. salvage: keeps a line that is about to go."""
    stubs = [(one.session.name, paged) for one in broken for paged in one.bare_stubs]
    wanted = {*checked.bad, *(paged.content for _, paged in stubs), *_missing_contents(checked)}
    found = _found_in_journals(checked.store, wanted) if wanted else {}
    with checked.store.exclusive():
        checked.store.put_many(tuple(found.values()))
        for session, paged in stubs:
            if paged.content in found:
                _restore(checked.store, session, paged, found[paged.content])
    if _gather(checked.store, broken):
        broken = check_journals(replace(checked, report=CheckReport(), audit=lambda _: ()))
    for one in broken:
        _tidy(checked.store, one, salvage)


def _gather(store: WholeStore, broken: Sequence[JournalDamage]) -> bool:
    """Bring entries back to their sessions that are kept under a session's name which is damaged. Whether there were any.

    Such an entry is missed by one session, and in the one that it is kept under nothing stands before it or behind it.
    """
    astray = {place for one in broken for place in one.holes.values()}
    missed = {hole: one.session.name for one in broken for hole in one.holes}
    candidates: list[tuple[JournalLine, Entry]] = []
    parents: set[tuple[str, EntryId | None]] = set()
    for line in store.journal_lines() if astray else ():
        entry = None if line.damaged else decode_entry(line.line)
        if isinstance(entry, Entry):
            parents.add((line.session, entry.parent))
            if line.place in astray and missed.get(entry.id, line.session) != line.session:
                candidates.append((line, entry))
    found = [(line, entry) for line, entry in candidates if (line.session, entry.id) not in parents]
    for line, entry in found:
        with store.exclusive():
            store.put_entry(missed[entry.id], line.place, entry)
            if not any(True for _ in store.news(line.session)):
                store.drop_sessions([line.session])
    return bool(found)


def _missing_contents(checked: CheckRun) -> set[ContentHash]:
    return {one.content for one in checked.store.paged_objects() if checked.lacks(one.content) is not None}


def _found_in_journals(store: WholeStore, wanted: set[ContentHash]) -> dict[ContentHash, bytes]:
    """Tool results that stand in journals and hash to what is wanted."""
    found: dict[ContentHash, bytes] = {}
    for content in _results(store):
        name = ContentHash.of(content)
        if name in wanted:
            found[name] = content
    return found


def _results(store: WholeStore) -> Iterator[bytes]:
    for line in store.journal_lines():
        entry = None if line.damaged else decode_entry(line.line)
        if isinstance(entry, Entry) and isinstance(entry.body, MessageEntry):
            for block in entry.body.message.blocks:
                if isinstance(block, ToolResult):
                    yield encode_content(block.text)


def _restore(store: WholeStore, session: str, paged: PagedOut, content: bytes) -> None:
    """The record of an object that is gone, made anew from what its stub says. Only where it is clear whose it is."""
    object_id = ObjectId.parse(paged.object_id)
    workspaces = {one.workspace for one in store.paged_objects()}
    if store.find(object_id) is not None or len(workspaces) != 1:
        return
    text = content.decode("utf-8", "surrogatepass")
    origin = Origin(session, paged.call_id)
    stored = StoredObject(
        object_id, paged.content, "toolcall", workspaces.pop(), origin, description(text), paged.tokens, paged.chars
    )
    store.put_objects([(stored, content)])


def bridge_holes(store: WholeStore, broken: JournalDamage) -> None:
    """Put bridges before what stands behind entries that are not there. Lines that cannot be read stay."""
    if broken.holes:
        broken.unreadable = []
        with store.exclusive():
            _bridge(store, broken, lambda _: None)


def _tidy(store: WholeStore, broken: JournalDamage, salvage: Salvage) -> None:
    name = broken.session.name
    with store.exclusive():
        if broken.unreadable or broken.holes:
            _bridge(store, broken, salvage)
        if broken.stands_nowhere:
            _stand(store, name)


def _bridge(store: WholeStore, broken: JournalDamage, salvage: Salvage) -> None:
    """Put a bridge in the place of each entry that cannot be read, and before what stands behind one that is not there at all."""
    lines = list(store.journal_lines())
    taken = {line.place for line in lines}
    own = [line for line in lines if line.session == plain(broken.session.name)]
    misnamed = {line.place: entry for line in own if (entry := _entry_under_wrong_name(line, broken)) is not None}
    for place, entry in misnamed.items():
        store.put_entry(broken.session.name, place, entry)
        broken.holes.pop(entry.id, None)
    unreadable = set(broken.unreadable) - misnamed.keys()
    known = {plain(hole): hole for hole in broken.holes}
    bridges = {line.place: known.get(line.id, line.id) for line in own if line.place in unreadable and line.id}
    named = set(bridges.values())
    for hole, behind in broken.holes.items():
        if hole not in named:
            # what was lost was appended before what stands behind it, so one of the places before that is free
            free = next((one for one in range(behind - 1, 0, -1) if one not in taken), None)
            if free is not None:
                taken.add(free)
                bridges[free] = hole
    for line in own:
        if line.place in bridges:
            salvage(line)
    places = sorted({line.place for line in own if line.place not in unreadable} | bridges.keys())
    ids = {line.place: _id_of(line) for line in own} | bridges
    before: EntryId | None = None
    for place in places:
        if place in bridges:
            store.put_entry(broken.session.name, place, bridge(bridges[place], before))
        before = ids[place]


def _entry_under_wrong_name(line: JournalLine, broken: JournalDamage) -> Entry | None:
    """The entry in a line that is kept under another name, where its own is the right one: nobody stands behind the other."""
    if line.damaged or line.place not in broken.unreadable:
        return None
    entry = decode_entry(line.line)
    return entry if isinstance(entry, Entry) and line.id not in map(plain, broken.holes) else None


def _id_of(line: JournalLine) -> EntryId:
    # databases keep some ids only as `plain` has them
    entry = decode_entry(line.line)
    return entry.id if isinstance(entry, Entry) else line.id


def _stand(store: WholeStore, name: str) -> None:
    entries = [entry for entry in store.entries(name) if isinstance(entry, Entry)]
    leaf = store.leaf(name)
    if leaf is not None and any(leaf in (entry.id, plain(entry.id)) for entry in entries):
        return  # a bridge has brought it back
    if entries:
        store.stand(name, entries[-1].id)
    else:
        store.drop_sessions([name])
