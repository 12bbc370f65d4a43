"""Tell which recordings are of sessions that ran behind pagein: their recorded usage is the smaller one already."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from pagein.errors import BadInput, StoreError
from pagein.model.entries import Entry, RequestSent
from pagein.past_sessions.recorded_journal import session_name
from pagein.ports import JournalStore
from pagein.replay.readers import SessionFile, Source, read_source, sources_of


class JournaledSessions:
    """The sessions of which some stores know sent requests. A store that cannot be read knows none."""

    def __init__(self, stores: Sequence[JournalStore]) -> None:
        self._stores = stores

    def have(self, path: Path) -> bool:
        """Return whether each session that is recorded in a file ran behind pagein."""
        is_any = False
        with contextlib.suppress(BadInput):  # whoever replays the file tells what is wrong with it
            for name in _names_in(path) if self._stores else ():
                is_any = True
                if not name or not any(_has_sent(store, name) for store in self._stores):
                    return False
        return is_any


def _names_in(path: Path) -> Iterator[str]:
    """Yield the names under which a gateway journals the sessions of a file; "" for one that the recording does not name."""
    for source in sources_of(SessionFile(path, path.name)):
        for session in read_source(source) if isinstance(source, Source) else ():
            yield session_name(session.head, "") if session.head.is_named else ""


def _has_sent(store: JournalStore, name: str) -> bool:
    with contextlib.suppress(StoreError):
        entries = store.entries(name) if store.leaf(name) is not None else ()
        return any(isinstance(entry, Entry) and isinstance(entry.body, RequestSent) for entry in entries)
    return False
