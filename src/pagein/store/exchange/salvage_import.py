"""Import journal lines that a repair moved to `STORE.salvaged.jsonl`.

Each line has the session, the place and the bytes of an entry. Earlier repairs removed every entry after a damaged entry, intact or
not. The import puts intact entries back in their places, and bridges the gaps between them.
"""

import base64
from collections import defaultdict
from collections.abc import Iterable

from pagein.errors import BadInput
from pagein.model.codec import decode_entry
from pagein.model.entries import Entry, is_bridge
from pagein.model.messages import UnreadableLine
from pagein.policy.privacy.exclusions import EXCLUDED
from pagein.ports import WholeStore
from pagein.store.exchange.export_redaction import ExportRedaction
from pagein.store.exchange.import_bounds import count, record, text
from pagein.store.exchange.import_state import ImportReport
from pagein.store.exchange.private_evictions import PrivateEvictions
from pagein.store.upkeep.journal_check import check_journals
from pagein.store.upkeep.store_check import CheckReport, CheckRun
from pagein.store.upkeep.store_repair import bridge_holes


def import_salvage(
    store: WholeStore, lines: Iterable[bytes], name: str, patterns: tuple[str, ...] = EXCLUDED
) -> ImportReport:
    """Restore every readable entry in a single transaction.

    Raises BadInput for any other kind of file, and StoreError.
    """
    done = ImportReport()
    with store.exclusive():
        for session, entries in _read_sessions(lines, name, done).items():
            _put_back(store, session, entries, done, patterns)
        looks = CheckRun(store, CheckReport(), lambda _: (), lambda _: None)
        for broken in check_journals(looks):
            bridge_holes(store, broken)
    return done


def _read_sessions(lines: Iterable[bytes], name: str, done: ImportReport) -> dict[str, dict[int, Entry]]:
    found: dict[str, dict[int, Entry]] = defaultdict(dict)
    for number, line in enumerate(lines, start=1):
        try:
            fields = record(line)
            session, place = text(fields["session"]), count(fields["place"], "place", 1)
            entry = decode_entry(base64.b64decode(text(fields["line"]), validate=True))
        except (BadInput, KeyError, TypeError, ValueError) as problem:
            raise BadInput(f"{name}, line {number}: {problem}; nothing was imported") from problem
        done.counts["entry"] = done.counts.get("entry", 0) + 1
        if isinstance(entry, UnreadableLine):
            done.lost.append(f"entry {place} of session {session!r}: {entry.why}")
        else:
            found[session][place] = entry
    return found


def _put_back(
    store: WholeStore, session: str, entries: dict[int, Entry], done: ImportReport, patterns: tuple[str, ...]
) -> None:
    here = [(place, entry) for place, entry in store.news(session) if isinstance(entry, Entry)]
    known = {entry.id for _, entry in here if not is_bridge(entry)}
    taken = {line.place: (line.session, line.id) for line in store.journal_lines()}
    withholding = ExportRedaction(PrivateEvictions(patterns=patterns))
    fresh = {place: entry for place, entry in sorted(entries.items()) if entry.id not in known}
    for place, entry in fresh.items():
        if taken.get(place, (session, entry.id)) != (session, entry.id):
            raise BadInput(f"place {place} of the journals is another entry's here: this is no salvage of this store")
        kept = withholding.entry(entry)
        done.withheld += kept is not entry
        store.put_entry(session, place, kept)
        done.added["entry"] = done.added.get("entry", 0) + 1
    last = max((place for place, _ in here), default=0)
    if fresh and last < max(fresh):  # the session did not continue after the gap meanwhile
        store.stand(session, fresh[max(fresh)].id)
