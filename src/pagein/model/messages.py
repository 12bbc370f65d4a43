"""Host-neutral messages: what a model was sent and what it answered.

Every reader of recorded sessions and every wire format is translated into these values at the door; policies
know nothing else. What the wire carried beyond them is kept by `providers.wire`, which re-emits untouched
messages byte for byte.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Withheld:
    """That a block was kept without all of its text, because some of it must not be stored (law 9).

    digest: of the whole text, keyed with the secret of the store, so that the same text is known again and nobody can guess it.
    chars: characters of the whole text. part: whether only parts of the text were left out.
    """

    digest: str
    chars: int
    part: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """Text that somebody said.

    injected: None for words of the user or the model; otherwise the kind of thing the host inserted
    (`compact_summary`, `edited_text_file`, `hook_success`, ...).
    withheld: set where the text was kept without what must not be stored.
    """

    text: str
    injected: str | None = None
    withheld: Withheld | None = None


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning of the model. `signature` binds it to its prefix where the provider does so (rules T1-T10).

    withheld: set where the text was kept without what must not be stored.
    """

    text: str
    signature: str | None = None
    redacted: bool = False
    withheld: Withheld | None = None


@dataclass(frozen=True, slots=True)
class FileAccess:
    """One access to a file that a tool call makes.

    start, end: first and last line (from 1, inclusive), None where the call does not say.
    via: `native` for a file tool, `shell` for a best-effort parse of a command line.
    """

    op: Literal["read", "edit", "write", "delete"]
    path: str
    start: int | None = None
    end: int | None = None
    via: Literal["native", "shell"] = "native"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model made. `arguments` is the JSON text of its input, key order and all.

    withheld: set where the arguments were kept without what must not be stored.
    """

    id: str
    name: str
    arguments: str
    accesses: tuple[FileAccess, ...] = ()
    withheld: Withheld | None = None


@dataclass(frozen=True, slots=True)
class ShownLines:
    """Which lines of a file a read result shows: `count` lines from `start` (from 1), of `total` in the file."""

    start: int
    count: int
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """An image. `size` is the number of characters of its base64 form, the data itself may be absent."""

    media_type: str
    size: int
    data: str | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered to the call with id `call_id`.

    name: the tool, as the call named it ("" where the recording does not tell).
    shown: for reads by a file tool, the lines that the text shows.
    before: for edits, the recording's name of the whole file before the edit (see snapshots).
    withheld: set where the text was kept without what must not be stored.
    """

    call_id: str
    text: str
    name: str = ""
    is_error: bool = False
    images: tuple[Image, ...] = ()
    shown: ShownLines | None = None
    before: str | None = None
    withheld: Withheld | None = None


@dataclass(frozen=True, slots=True)
class Other:
    """A block of a kind pagein does not know. `json` is its JSON text; it is passed on and counted, never changed.

    withheld: set where the text was kept without what must not be stored.
    """

    kind: str
    json: str
    withheld: Withheld | None = None


Block: TypeAlias = Text | Thinking | ToolCall | ToolResult | Image | Other


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call, as the provider reported them.

    fresh: prompt tokens neither read from nor written to the cache. `written` is all that was written;
    `written_1h` the part of it with the one-hour lifetime.
    """

    fresh: int = 0
    read: int = 0
    written: int = 0
    written_1h: int = 0
    output: int = 0

    @property
    def prompt(self) -> int:
        """All prompt tokens of the call."""
        return self.fresh + self.read + self.written

    def __add__(self, other: "Usage") -> "Usage":
        """What both calls took."""
        return Usage(
            self.fresh + other.fresh,
            self.read + other.read,
            self.written + other.written,
            self.written_1h + other.written_1h,
            self.output + other.output,
        )


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `at` is its time in seconds since 1970 (None: not recorded); usage stands on assistant messages only.

    stop: why the model stopped, in the recording's own word (`tool_use`, `end_turn`, `aborted`, ...).
    """

    role: Role
    blocks: tuple[Block, ...]
    at: float | None = None
    model: str | None = None
    usage: Usage | None = None
    stop: str | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class HostEvent:
    """Something the host did between messages.

    kind: `compaction`, `microcompaction`, `turn_end`, `api_error`, `model_change`, `turn_aborted`, or the host's own.
    data: JSON text of what it recorded about it.
    """

    kind: str
    at: float | None = None
    data: str = "{}"


@dataclass(frozen=True, slots=True)
class UnreadableLine:
    """A line or entry that could not be understood: a value, so that it can be counted and shown, never an exception.

    line: 1-based line in its file (0 where lines do not apply). excerpt: its first characters.
    """

    line: int
    why: str
    excerpt: str = ""


Recorded: TypeAlias = Message | HostEvent | UnreadableLine
