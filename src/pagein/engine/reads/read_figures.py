"""What reading through a session came to, told from the entries of its branch."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pagein.engine.log import read_notes
from pagein.model.entries import Entry
from pagein.model.read_events import CompactionEvent, FileRead, FileWrite, MalformedRecord
from pagein.policy.reads.knowledge import Knowledge

_BYTES_PER_TOKEN: Final = 4
_KIB: Final = 1024
# shown even where nothing was answered so
_V1_MODES: Final = ("full", "unchanged", "unchanged_range", "diff", "baseline_fallback")


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """Content in the store, of all sessions. size: bytes, as stored."""

    blobs: int
    size: int


@dataclass(frozen=True, slots=True)
class ReadingStatus:
    """Reads on the current branch since its last compaction.

    scopes: runs of lines that the model knows, over `files` files. entries: reads, writes and records of the window;
    start: index of its first entry in the branch. modes: how often a read was answered in which way.
    baseline, sent: bytes of UTF-8 that the host's own read would have sent, and that were sent. malformed: records that
    were passed over. store: None where the store cannot be asked.
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
        """The same in tokens, at four bytes each: an estimate."""
        return -(-self.saved // _BYTES_PER_TOKEN)

    @property
    def text(self) -> str:
        """The report in lines (specification 17)."""
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
    """The status where this branch ends; `knowledge` is the state there."""
    start = entries = malformed = baseline = sent = 0
    modes: Counter[str] = Counter()
    for index, entry in enumerate(branch):
        match read_notes.event_of(entry.body):
            case CompactionEvent():
                start, entries, malformed, baseline, sent = index + 1, 0, 0, 0, 0
                modes.clear()
            case FileRead(mode=mode):
                sizes = read_notes.sizes_of(entry.body)
                entries, baseline, sent = entries + 1, baseline + sizes.baseline, sent + sizes.sent
                modes[mode] += 1
            case FileWrite():
                entries += 1
            case MalformedRecord():
                malformed += 1
            case _:
                pass
    known = [path for path in knowledge.paths.values() if path.view]
    scopes = sum(len(path.view) for path in known)
    return ReadingStatus(len(known), scopes, entries, start, dict(modes), baseline, sent, malformed, store)


def _kib(size: int) -> str:
    return f"{size / _KIB:.1f} KiB"
