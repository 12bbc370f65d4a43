"""Journal entries: the events of a session, in the order of the branch.

Entries record messages, changes by the host, and the decisions of pagein. A decision holds everything needed for its
effect, so that state can be folded from entries alone, whatever the reader's settings are.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from pagein.model.journal_notes import Note, StoredNote
from pagein.model.messages import Message
from pagein.model.names import ContentHash
from pagein.model.note_forms import decode_note, encode_note

EntryId: TypeAlias = str
Part: TypeAlias = Literal["result", "arguments", "text"]
"""The evicted part: the result of a tool call, the file texts in its arguments, or a long text of the user."""


@dataclass(frozen=True, slots=True)
class MessageEntry:
    """A message entered the window.

    result_tokens: estimated tokens of each tool result in the message, in order.
    tokens: estimated tokens of the whole message.
    """

    message: Message
    result_tokens: tuple[int, ...] = ()
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class CompactionEntry:
    """The host cleared the window, except for leading system messages and the last `kept` messages.

    lost: nothing was cleared; the entry replaces a lost one of unknown content. The window continues without it, and
        pagein no longer relies on anything shown before. See `bridge`.
    """

    kept: int = 0
    lost: bool = False


@dataclass(frozen=True, slots=True)
class PagedOut:
    """Content replaced by a stub or a preview.

    The content is one tool result, the arguments of a call (some of their texts are replaced), or a long text of the
    user (head and tail stay, and `call_id` is a name made from the text).

    message, block: place of the content in the request.
    tokens, chars: size of the evicted content.
    content: hash of its bytes in the store.
    stub: the replacement text; for arguments, the whole new arguments.
    short: for a preview, the stub that replaces it on eviction; for arguments, their form once more of them is evicted.
    why: for a read that left because an edit would hardly quote it, the counts that said so; "" for others.
    """

    call_id: str
    object_id: str
    content: ContentHash
    tokens: int
    chars: int
    stub: str
    message: int
    block: int
    short: str = ""
    part: Part = "result"
    why: str = ""


@dataclass(frozen=True, slots=True)
class PreviewEntry:
    """Large outputs were replaced by previews before the first request with them. No sent text changed."""

    paged: tuple[PagedOut, ...]

    @property
    def calls(self) -> tuple[str, ...]:
        """The ids of the calls with outputs that became previews."""
        return tuple(one.call_id for one in self.paged)


@dataclass(frozen=True, slots=True)
class Restoration:
    """A recalled tool result, or recalled arguments, back in place of the stub.

    text: the whole original text.
    tokens: estimated tokens of the text.
    """

    call_id: str
    object_id: str
    text: str
    tokens: int
    message: int
    block: int
    part: Part = "result"


@dataclass(frozen=True, slots=True)
class ThinkingObject:
    """The thinking of finished turns, removed with an epoch and stored as a single object.

    content: hash of its bytes in the store.
    """

    object_id: str
    content: ContentHash
    tokens: int
    chars: int


@dataclass(frozen=True, slots=True)
class TurnsLeft:
    """Whole turns, or steps of a turn, evicted from a nearly full window and stored as a single object.

    object_id, content: the object and the hash of its bytes.
    tokens, chars: size of the object.
    text: the replacement text, `weight` tokens long, in message number `message` of the request: after that message's
        own text for steps, before it for turns.
    places: first and last place of each evicted run of messages.
    calls: ids of the tool calls among them.
    turns: number of turns evicted so far that `text` replaces; 0 for steps.
    words: the user's texts in them, shortened.
    instructions: the host's texts before them, in full.
    names: names of pagein's own texts that were evicted with them.
    """

    object_id: str
    content: ContentHash
    tokens: int
    chars: int
    text: str
    weight: int
    message: int
    places: tuple[tuple[int, int], ...]
    calls: tuple[str, ...] = ()
    turns: int = 0
    words: tuple[str, ...] = ()
    instructions: str = ""
    names: tuple[str, ...] = ()

    @property
    def are_steps(self) -> bool:
        """Whether the evicted messages are steps of a turn that stays."""
        return not self.turns


SHOWN_ONCE: Final = "shown once"
"""Reason of an epoch that takes only results which one request showed after its last cache breakpoint."""
MASKED_ON_ENTRY: Final = "masked on entry"
"""Reason of an epoch that masks only arguments which no request has shown."""
UNCACHED: Final = frozenset((SHOWN_ONCE, MASKED_ON_ENTRY))
"""Reasons of epochs that change nothing in front of the last cache breakpoint of the request before."""
COLD_CACHE: Final = "cold cache"
CHANGED_FRONT: Final = "changed front"
AFTER_A_LOSS: Final = frozenset((COLD_CACHE, CHANGED_FRONT))
"""Reasons of epochs for which the cache held nothing any more: after a pause, or because the client changed its prompt prefix."""


@dataclass(frozen=True, slots=True)
class EpochEntry:
    """pagein rewrote the window in one batch.

    frontier: first message of the request that changed.
    reason: why pagein rewrote the window.
    thought: thinking of finished turns after the frontier that is no longer sent; None if all of it stays.
    turns: turns that were evicted whole.

    All places refer to the request before the rewrite.
    """

    number: int
    frontier: int
    paged: tuple[PagedOut, ...]
    reason: str = ""
    restored: tuple[Restoration, ...] = ()
    thought: ThinkingObject | None = None
    turns: tuple[TurnsLeft, ...] = ()

    @property
    def is_uncached(self) -> bool:
        """True for a change after the last cache breakpoint of the request before, and nowhere else."""
        return self.reason in UNCACHED

    @property
    def calls(self) -> tuple[str, ...]:
        """The ids of calls with an evicted part."""
        return (*(one.call_id for one in self.paged), *(call for one in self.turns for call in one.calls))


@dataclass(frozen=True, slots=True)
class InsertEntry:
    """Text of pagein's own, a separate block at the end of the window as of this entry.

    kind: `pinned`, `manifest` or `echo`.
    names: names of the pinned texts in it, or the id of the call that it is about.
    tokens: estimated tokens of the text.
    """

    kind: str
    text: str
    tokens: int = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestSent:
    """A request was sent to the model. From here on, the sent messages are frozen.

    length: number of messages in the request.
    moment: time of the request in seconds since 1970, if known.
    bill, saved: estimated cost and saving of the session including this request, in input tokens.
    absent: tokens that the request would have held without pagein.
    anew: tokens of the prompt's beginning that were last written to the cache in one go; a cache entry ends there.
    found: tokens before the first result of that part that may still be evicted. See `policy.economics.rewrite_cost.Account`.
    clears: whether the request asks its provider for edits that may take earlier results out.
    """

    epoch: int
    length: int
    moment: float | None = None
    bill: float = 0.0
    saved: float = 0.0
    absent: int = 0
    anew: int = 0
    found: int = 0
    clears: bool = False


@dataclass(frozen=True, slots=True)
class RecallEntry:
    """An object was recalled by id."""

    object_id: str


class _WithNote:
    """The slot for a decoded note. A slot is no dataclass field, so comparisons and the store leave the note out."""

    __slots__ = ("note",)
    note: StoredNote


@dataclass(frozen=True, slots=True)
class NoteEntry(_WithNote):
    """A fact beside the messages and the decisions, as it is stored.

    kind: name of the kind of note.
    data: the note as text, mostly JSON.
    """

    kind: str
    data: str

    @classmethod
    def of(cls, note: Note) -> "NoteEntry":
        """Return the entry of a note."""
        return cls(*encode_note(note))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- of a note, or AttributeError
        """Decode the note at its first access."""
        if name != "note":
            raise AttributeError(name)
        note = decode_note(self.kind, self.data)
        object.__setattr__(self, "note", note)
        return note


Body: TypeAlias = (
    MessageEntry | CompactionEntry | PreviewEntry | EpochEntry | InsertEntry | RequestSent | RecallEntry | NoteEntry
)


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the journal, after `parent` (None: the first of its branch).

    at: seconds since 1970; None if the host does not record times. No decision depends on it.
    """

    id: EntryId
    parent: EntryId | None
    body: Body
    at: float | None = None


_ALL: Final = 2**31 - 1


def bridge(name: EntryId, parent: EntryId | None) -> Entry:
    """Make the replacement for a lost entry. Its successors then keep their place in the tree."""
    return Entry(name, parent, CompactionEntry(_ALL, lost=True))


def is_bridge(entry: Entry) -> bool:
    """Whether an entry is the replacement for a lost entry."""
    return isinstance(entry.body, CompactionEntry) and entry.body.lost
