"""Journal entries: what happened in a session, in the order of its branch.

What was said, what the host did to the window, and what we decided ourselves. A decision carries everything that its
effect needs, so that state can be folded from entries alone, whatever settings the reader has.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pagein.model.messages import Message
from pagein.model.names import ContentHash

EntryId: TypeAlias = str
Part: TypeAlias = Literal["result", "arguments"]
"""What of a tool call left: its result, or the texts of files in its arguments."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message entered the window. `tokens` estimates all of it; `result_tokens` each tool result in it, in order."""

    message: Message
    result_tokens: tuple[int, ...] = ()
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Compacted:
    """The host cleared the window, but for leading system messages and the `kept` messages said last."""

    kept: int = 0


@dataclass(frozen=True, slots=True)
class PagedOut:
    """One tool result whose content was replaced by a stub, or by a preview; or the arguments of a call, some texts in which were.

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
class Previewed:
    """Big outputs entered as previews, before any request held them: nothing that was sent changed."""

    paged: tuple[PagedOut, ...]


@dataclass(frozen=True, slots=True)
class Restored:
    """One tool result, or arguments, whose own text took the place of what stood for it. text: the whole of it. tokens: what it weighs."""

    call_id: str
    object_id: str
    text: str
    tokens: int
    message: int
    block: int
    part: Part = "result"


@dataclass(frozen=True, slots=True)
class Thought:
    """What the model had thought in turns that were finished, as it left with an epoch: one object. content: the hash of its bytes in the store."""

    object_id: str
    content: ContentHash
    tokens: int
    chars: int


@dataclass(frozen=True, slots=True)
class EpochOpened:
    """We rewrote the window, once and in one batch. `frontier` is the first message of the request that changed; `reason` why.

    thought: thinking of finished turns behind the frontier that is not sent any more; None where all of it stays.
    """

    number: int
    frontier: int
    paged: tuple[PagedOut, ...]
    reason: str = ""
    restored: tuple[Restored, ...] = ()
    thought: Thought | None = None


@dataclass(frozen=True, slots=True)
class Inserted:
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
    absent: tokens that it would have held without us.
    """

    epoch: int
    length: int
    moment: float | None = None
    bill: float = 0.0
    saved: float = 0.0
    absent: int = 0


@dataclass(frozen=True, slots=True)
class Recalled:
    """An object was brought back by id."""

    object_id: str


@dataclass(frozen=True, slots=True)
class Noted:
    """A fact for other folds than the window's. `kind` names the fold, `data` is JSON text."""

    kind: str
    data: str


Body: TypeAlias = Said | Compacted | Previewed | EpochOpened | Inserted | RequestSent | Recalled | Noted


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the journal, after `parent` (None: the first of its branch).

    at: seconds since 1970, None where the host does not say. It takes no part in any decision.
    """

    id: EntryId
    parent: EntryId | None
    body: Body
    at: float | None = None
