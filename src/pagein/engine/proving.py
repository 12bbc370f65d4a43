"""Kept sessions held to law 2: every branch of a journal, before the audit."""

from collections.abc import Callable, Iterable, Iterator

from pagein.engine.readlog import event_of
from pagein.model.entries import Entry, EntryId
from pagein.model.names import ContentHash
from pagein.model.reading import Malformed, ReadEvent
from pagein.policy.auditing import audit


def objections(entries: Iterable[Entry], stored: Callable[[ContentHash], bytes | None]) -> list[str]:
    """What a kept session told its model and should not have, each once, in words. Entries come parents first, branches whole.

    stored: the bytes of a version, None where they are lost.
    """
    found: dict[tuple[EntryId, str], None] = {}
    for branch in _branches(entries):
        told = [(entry.id, event) for entry in branch if (event := event_of(entry.body)) is not None]
        events: list[ReadEvent] = []
        for name, event in told:
            events.append(event)
            if isinstance(event, Malformed):
                found[name, f"entry {name}: a record of reading that cannot be understood: {event.why}"] = None
        for one in audit(events, stored):
            line = "" if one.line is None else f", line {one.line}"
            name = told[one.place][0]
            found[name, f"entry {name}: {one.path}{line}: {one.why}"] = None
    return [words for _, words in found]


def _branches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """From the root to each entry that nothing stands behind."""
    known = {entry.id: entry for entry in entries}
    inner = {entry.parent for entry in known.values()}
    for tip in (entry for entry in known.values() if entry.id not in inner):
        branch = [tip]
        while (parent := branch[-1].parent) is not None:
            branch.append(known[parent])
        yield branch[::-1]
