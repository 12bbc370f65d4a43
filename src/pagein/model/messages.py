"""Host-neutral messages: the input and the output of a model.

Every reader of recorded sessions and every wire format is translated into these values on entry. Policies see nothing
else.
`providers.wire` keeps the rest of the wire data and sends untouched messages byte for byte.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Withheld:
    """A note for a block with text that was not stored, in part or as a whole (law 9).

    digest: of the whole text, keyed with the secret of the store. The same text has the same digest, and the text
        cannot be guessed.
    chars: characters of the whole text.
    part: whether only parts of the text were left out.
    """

    digest: str
    chars: int
    part: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """Text of the user, the model or the host.

    injected: None for words of the user or the model; otherwise the kind of text that the host inserted
        (`compact_summary`, `edited_text_file`, `hook_success`, ...).
    withheld: set if the text was stored in redacted form.
    """

    text: str
    injected: str | None = None
    withheld: Withheld | None = None


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning of the model.

    signature: binds the reasoning to its prefix for providers with signed thinking (rules T1-T10).
    withheld: set if the text was stored in redacted form.
    """

    text: str
    signature: str | None = None
    redacted: bool = False
    withheld: Withheld | None = None


@dataclass(frozen=True, slots=True)
class FileAccess:
    """A file access of a tool call.

    start, end: first and last line (from 1, inclusive); None if the call does not name lines.
    via: `native` for a file tool, `shell` for a best-effort parse of a command line.
    """

    op: Literal["read", "edit", "write", "delete"]
    path: str
    start: int | None = None
    end: int | None = None
    via: Literal["native", "shell"] = "native"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call of the model.

    arguments: JSON text of the input, with its key order.
    withheld: set if the arguments were stored in redacted form.
    """

    id: str
    name: str
    arguments: str
    accesses: tuple[FileAccess, ...] = ()
    withheld: Withheld | None = None


@dataclass(frozen=True, slots=True)
class ShownLines:
    """The lines of a file in a read result: `count` lines from `start` (from 1), of `total` in the file."""

    start: int
    count: int
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """An image.

    size: number of characters of its base64 form.
    data: the base64 form; it may be absent.
    """

    media_type: str
    size: int
    data: str | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call.

    call_id: id of the call.
    name: name of the tool ("" if the recording does not name it).
    shown: for reads by a file tool, the lines in the text.
    before: for edits, the recording's name of the whole file before the edit (see snapshots).
    withheld: set if the text was stored in redacted form.
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
    """A block of a kind unknown to pagein, passed on and counted, never changed.

    json: the JSON text of the block.
    withheld: set if the text was stored in redacted form.
    """

    kind: str
    json: str
    withheld: Withheld | None = None


Block: TypeAlias = Text | Thinking | ToolCall | ToolResult | Image | Other


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a model call, as reported by the provider.

    fresh: prompt tokens neither read from nor written to the cache.
    written: all tokens written to the cache.
    written_1h: the part of `written` with the one-hour TTL.
    """

    fresh: int = 0
    read: int = 0
    written: int = 0
    written_1h: int = 0
    output: int = 0

    @property
    def prompt(self) -> int:
        """The total of prompt tokens of the call."""
        return self.fresh + self.read + self.written

    def __sub__(self, other: "Usage") -> "Usage":
        """The difference of two usages."""
        return Usage(
            self.fresh - other.fresh,
            self.read - other.read,
            self.written - other.written,
            self.written_1h - other.written_1h,
            self.output - other.output,
        )

    def __add__(self, other: "Usage") -> "Usage":
        """The sum of two calls."""
        return Usage(
            self.fresh + other.fresh,
            self.read + other.read,
            self.written + other.written,
            self.written_1h + other.written_1h,
            self.output + other.output,
        )


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a conversation.

    at: time in seconds since 1970; None if not recorded.
    usage: on assistant messages only.
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
    """An action of the host between messages.

    kind: `compaction`, `microcompaction`, `turn_end`, `api_error`, `model_change`, `turn_aborted`, or the host's own.
    data: JSON text of the host's record.
    """

    kind: str
    at: float | None = None
    data: str = "{}"


@dataclass(frozen=True, slots=True)
class UnreadableLine:
    """A line or entry in an unknown form: a value to count and show, never an exception.

    line: 1-based line in its file (0 if the source has no lines).
    excerpt: the first characters.
    """

    line: int
    why: str
    excerpt: str = ""


Recorded: TypeAlias = Message | HostEvent | UnreadableLine
