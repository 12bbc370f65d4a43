"""Repair of a store: what was lost in one place is taken from another, and what nobody can use is taken out.

Rules of this file
------------------
1. Bytes are put back only where they hash to the name that is missed: a journal keeps every tool result that it paged out.
2. What is taken out of a journal is kept elsewhere first. The engine passes over such entries anyway; what is lost is clutter.
3. A session that stands at a lost entry stands at the last whole one from now on.
4. Every repair is a transaction of its own, and a second run finds nothing left to do.
"""

from collections.abc import Callable, Iterator, Sequence

from pagein.model.codec import decode_entry
from pagein.model.entries import Entry, PagedOut, Said
from pagein.model.holdings import JournalLine
from pagein.model.messages import ToolResult
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, Origin, StoredObject
from pagein.model.sealing import encoded
from pagein.policy.stubs import description
from pagein.ports import WholeStore
from pagein.store.checking import Checked
from pagein.store.checking_journals import Broken

Salvage = Callable[[JournalLine], object]


def mend(checked: Checked, broken: Sequence[Broken], salvage: Salvage) -> None:
    """Repair what a check found, as far as that can be done; another check tells how far. salvage: keeps a line that is about to go."""
    stubs = [(one.session.name, paged) for one in broken for paged in one.bare_stubs]
    wanted = {*checked.bad, *(paged.content for _, paged in stubs), *_missed(checked)}
    found = _found_in_journals(checked.store, wanted) if wanted else {}
    with checked.store.exclusive():
        checked.store.put_many(tuple(found.values()))
        for session, paged in stubs:
            if paged.content in found:
                _restore(checked.store, session, paged, found[paged.content])
    for one in broken:
        _tidy(checked.store, one, salvage)


def _missed(checked: Checked) -> set[ContentHash]:
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
        if isinstance(entry, Entry) and isinstance(entry.body, Said):
            for block in entry.body.message.blocks:
                if isinstance(block, ToolResult):
                    yield encoded(block.text)


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


def _tidy(store: WholeStore, broken: Broken, salvage: Salvage) -> None:
    lost, name = set(broken.lost), broken.session.name
    for line in store.journal_lines() if lost else ():
        if line.session == name and line.place in lost:
            salvage(line)
    with store.exclusive():
        store.drop_entries(name, sorted(lost))
        if broken.stands_nowhere and broken.leaf is not None:
            store.stand(name, broken.leaf)
        elif broken.stands_nowhere:
            store.drop_sessions([name])
