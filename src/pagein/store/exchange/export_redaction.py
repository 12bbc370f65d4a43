"""Redact an export: leave out content of excluded files, wherever a message quotes the content (law 9).

Stores never contain excluded files. But the list of excluded names may have grown since, and an export travels further than
a store. So the export leaves out results and arguments of calls that may show an excluded file, and every record of its reads.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.errors import BadName
from pagein.model.codec import decode_entry
from pagein.model.entries import Entry, MessageEntry, NoteEntry
from pagein.model.journal_notes import ExcludedReadNote
from pagein.model.json_text import decode_json
from pagein.model.messages import ToolCall
from pagein.model.names import ContentHash
from pagein.model.store_inventory import JournalLine
from pagein.model.versions import Version
from pagein.policy.privacy.exclusions import SessionRedaction as Messages
from pagein.policy.privacy.exclusions import is_excluded

_PATH: Final = b"pathKey"


@dataclass(slots=True)
class ExportRedaction:
    """Redactor of a single session, entry by entry."""

    said: Messages = field(default_factory=Messages)
    _private: set[str] = field(default_factory=set)  # calls whose results are left out

    def entry(self, entry: Entry) -> Entry:
        """Return the redacted entry; the same object if there is nothing to redact."""
        match entry.body:
            case MessageEntry(message=message):
                kept = self.said.of(message, self._private)
                for block in kept.blocks:
                    if isinstance(block, ToolCall):
                        (self._private.discard if block.withheld is None else self._private.add)(block.id)
                return entry if kept is message else replace(entry, body=replace(entry.body, message=kept))
            case NoteEntry(data=data) if _hashes_of_excluded(data.encode("utf-8", "surrogatepass")):
                return replace(entry, body=NoteEntry.of(ExcludedReadNote()))
        return entry


def blobs_of_excluded(lines: Iterable[JournalLine]) -> set[ContentHash]:
    """Return the hashes of content recorded by reads of excluded files, over several journal lines."""
    found: set[ContentHash] = set()
    for line in lines:
        if _PATH in line.line:
            entry = decode_entry(line.line)
            if isinstance(entry, Entry) and isinstance(entry.body, NoteEntry):
                found |= _hashes_of_excluded(entry.body.data.encode("utf-8", "surrogatepass"))
    return found


def hashes_of_excluded(entry: Entry) -> set[ContentHash]:
    """Return the hashes of content recorded by a read of an excluded file, if this entry records a read."""
    if not isinstance(entry.body, NoteEntry):
        return set()
    return _hashes_of_excluded(entry.body.data.encode("utf-8", "surrogatepass"))


def is_withheld(version: Version) -> bool:
    """Return whether a version belongs to a file that must not be stored."""
    path = version.metadata.get("path")
    return isinstance(path, str) and is_excluded(path)


def _hashes_of_excluded(data: bytes) -> set[ContentHash]:
    if _PATH not in data:
        return set()
    try:
        record = decode_json(data)
    except (ValueError, RecursionError):
        return set()
    answer = (
        record.get("textHash") if isinstance(record, dict) else None
    )  # some read answers are stored, with lines of the file
    record = record.get("readcache", record) if isinstance(record, dict) else {}
    if not isinstance(record, dict) or not is_excluded(str(record.get(_PATH.decode()))):
        return set()
    found: set[ContentHash] = set()
    for name in (record.get("servedHash"), record.get("baseHash"), answer):
        try:
            found.add(ContentHash.parse(str(name)))
        except BadName:
            continue
    return found
