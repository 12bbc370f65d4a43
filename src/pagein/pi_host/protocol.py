"""The protocol between pi's extension and `pagein pi`: JSON objects, one a line, over the process's standard streams.

A request is `{"id", "method", "params"}`, its reply `{"id", "result"}` or `{"id", "error"}`. Both sides may ask: ids of the
extension are numbers, those of pagein begin with `p`. A message without an id is a notice and has no reply. This module is
one half of the protocol; `extensions/pi/protocol.ts` is the other.

Rules of this file
------------------
1. The extension sends what is new of pi's branch with each call, never the whole. Only a process that has just started
   asks for the whole, by `UNKNOWN_ENTRY`.
2. Answers are changes (`Patch`, `WindowEdits`), never whole requests. Without a change the answer is empty.
3. A field is added with a default, and needs no new number. A change of meaning raises `PROTOCOL`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

PROTOCOL: Final = 1
"""Number of the protocol. Halves with different numbers do not work together."""
UNKNOWN_ENTRY: Final = "unknown entry"
"""Error by which pagein asks for the whole branch."""

Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Hello:
    """The first request of the extension.

    protocol: number of the protocol of the extension. extension: version of the extension.
    session: pi's name of the session.
    cwd: the folder that pi works in.
    window: size of the model's window in tokens, as pi knows it; None if unknown.
    """

    protocol: int
    extension: str
    session: str
    cwd: str
    window: int | None = None


@dataclass(frozen=True, slots=True)
class PiTool:
    """A tool for the model, as pi registers it.

    parameters: JSON schema.
    snippet: one line for pi's list of tools in the system prompt.
    active: False for a tool that waits until a command switches it on.
    """

    name: str
    label: str
    description: str
    parameters: Row
    snippet: str = ""
    active: bool = True


@dataclass(frozen=True, slots=True)
class WatchedEvents:
    """The events that the extension reports to pagein.

    calls, results: names of the tools whose calls and results are reported.
    context: whether each request is reported.
    """

    calls: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    context: bool = False


@dataclass(frozen=True, slots=True)
class Welcome:
    """The reply to `Hello`.

    version: of pagein.
    read: further arguments for pi's own tool `read`, answered by pagein; None to leave the tool unchanged.
    refusal: why the halves cannot work together, and what to do; "" if they can.
    """

    protocol: int
    version: str
    tools: tuple[PiTool, ...] = ()
    watched: WatchedEvents = field(default_factory=WatchedEvents)
    read: PiTool | None = None
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class BranchDelta:
    """The branch of pi's session tree, from its root to its leaf.

    known: the last entry of the branch that pagein knows; None if it knows no entry.
    entries: the entries after it, as they are in pi's session file.
    """

    known: str | None = None
    entries: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A tool call of the model."""

    id: str
    name: str
    input: Row


@dataclass(frozen=True, slots=True)
class ToolCallEvent:
    """A tool is about to run. The reply is a `CallVerdict`."""

    branch: BranchDelta
    call: ModelCall


@dataclass(frozen=True, slots=True)
class CallVerdict:
    """The verdict on a call: run it unchanged, run it with another input, or block it with a reason for the model."""

    input: Row | None = None
    block: str = ""


@dataclass(frozen=True, slots=True)
class ToolResultEvent:
    """A tool has run. The reply is a `Patch`.

    text: the text of the result. details: details of the result, as pi will store them.
    edited: the fields of the last request that ask a provider to remove earlier results.
    """

    branch: BranchDelta
    call: ModelCall
    text: str
    details: Row | None = None
    error: bool = False
    edited: Row = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Patch:
    """A change of a tool's result; None leaves a part as it is.

    failure: what of pagein failed; "" for nothing.
    """

    text: str | None = None
    details: Row | None = None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class BeginEvent:
    """A session was opened, a model was chosen, pi moved in its tree, or a prompt is about to be processed.

    The reply is a `BranchStart`.

    address: where pi sends the requests of the model; "" for unknown.
    usage: None while pi does not know it.
    """

    branch: BranchDelta
    address: str = ""
    usage: "WindowUsage | None" = None


