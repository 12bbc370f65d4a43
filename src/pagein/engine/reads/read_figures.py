"""Compute the figures on a session's reads from the entries of its branch."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pagein.model.entries import CompactionEntry, Entry, NoteEntry
from pagein.model.journal_notes import ReadNote
from pagein.model.read_events import FileRead, FileWrite, MalformedRecord
from pagein.policy.reads.knowledge import Knowledge

_BYTES_PER_TOKEN: Final = 4
_KIB: Final = 1024
# modes that are listed even with a count of 0
_V1_MODES: Final = ("full", "unchanged", "unchanged_range", "diff", "baseline_fallback")


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """Figures on the content of the whole store.

    blobs: number of blobs.
    size: stored bytes.
    """

    blobs: int
    size: int


@dataclass(frozen=True, slots=True)
class ReadingStatus:
    """Reads on the current branch since its last compaction.

    files: number of known files.
    scopes: runs of lines that the model knows.
    entries: number of reads and writes.
    start: index of the first counted entry in the branch.
    modes: number of answers, by mode.
    baseline: bytes of UTF-8 of the client's own answers.
    sent: bytes of UTF-8 that were sent.
    malformed: number of unreadable records.
    store: figures on the store; None if unavailable.
    """

    files: int
    scopes: int
    entries: int
    start: int
    modes: dict[str, int]
    baseline: int
    sent: int
    malformed: int = 0
    store: StoreFigures | None = None

    @property
    def saved(self) -> int:
        """Bytes that never entered the window."""
        return max(0, self.baseline - self.sent)

    @property
    def saved_tokens(self) -> int:
        """Estimated tokens saved, at four bytes each."""
        return -(-self.saved // _BYTES_PER_TOKEN)

    @property
    def text(self) -> str:
        """The report as lines of text."""
        modes = {**dict.fromkeys(_V1_MODES, 0), **self.modes}
        counts = ", ".join(f"{mode}={count}" for mode, count in modes.items())
        store = "unavailable" if self.store is None else f"{self.store.blobs} objects, {_kib(self.store.size)}"
        return "\n".join(
            (
                "[readcache-status]",
                f"tracked scopes: {self.scopes} across {self.files} files",
                f"replay window: {self.entries} entries (start index {self.start})",
                f"mode counts: {counts}",
                f"estimated savings: ~{self.saved_tokens} tokens ({_kib(self.saved)})",
                f"object store: {store}",
            )
        )


def status_of(branch: Iterable[Entry], knowledge: Knowledge, store: StoreFigures | None) -> ReadingStatus:
    """Return the status at the end of a branch.

    knowledge: the model's knowledge there.
    """
    start = entries = malformed = baseline = sent = 0
    modes: Counter[str] = Counter()
    for index, entry in enumerate(branch):
        match entry.body:
            case CompactionEntry():
                start, entries, malformed, baseline, sent = index + 1, 0, 0, 0, 0
                modes.clear()
            case NoteEntry(note=ReadNote(event=FileRead(mode=mode)) as read):
                entries, baseline, sent = entries + 1, baseline + read.baseline, sent + read.sent
                modes[mode] += 1
            case NoteEntry(note=ReadNote(event=FileWrite())):
                entries += 1
            case NoteEntry(note=MalformedRecord()):
                malformed += 1
            case _:
                pass
    known = [path for path in knowledge.paths.values() if path.view]
    scopes = sum(len(path.view) for path in known)
    return ReadingStatus(len(known), scopes, entries, start, dict(modes), baseline, sent, malformed, store)


def _kib(size: int) -> str:
    return f"{size / _KIB:.1f} KiB"
