"""Redact an export: leave out content of excluded files, wherever a message quotes the content (law 9).

Stores never contain excluded files. But the list of excluded names may have grown since, and an export travels further than
a store. So the export leaves out results and arguments of calls that may show an excluded file, also where they were evicted, and every record
of its reads.
"""

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.errors import BadInput, BadName, StoreError
from pagein.model.chats import ChatCall, turns_from_value
from pagein.model.codec import decode_entry
from pagein.model.entries import Entry, MessageEntry, NoteEntry
from pagein.model.journal_notes import ExcludedReadNote
from pagein.model.json_text import decode_json
from pagein.model.messages import FileAccess, Message, ToolCall
from pagein.model.names import ContentHash
from pagein.model.references import Reference
from pagein.model.store_inventory import JournalLine
from pagein.model.values import canonical
from pagein.model.version_hash import value_of
from pagein.model.versions import Version
from pagein.policy.privacy.exclusions import SessionRedaction as Messages
from pagein.policy.privacy.exclusions import is_excluded, may_show_excluded
from pagein.store.exchange.private_evictions import PrivateEvictions

_PATH: Final = b"pathKey"


@dataclass(slots=True)
class ExportRedaction:
    """Redactor of a single session, entry by entry."""

    evictions: PrivateEvictions = field(default_factory=PrivateEvictions)
    said: Messages = field(init=False)

    def __post_init__(self) -> None:
        self.said = Messages(self.evictions.patterns)

    def entry(self, entry: Entry) -> Entry:
        """Return the redacted entry; the same object if there is nothing to redact."""
        self.evictions.add(entry.body)
        match entry.body:
            case MessageEntry(message=message):
                kept = self.said.of(message, self.evictions.calls)
                return entry if kept is message else replace(entry, body=replace(entry.body, message=kept))
            case NoteEntry() if hashes_of_excluded(entry, self.evictions.patterns):
                return replace(entry, body=NoteEntry.of(ExcludedReadNote()))
        body = self.evictions.redact(entry.body)
        return entry if body is entry.body else replace(entry, body=body)


def blobs_of_excluded(lines: Iterable[JournalLine], patterns: tuple[str, ...]) -> set[ContentHash]:
    """Return the hashes of content recorded by reads of excluded files, over several journal lines."""
    found: set[ContentHash] = set()
    for line in lines:
        if _PATH in line.line:
            entry = decode_entry(line.line)
            if isinstance(entry, Entry):
                found |= hashes_of_excluded(entry, patterns)
    return found


def hashes_of_excluded(entry: Entry, patterns: tuple[str, ...]) -> set[ContentHash]:
    """Return the hashes of content recorded by a read of an excluded file, if this entry records a read."""
    if not isinstance(entry.body, NoteEntry):
        return set()
    return _hashes_of_excluded(entry.body.data.encode("utf-8", "surrogatepass"), patterns)


def is_withheld(version: Version, patterns: tuple[str, ...]) -> bool:
    """Return whether a version belongs to a file that must not be stored."""
    path = version.metadata.get("path")
    return isinstance(path, str) and is_excluded(path, patterns)


def may_show_withheld(
    version: Version, withheld: set[str], read: Callable[[ContentHash], bytes], patterns: tuple[str, ...]
) -> bool:
    """Return whether a version is that of an excluded file, of a call that may show one, or of a chat with such a call.

    withheld: ids of such objects, as far as known: calls come behind their files, chats behind their calls
    read: returns the content with a hash
    """
    if version.id in withheld or is_withheld(version, patterns):
        return True
    with contextlib.suppress(StoreError, BadInput):
        if version.type == "toolcall":
            files = version.metadata.get("file_refs")
            touched = [one for one in files if isinstance(one, Reference)] if isinstance(files, tuple) else []
            return any(one.target in withheld for one in touched) or may_show_excluded(
                _call(version, touched, read), patterns
            )
        if version.type == "chat":
            pages = [name for field, name in version.additional.items() if field.partition(".")[0] == "turns"]
            turns = [turn for page in pages for turn in turns_from_value(value_of(read(page)))]
            steps = [step for turn in turns for step in turn.steps]
            blocks = [block for step in steps if isinstance(step, Message) for block in step.blocks]
            answered = {step.call_id: step.object.target for step in steps if isinstance(step, ChatCall)}
            return not withheld.isdisjoint(answered.values()) or any(
                isinstance(block, ToolCall)
                and block.withheld is None
                and block.id not in answered
                and may_show_excluded(block, patterns)
                for block in blocks
            )
    return False


def _call(version: Version, touched: Iterable[Reference], read: Callable[[ContentHash], bytes]) -> ToolCall:
    told = value_of(read(version.additional["args"])) if "args" in version.additional else ""
    accesses = (FileAccess("edit" if one.relation in ("edit", "write") else "read", "") for one in touched)
    arguments = told if isinstance(told, str) else canonical(told)
    return ToolCall(version.id, str(version.metadata.get("tool")), arguments, tuple(accesses))


def _hashes_of_excluded(data: bytes, patterns: tuple[str, ...]) -> set[ContentHash]:
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
    if not isinstance(record, dict) or not is_excluded(str(record.get(_PATH.decode())), patterns):
        return set()
    found: set[ContentHash] = set()
    for name in (record.get("servedHash"), record.get("baseHash"), answer):
        try:
            found.add(ContentHash.parse(str(name)))
        except BadName:
            continue
    return found
