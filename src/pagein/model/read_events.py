r"""Events of a file on a branch, as far as the model can know. Knowledge of files is a fold over the events.

Lines are the parts of `text.split("\n")`, counted from 1: a text with a final newline has an empty last line, and an
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
    "moved",  # a marker for lines that are at another place now (v2)
    "range_diff",  # a unified diff of a range (v2)
    "partly_known",  # text and markers in file order (v2)
]


@dataclass(frozen=True, slots=True)
class LineCopy:
    """Lines shared with an earlier version: `count` lines from `at` equal the lines from `first` of `base`."""

    base: ContentHash
    first: int
    count: int
    at: int


@dataclass(frozen=True, slots=True)
class FileRead:
    """A read was answered.

    path: the path key.
    version: hash of the file's bytes.
    total: number of lines of the file.
    size: bytes of the file.
    first, last: the requested lines after clamping; `whole` if they cover the whole file.
    base: the version that a marker or diff refers to.
    emitted: lines with their text in the answer; None if an older writer omitted them and they cannot be proven.
    copies: the known lines that the rest of the answer refers to (v2).
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
        """`full`, or `r:<first>:<last>`."""
        return "full" if self.whole else f"r:{self.first}:{self.last}"


@dataclass(frozen=True, slots=True)
class FileWrite:
    """The model wrote to a file, and the tool reported success.

    version, total: hash and number of lines of the file afterwards.
    authored: lines that are complete in the call's arguments.
    base, copies: the previous version and the lines that the edit left unchanged (for an edit of a known version only).
    whole: the call gave the whole text of the file.
    """

    path: str
    version: ContentHash
    total: int
    authored: Spans
    copies: tuple[LineCopy, ...] = ()
    whole: bool = False

    @property
    def unseen(self) -> "FileWrite":
        """The same write after its text left the window: the file changed, and unchanged lines still moved."""
        return replace(self, authored=NO_LINES, whole=False)


@dataclass(frozen=True, slots=True)
class FileRefresh:
    """A request for a fresh read of a whole path (lines None) or of a range of line numbers."""

    path: str
    lines: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class CompactionEvent:
    """The host replaced the conversation so far by a summary. A strict barrier: earlier knowledge is void."""


@dataclass(frozen=True, slots=True)
class MalformedRecord:
    """A record in an unknown form: counted and shown, never trusted."""

    why: str


ClaimKind: TypeAlias = Literal[
    "text", "authored", "unchanged", "unchanged_range", "diff", "moved", "range_diff", "partly_known"
]
FileEvent: TypeAlias = FileRead | FileWrite | FileRefresh
ReadEvent: TypeAlias = FileEvent | CompactionEvent | MalformedRecord


@dataclass(frozen=True, slots=True)
class ReadClaim:
    """The claim of a tool call in a request, for the witness to check.

    kind: `text` (a plain read), `authored` (write or edit: the text is in the call's arguments), or the mode of an
        answer with markers or a diff.
    emitted: lines of the version with their text in the answer or, for `authored`, in the arguments.
    gutter: regular expression of the host's prefix of each line.
    before, after: characters that the host adds before the first and after the last line.
    whole: the arguments hold the whole text of the file, from its first line on.
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
    """Make the claim for the call behind an event. Set `gutter` if the host shows line numbers."""
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
