r"""What happened to a file on a branch, as far as the model can tell: the events that knowledge is folded from.

Lines are what `text.split("\n")` gives, counted from 1: a text ending in a newline has an empty last line, and an
empty text has one line. Joining a version's lines with newlines gives its text back, byte for byte.
"""

from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from pagein.model.names import ContentHash
from pagein.model.spans import NO_LINES, Spans

Mode: TypeAlias = Literal[
    "full",  # the text, nothing usable was known
    "baseline_fallback",  # the text, although something was known
    "unchanged",  # a marker for the whole file
    "unchanged_range",  # a marker for a range
    "diff",  # a unified diff of the whole file
    "moved",  # a marker for lines that stand elsewhere now (v2)
    "range_diff",  # a unified diff of a range (v2)
    "partly_known",  # text and markers in file order (v2)
]


@dataclass(frozen=True, slots=True)
class LineCopy:
    """Lines that stand in an earlier version too: `count` lines from `at` equal those from `first` of `base`."""

    base: ContentHash
    first: int
    count: int
    at: int


@dataclass(frozen=True, slots=True)
class FileRead:
    """A read was answered.

    path: the path key. version: hash of the bytes the file had. total: its lines. size: its bytes.
    first, last: the requested lines after clamping; `whole` if that is the whole file.
    base: the version that a marker or diff rests on. emitted: lines that stand as text in the answer, None where
    an older writer left it out and it cannot be proven. copies: what the rest of the answer rests on (v2).
    """

    path: str
    mode: Mode
    version: ContentHash
    total: int
    first: int
    last: int
    size: int
    base: ContentHash | None = None
    emitted: Spans | None = None
    copies: tuple[LineCopy, ...] = ()
    v: Literal[1, 2] = 1

    @property
    def whole(self) -> bool:
        """Whether the request was for the whole file."""
        return self.first == 1 and self.last == self.total

    @property
    def scope_key(self) -> str:
        """`full`, or `r:<first>:<last>` (specification section 4)."""
        return "full" if self.whole else f"r:{self.first}:{self.last}"


@dataclass(frozen=True, slots=True)
class FileWrite:
    """The model itself wrote to a file, and the tool reported success.

    version, total: the file afterwards. authored: its lines that stand whole in the call's arguments.
    base, copies: the version before and the lines that the edit left alone (an edit of a known version only).
    whole: the call gave the file's whole text.
    """

    path: str
    version: ContentHash
    total: int
    authored: Spans
    copies: tuple[LineCopy, ...] = ()
    whole: bool = False

    @property
    def unseen(self) -> "FileWrite":
        """The same once its text has left the window: the file changed, and the lines that it left alone still moved by it."""
        return replace(self, authored=NO_LINES, whole=False)


@dataclass(frozen=True, slots=True)
class FileRefresh:
    """Somebody asked for a fresh read: of the whole path (lines None), or of a range of line numbers."""

    path: str
    lines: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class CompactionEvent:
    """The host replaced everything so far by a summary. A strict barrier: nothing before it is known any more."""


@dataclass(frozen=True, slots=True)
class MalformedRecord:
    """A record that could not be understood: counted and shown, never trusted."""

    why: str


ClaimKind: TypeAlias = Literal[
    "text", "authored", "unchanged", "unchanged_range", "diff", "moved", "range_diff", "partly_known"
]
ReadEvent: TypeAlias = FileRead | FileWrite | FileRefresh | CompactionEvent | MalformedRecord


@dataclass(frozen=True, slots=True)
class ReadClaim:
    """What a tool call of the request stands for, for the witness.

    kind: `text` (a plain read), `authored` (write or edit: the text is in the call's arguments), or the mode of an
    answer that holds markers or a diff. emitted: the lines of the version that stand as text in the answer, or, for
    `authored`, in the arguments. gutter: regular expression of what the host puts before each line. before, after: characters
    that it puts in front of all of them and behind them. whole: the arguments hold the file's whole text, from its first line on.
    """

    path: str
    version: ContentHash
    total: int
    first: int
    last: int
    kind: ClaimKind
    emitted: Spans = NO_LINES
    base: ContentHash | None = None
    copies: tuple[LineCopy, ...] = field(default=())
    gutter: str = ""
    before: int = 0
    after: int = 0
    whole: bool = False


def claim_of(event: FileRead | FileWrite) -> ReadClaim:
    """What the call that caused this event stands for. Where the host shows line numbers, set `gutter` on it."""
    if isinstance(event, FileWrite):
        return ReadClaim(
            event.path,
            event.version,
            event.total,
            1,
            event.total,
            "authored",
            event.authored,
            copies=event.copies,
            whole=event.whole,
        )
    kind: ClaimKind
    match event.mode:
        case "full" | "baseline_fallback":
            kind = "text"
        case mode:
            kind = mode
    emitted = event.emitted or NO_LINES
    return ReadClaim(
        event.path, event.version, event.total, event.first, event.last, kind, emitted, event.base, event.copies
    )
