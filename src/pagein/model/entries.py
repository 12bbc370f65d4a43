"""Journal entries: what happened in a session, in the order of its branch.

What was said, what the host did to the window, and what we decided ourselves. A decision carries everything that its
effect needs, so that state can be folded from entries alone, whatever settings the reader has.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pagein.model.messages import Message
from pagein.model.names import ContentHash

EntryId: TypeAlias = str
Part: TypeAlias = Literal["result", "arguments", "text"]
"""What left: the result of a tool call, the texts of files in its arguments, or a long text that the user said."""


@dataclass(frozen=True, slots=True)
class MessageEntry:
    """A message entered the window. `tokens` estimates all of it; `result_tokens` each tool result in it, in order."""

    message: Message
    result_tokens: tuple[int, ...] = ()
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class CompactionEntry:
    """The host cleared the window, but for leading system messages and the `kept` messages said last.

    lost: nothing was cleared; an entry stood here that was lost, whatever it said. The window goes on without it, and nothing that was
    shown before is relied upon. See `bridge`.
    """

    kept: int = 0
    lost: bool = False


@dataclass(frozen=True, slots=True)
class PagedOut:
    """One tool result whose content was replaced by a stub, or by a preview; or the arguments of a call, some texts in which were; or
    a long text of the user's, of which head and tail stay (then `call_id` is a name made of that text).

    message, block: its place in the request. tokens, chars: the size of what left. content: the hash of its bytes in the store.
    stub: the text in its place, for arguments all of them. short: of a preview, the stub that takes its place when it leaves too; of
    arguments, what they are when more of them leaves.
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


@dataclass(frozen=True, slots=True)
class PreviewEntry:
    """Big outputs entered as previews, before any request held them: nothing that was sent changed."""

    paged: tuple[PagedOut, ...]

    @property
    def calls(self) -> tuple[str, ...]:
        """The calls whose outputs these are."""
        return tuple(one.call_id for one in self.paged)


@dataclass(frozen=True, slots=True)
class Restoration:
    """One tool result, or arguments, whose own text took the place of what stood for it. text: the whole of it. tokens: what it weighs."""

    call_id: str
    object_id: str
    text: str
    tokens: int
    message: int
    block: int
    part: Part = "result"


@dataclass(frozen=True, slots=True)
class ThinkingObject:
    """What the model had thought in turns that were finished, as it left with an epoch: one object. content: the hash of its bytes in the store."""

    object_id: str
    content: ContentHash
    tokens: int
    chars: int


@dataclass(frozen=True, slots=True)
class TurnsLeft:
    """Whole turns, or steps of one, that left a nearly full window: one object holds them, and one text stands for them.

    object_id, content: the object and the hash of its bytes. tokens, chars: its size. text: what stands for them, in the message at
    place `message` of the request, `weight` tokens of it; behind that message's own words where these are steps, else in front of them.
    places: the first and the last place of each run of messages that left. calls: of tools, in them. turns: how many turns left so
    far, for which the text stands; words: what the user said in them, shortened; instructions: what the host said in front of them,
    in full. names: of texts of ours that left with them.
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
        """Whether these are steps of a turn that stays."""
        return not self.turns


@dataclass(frozen=True, slots=True)
class EpochEntry:
    """We rewrote the window, once and in one batch. `frontier` is the first message of the request that changed; `reason` why.

    thought: thinking of finished turns behind the frontier that is not sent any more; None where all of it stays. turns: what left
    whole. All places are those of the request as it was before.
    """

    number: int
    frontier: int
    paged: tuple[PagedOut, ...]
    reason: str = ""
    restored: tuple[Restoration, ...] = ()
    thought: ThinkingObject | None = None
    turns: tuple[TurnsLeft, ...] = ()

    @property
    def calls(self) -> tuple[str, ...]:
        """The calls of which something left."""
        return (*(one.call_id for one in self.paged), *(call for one in self.turns for call in one.calls))


@dataclass(frozen=True, slots=True)
class InsertEntry:
    """Text of ours that stands at the end of the window from here on, behind what was said last, as a block of its own.

    kind: `pinned`, `manifest` or `echo`. names: of the pinned texts in it, or the call that it speaks of. tokens: what it weighs, estimated.
    """

    kind: str
    text: str
    tokens: int = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestSent:
    """A request went to the model; `length` is the number of its messages. What it held is frozen from here on.

    moment: when, seconds since 1970, where known. bill, saved: what the session cost and saved up to and including it, in input tokens, estimated.
    absent: tokens that it would have held without us. anew, found: what of it was written in one go last (`policy.economics.rewrite_cost.Account`).
    """

    epoch: int
    length: int
    moment: float | None = None
    bill: float = 0.0
    saved: float = 0.0
    absent: int = 0
    anew: int = 0
    found: int = 0


@dataclass(frozen=True, slots=True)
class RecallEntry:
    """An object was brought back by id."""

    object_id: str


@dataclass(frozen=True, slots=True)
class NoteEntry:
    """A fact for other folds than the window's. `kind` names the fold, `data` is JSON text."""

    kind: str
    data: str


Body: TypeAlias = (
    MessageEntry | CompactionEntry | PreviewEntry | EpochEntry | InsertEntry | RequestSent | RecallEntry | NoteEntry
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the journal, after `parent` (None: the first of its branch).

    at: seconds since 1970, None where the host does not say. It takes no part in any decision.
    """

    id: EntryId
    parent: EntryId | None
    body: Body
    at: float | None = None


_ALL: Final = 2**31 - 1


def bridge(name: EntryId, parent: EntryId | None) -> Entry:
    """What stands in the place of an entry that was lost, so that those behind it still have their place."""
    return Entry(name, parent, CompactionEntry(_ALL, lost=True))


def is_bridge(entry: Entry) -> bool:
    """Whether an entry only stands in the place of one that was lost."""
    return isinstance(entry.body, CompactionEntry) and entry.body.lost