@dataclass(frozen=True, slots=True)
class BranchStart:
    """The reply to a begin event: tools, prompt and headers of the branch.

    tools: names of all active tools of pagein; None for no change.
    prompt: text for the end of the system prompt; "" for none.
    headers: headers to add to pi's own in requests to this address.
    notice: a message to show to the person; "" for no message.
    widget: lines beside pi's editor; None for no change.
    """

    tools: tuple[str, ...] | None = None
    prompt: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    notice: str = ""
    widget: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class WindowUsage:
    """How full the model's window is, as pi counts it.

    tokens: tokens of the last request and of the messages after it. window: size of the model's window in tokens.
    """

    tokens: int
    window: int


@dataclass(frozen=True, slots=True)
class ContextEvent:
    """A request is about to be sent. The reply is a `WindowEdits`.

    usage: None while pi does not know it.
    edited: the fields of the previous request that ask a provider to remove earlier results.
    """

    branch: BranchDelta
    usage: WindowUsage | None = None
    edited: Row = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Insert:
    """A text of pagein's own in a request, as a message of the user.

    after: the message in front of it: the id of its call for a result, else its timestamp in milliseconds; "" for the
        beginning of the conversation.
    """

    after: str
    text: str


@dataclass(frozen=True, slots=True)
class WindowEdits:
    """Changes of a request's messages against pi's own messages.

    reset: whether the changes of earlier replies are void; otherwise these changes are added to them.
    results: text to show instead of a tool's result, by the id of the call.
    inserts: texts of pagein's own.
    failure: what of pagein failed; "" for nothing.
    widget: lines on the current work for the person; None for no change.
    """

    reset: bool = False
    results: Mapping[str, str] = field(default_factory=dict)
    inserts: tuple[Insert, ...] = ()
    failure: str = ""
    widget: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class CompactEvent:
    """pi is about to compact the session. The reply is a `CompactionVerdict`. usage: None while pi does not know it."""

    branch: BranchDelta
    usage: WindowUsage | None = None


@dataclass(frozen=True, slots=True)
class CompactionVerdict:
    """Whether a compaction is cancelled, and why, in words for the person."""

    cancel: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CommandEvent:
    """A person gave a command. The reply is an `Answer`."""

    branch: BranchDelta
    name: str
    args: str = ""


@dataclass(frozen=True, slots=True)
class ToolEvent:
    """The model called one of pagein's tools. The reply is an `Answer`."""

    branch: BranchDelta
    call: ModelCall


@dataclass(frozen=True, slots=True)
class NewEntry:
    """A custom entry to append to the current branch of pi's session."""

    type: str
    data: Row


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a command or to a call of a tool.

    level: how a command's text is shown. An error of a tool is raised in pi.
    tools: names of all of pagein's tools that are active from now on; None to leave them.
    widget: lines on the current work for the person; None for no change.
    overlay: title of the overlay that shows the text where pi has a screen; "" for a notice.
    """

    text: str
    level: Literal["info", "warning", "error"] = "info"
    details: Row = field(default_factory=dict)
    entries: tuple[NewEntry, ...] = ()
    tools: tuple[str, ...] | None = None
    widget: tuple[str, ...] | None = None
    overlay: str = ""


@dataclass(frozen=True, slots=True)
class Settle:
    """pi is about to leave the session: everything must be stored before the reply."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """A notice: the request with this id is no longer wanted."""

    request: int


REQUESTS: Final[Mapping[str, type]] = {
    "hello": Hello,
    "begin": BeginEvent,
    "tool_call": ToolCallEvent,
    "tool_result": ToolResultEvent,
    "context": ContextEvent,
    "compact": CompactEvent,
    "command": CommandEvent,
    "tool": ToolEvent,
    "settle": Settle,
    "cancel": Cancel,
}
"""What the extension may send, by method."""
ASKED: Final = ("confirm", "widget")
"""What pagein may ask the extension for.

`confirm` takes `title` and `message`, and gives True or False. `widget` takes `lines`, and shows them.
"""
