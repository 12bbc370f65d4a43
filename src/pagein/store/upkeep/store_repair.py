"""Repair a store: restore lost content from other places, and bridge holes in journals.

Rules of this file
------------------
1. Bytes are restored only if their hash is the missing hash: a journal contains every tool result evicted from its session.
2. A bridge with the same id takes the place of a lost entry, after the entry appended before it. So the entries after it are kept.
   A bridge invents no content: the window continues without the entry, and nothing shown before it serves as evidence. Every check
   reports the bridge until the entry is appended again or imported.
3. An undecodable line is saved elsewhere before a bridge takes its place.
4. A session whose leaf is missing gets its last entry as leaf.
5. Every repair is a separate transaction, and a second run finds nothing left to do.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pagein.model.codec import decode_entry
from pagein.model.entries import Entry, EntryId, MessageEntry, PagedOut, bridge
from pagein.model.messages import ToolResult
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, Origin, StoredObject
from pagein.model.store_inventory import JournalLine
from pagein.model.version_hash import encode_content
from pagein.policy.stubs.result_stubs import description
from pagein.ports import WholeStore
from pagein.store.sql.sql_rows import plain
from pagein.store.upkeep.journal_check import JournalDamage, check_journals
from pagein.store.upkeep.store_check import CheckReport, CheckRun

Salvage = Callable[[JournalLine], object]


def mend(checked: CheckRun, broken: Sequence[JournalDamage], salvage: Salvage) -> None:
    """Repair the faults found by a check as far as possible; another check shows the result.

    salvage: saves a line about to be replaced
    """
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
    """Return entries stored under a damaged session name to their sessions. Return whether there were any.

    A misplaced entry is missing in its own session, and has neither parent nor children in the session where it is
    stored.
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
    """Return tool results in journals whose hashes are wanted."""
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
    """Recreate the record of a lost object from its stub, only if its workspace is unambiguous."""
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
    """Put bridges in place of missing entries. Undecodable lines stay."""
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
    """Put a bridge in place of each undecodable entry and of each missing entry."""
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
            # the lost entry was appended before its children, so a place before them is free
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
    """Return the entry of a line stored under a wrong id, if no other entry refers to the wrong id; otherwise None."""
    if line.damaged or line.place not in broken.unreadable:
        return None
    entry = decode_entry(line.line)
    return entry if isinstance(entry, Entry) and line.id not in map(plain, broken.holes) else None


def _id_of(line: JournalLine) -> EntryId:
    # databases store some ids only in the form of `plain`
    entry = decode_entry(line.line)
    return entry.id if isinstance(entry, Entry) else line.id


def _stand(store: WholeStore, name: str) -> None:
    entries = [entry for entry in store.entries(name) if isinstance(entry, Entry)]
    leaf = store.leaf(name)
    if leaf is not None and any(leaf in (entry.id, plain(entry.id)) for entry in entries):
        return  # a bridge has restored the leaf
    if entries:
        store.stand(name, entries[-1].id)
    elif leaf is not None:  # nothing is left but where it stood
        store.put_entry(name, store.last_place() + 1, bridge(leaf, None))
    else:
        store.drop_sessions([name])
