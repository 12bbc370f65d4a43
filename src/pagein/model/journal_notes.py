"""Notes: the facts in a journal beside the messages and the decisions. Each kind is here or in a `..._notes` module beside this one.

A note is stored by its kind and a text (`model.note_forms`), in a `NoteEntry`. Folds get the note itself.
"""

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pagein.model.cache_notes import CacheMissNote, CacheSavingsNote, CacheVerdictNote
from pagein.model.delegation_notes import ChildResultNote
from pagein.model.guard_notes import ReadMeasureNote, SearchMeasureNote
from pagein.model.layout_notes import LayoutNote
from pagein.model.memory_notes import (
    AnswerNote,
    ChatSummaryNote,
    FileSightingNote,
    ObjectNameNote,
    ObjectViewNote,
    OpenChatsNote,
    RecordedNote,
    RememberedNote,
    SessionPlaceNote,
)
from pagein.model.messages import Usage
from pagein.model.names import ContentHash
from pagein.model.pins import Wish
from pagein.model.pool_notes import PoolNote
from pagein.model.read_events import FileRead, FileRefresh, FileWrite, MalformedRecord

CacheMarks: TypeAlias = Literal["marked", "unmarked", "front"]
"""Where a client sets cache breakpoints: in the conversation, nowhere, or in the prompt prefix alone."""


@dataclass(frozen=True, slots=True)
class PrefixDigests:
    """The prompt prefix of the requests from here on changed.

    model: name of the model.
    tools, system: digests of the tools and of the instructions.
    settings: digest of the request settings on which the cache depends.
    headers: digest of the gateway's further context on which the cache depends.
    tokens: estimated tokens of tools and instructions beside the messages; 0 if unknown.
    """

    model: str = ""
    tools: str = ""
    system: str = ""
    settings: str = ""
    headers: str = ""
    tokens: int = field(default=0, compare=False)

    @property
    def conversation(self) -> tuple[str, str]:
        """The parts that distinguish an agent's conversation from sub-agents' conversations."""
        return self.tools, self.system


@dataclass(frozen=True, slots=True)
class SystemPromptNote:
    """The requests from here on have this system prompt, beside their messages.

    text: its texts, one below the other.
    """

    text: str


@dataclass(frozen=True, slots=True)
class CacheMarksNote:
    """The client began or stopped to set cache breakpoints."""

    marks: CacheMarks


@dataclass(frozen=True, slots=True)
class ClientNote:
    """The requests from here on come from another client.

    profile: name of the client's profile.
    """

    profile: str = ""


@dataclass(frozen=True, slots=True)
class BreakpointChoice:
    """The breakpoints of a request that differ from the client's.

    frontier: the block before the next result that may be evicted; None for no breakpoint there.
    short: True if breakpoints of one hour are set to five minutes.
    tail: the block that carries the last breakpoint in place of the client's, in front of results that are shown once;
        None to leave it.
    long: True if breakpoints of five minutes are set to one hour.
    anchor: message with a breakpoint because a one-hour entry ends with it; None if absent.
    reads: the block up to which the cache can be read; None for no breakpoint there.
    split: the block with the last breakpoint of one hour, where all behind it have five minutes; None for one TTL.
    messages: number of messages in the request.
    """

    frontier: tuple[int, int] | None = None
    short: bool = False
    anchor: int | None = None
    reads: tuple[int, int] | None = None
    messages: int = 0
    tail: tuple[int, int] | None = None
    long: bool = False
    split: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ShownOnceNote:
    """The request before showed these results after its last cache breakpoint: stubs take their place in the next.

    calls: ids of the calls with these results.
    saved: saving by the time of the next request, in BIT.
    """

    calls: tuple[str, ...]
    saved: float = 0.0


@dataclass(frozen=True, slots=True)
class GuardReportNote:
    """The agent has a hook that stops calls which would write a mask or a stub into a file, and it works in this session."""


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A recall tool as it was offered.

    schema: JSON schema of its arguments.
    """

    name: str
    description: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolsNote:
    """The requests from here on offer these recall tools.

    tools: None if another version wrote them in an unknown form.
    """

    tools: tuple[OfferedTool, ...] | None


@dataclass(frozen=True, slots=True)
class ToolsLaterNote:
    """Recall tools are offered with the first eviction."""


@dataclass(frozen=True, slots=True)
class DeferredToolsNote:
    """The client's tools in the requests from here on, and the tools the model must search for.

    offered: names of all tools that the client offers.
    deferred: names of the tools that stay out of the prompt until the model finds them.
    """

    offered: tuple[str, ...] = ()
    deferred: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PassthroughNote:
    """A retry was forwarded unmodified, so the reply may not match the version sent first."""


@dataclass(frozen=True, slots=True)
class UsageNote:
    """A request was answered, with this usage. `answer`: the provider's name of the answer; "" if not wanted (`ask_cache_misses`)."""

    usage: Usage
    answer: str = ""


@dataclass(frozen=True, slots=True)
class FurtherUsageNote:
    """Tokens were billed beside the usage of the request before.

    reason: `recall`: the gateway recalled texts, and the model continued its answer with them; `keep_alive`: a
        request of pagein kept the provider's cache; `provider`: the provider asked the model again, around its own tools.
    """

    reason: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class CachedPrefixNote:
    """The part of a branch in the provider's cache, after a reply.

    The fields are those of `engine.cache.cache_ttl.CachedPrefix` and its lease.
    Times are in seconds since 1970; None for minus infinity.
    """

    lifetime: float
    saved: float = 0.0
    sent: float | None = None
    held: float = 0.0
    anchored: float = 0.0
    until: float | None = None
    whole: bool = False
    returns: int = 0
    kept: int = 0
    spent: float = 0.0
    place: int = -1
    elsewhere: float | None = None
    left: int = -1
    left_until: float | None = None
    lingers: float | None = None
    feared: float = 0.0
    calls: int = 0
    stops: int = 0
    short: float | None = None
    mixed: bool = False
    bridged: bool = False


@dataclass(frozen=True, slots=True)
class ExchangeNote:
    """Recall calls that were answered within a request, between the request and the client's answer.

    text, calls: text and call ids of the answer as the client saw it.
    actual: the messages in its place, in JSON; empty for a damaged note.
    answers: pagein's results beside the results of the client.
    """

    text: str
    calls: tuple[str, ...]
    actual: tuple[str, ...]
    answers: tuple[str, ...] = ()


# --- what was lost or erased ---


@dataclass(frozen=True, slots=True)
class RestoredMessagesNote:
    """Lost messages were put back to their places. messages: their number."""

    messages: int = 0


@dataclass(frozen=True, slots=True)
class BrokenNote:
    """Later messages are lost for good: the client tells so many messages again, and they are recorded anew."""

    messages: int = 0


@dataclass(frozen=True, slots=True)
class ForgottenNote:
    """Texts of the session were erased. Nothing after the note is bound to earlier requests."""


@dataclass(frozen=True, slots=True)
class ForgottenReadNote:
    """The record of a read was erased, so the file counts as unknown."""


@dataclass(frozen=True, slots=True)
class ExcludedReadNote:
    """The record of a read of an excluded file was left out of an export."""


# --- files, pins and recalls ---


@dataclass(frozen=True, slots=True)
class ReadNote:
    """A file was read or written through pagein, or is to be read anew.

    event: the read, write or refresh.
    trace: hash of the answer, or of the text that a write or edit put into the file, to find it in the window; "" if
        unknown.
    given: the path as the call wrote it.
    baseline, sent: bytes of the client's own answer and of the sent answer, for reads.
    at: time of a refresh in milliseconds since 1970, for people; no decision uses it.
    before: characters in front of the lines of the file in the answer, such as a line with its place.
    repeat: a number that distinguishes this answer from an earlier equal one; 0 for the first.
    """

    event: FileRead | FileWrite | FileRefresh
    trace: str = ""
    given: str = ""
    baseline: int = 0
    sent: int = 0
    at: int = 0
    before: int = 0
    repeat: int = 0


@dataclass(frozen=True, slots=True)
class WithheldReadNote:
    """A text was read from an excluded file: results with this text stay in the window and are not stored.

    digest: keyed digest of the text.
    """

    digest: str


@dataclass(frozen=True, slots=True)
class PinNote:
    """A person gave an order about the window.

    wish: the order. None for a note without effect: other processes continue where it stands.
    """

    wish: Wish | None = None


@dataclass(frozen=True, slots=True)
class RecallNote:
    """A tool recalled objects, whole or in parts.

    tool: name of the tool.
    call_id: id of the call whose result shows the objects; "" without such a call.
    hints: lines of pagein's own below the shown part.
    """

    tool: str
    objects: tuple[str, ...]
    call_id: str = ""
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IngestNote:
    """A file was stored for the session without entering the window.

    path: path key of the file. content: hash of its bytes.
    """

    object_id: str
    path: str
    content: ContentHash
    tokens: int
    chars: int
    description: str


@dataclass(frozen=True, slots=True)
class OtherNote:
    """A note that pagein does not understand: of another program, of a newer version, or damaged."""

    kind: str
    data: str


Note: TypeAlias = (
    PrefixDigests
    | SystemPromptNote
    | CacheMarksNote
    | ClientNote
    | BreakpointChoice
    | ShownOnceNote
    | GuardReportNote
    | ToolsNote
    | ToolsLaterNote
    | DeferredToolsNote
    | PassthroughNote
    | UsageNote
    | FurtherUsageNote
    | AnswerNote
    | CachedPrefixNote
    | CacheMissNote
    | CacheSavingsNote
    | CacheVerdictNote
    | ExchangeNote
    | RestoredMessagesNote
    | BrokenNote
    | ForgottenNote
    | ForgottenReadNote
    | ExcludedReadNote
    | ReadNote
    | WithheldReadNote
    | PinNote
    | RecallNote
    | IngestNote
    | ChildResultNote
    | ObjectNameNote
    | ObjectViewNote
    | ChatSummaryNote
    | OpenChatsNote
    | RecordedNote
    | RememberedNote
    | SessionPlaceNote
    | FileSightingNote
    | ReadMeasureNote
    | SearchMeasureNote
    | LayoutNote
    | PoolNote
    | OtherNote
)
StoredNote: TypeAlias = Note | MalformedRecord
"""A note as it was found in a journal. A damaged `ReadNote` is a `MalformedRecord`: it is counted and shown."""
