"""Client profiles: data and pure functions to interpret one client's tools and results.

Rules of this file
------------------
1. A tool that the profile does not name is just output: it reads nothing, writes nothing and never fails by its text.
2. The lines of a result are derived from its own text, with the numbers of its own gutter, notices and arguments. Where
   any of them contradicts another, no line counts as shown: that costs a saving, never a truth.
3. A call failed if the wire format says so, or, where the wire format has no word for it, if the client's text says so.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from pagein.model.messages import Block, FileAccess, Message, ShownLines, ToolCall, ToolResult
from pagein.policy.clients.file_accesses import accesses, arguments_of
from pagein.policy.clients.line_layouts import LineLayout, ShownText, lines_shown_by, raw_text
from pagein.policy.clients.shell_reads import ExactRead, exact_read

Op: TypeAlias = Literal["read", "write", "edit", "list", "search", "exec", "other"]

_FAILS: Final = re.compile(r"(?!)")
_END: Final = 1000


@dataclass(frozen=True, slots=True)
class CallEffect:
    """The effect of a call.

    accesses: the files that it touches, as far as its arguments show.
    """

    op: Op
    accesses: tuple[FileAccess, ...] = ()


OTHERS_OUTPUT: Final = CallEffect("other")


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """A client's tools and the forms of the tools' results. Profiles compare by identity.

    ops: operation of each tool, by name.
    layouts: how its read tool shows lines; the first that fits counts.
    fails: by kind of tool, the form of a result that reports a failure; `any` holds for each of them.
    envelope: text that its shell puts in front of the output, group 1 the exit code; None for output alone, and
        a form that never fits where output does not show files exactly.
    torn: form of output with missing or added parts.
    trims: whether blank lines around shell output are lost.
    counts_last: whether a trailing newline counts as one more line in its reads.
    repeat: its own answer to a read that it answered before; never matches if it has none.
    proves: whether any of its results shows lines of a file for certain, so that a later read may be answered by them.
    """

    name: str
    ops: Mapping[str, Op] = field(default_factory=dict)
    layouts: tuple[LineLayout, ...] = ()
    fails: Mapping[Op | Literal["any"], re.Pattern[str]] = field(default_factory=dict)
    envelope: re.Pattern[str] | None = None
    torn: re.Pattern[str] = _FAILS
    trims: bool = True
    counts_last: bool = True
    repeat: re.Pattern[str] = _FAILS
    proves: bool = True

    def effect_of(self, call: ToolCall) -> CallEffect:
        """Return the effect of a call; a patch is an edit in any tool."""
        op = self.ops.get(call.name)
        if op is None:
            return OTHERS_OUTPUT
        found = accesses(call.name, call.arguments)
        changes = op == "exec" and any(one.op != "read" for one in found)
        return CallEffect("edit" if changes else op, found)

    def is_failure(self, call: ToolCall, result: ToolResult) -> bool:
        """Return whether a result reports a failure, by the wire format or by its text."""
        op = self.ops.get(call.name)
        return result.is_error if op is None else result.is_error or _fails(self, op, result.text)

    def is_success(self, call: ToolCall, result: ToolResult) -> bool:
        """Return whether nothing reports a failed call."""
        return not self.is_failure(call, result)

    def lines_shown(self, call: ToolCall, result: ToolResult) -> ShownText | None:
        """Return the lines of a file in a result; None if uncertain."""
        if self.is_failure(call, result) or result.images:
            return None
        return _lines_of_result(self, call.name, call.arguments, result.text)

    def is_repeat(self, call: ToolCall, result: ToolResult) -> bool:
        """Return whether a result is the client's own note that an earlier read showed the same."""
        return self.ops.get(call.name) == "read" and self.repeat.fullmatch(result.text.strip()) is not None

    def annotate(self, message: Message, calls: Mapping[str, ToolCall] | None = None) -> Message:
        """Add to a message from the wire the accesses of calls, and the tool, failure and lines of results.

        calls: the calls that it may answer, by id. Present values stay.
        """
        known = {} if calls is None else calls
        blocks = tuple(self._annotate(block, known) for block in message.blocks)
        same = all(new is old for new, old in zip(blocks, message.blocks, strict=True))
        return message if same else replace(message, blocks=blocks)

    def _annotate(self, block: Block, calls: Mapping[str, ToolCall]) -> Block:
        if isinstance(block, ToolCall) and not block.accesses:
            found = self.effect_of(block).accesses
            return replace(block, accesses=found) if found else block
        call = calls.get(block.call_id) if isinstance(block, ToolResult) else None
        if call is None or not isinstance(block, ToolResult):
            return block
        shown = None if block.shown is not None else self.lines_shown(call, block)
        lines = None if shown is None else ShownLines(shown.first, len(shown.lines), shown.total)
        told = (block.name or call.name, self.is_failure(call, block), block.shown or lines)
        if told == (block.name, block.is_error, block.shown):
            return block
        return replace(block, name=told[0], is_error=told[1], shown=told[2])


@dataclass(frozen=True, slots=True)
class ResultReading:
    """A profile's reading of a result and its call.

    effect: the effect of the call.
    is_failure: whether the result reports a failure.
    is_repeat: whether the result is the client's own note that an earlier read showed the same.
    shown: the lines of a file in the result; None if uncertain.
    """

    effect: CallEffect
    is_failure: bool
    is_repeat: bool
    shown: ShownText | None


@lru_cache(maxsize=32)  # asked when a result is answered and when it was sent
def reading_of(profile: Profile, call: ToolCall, result: ToolResult) -> ResultReading:
    """Return a profile's reading of a result and its call."""
    return ResultReading(
        profile.effect_of(call),
        profile.is_failure(call, result),
        profile.is_repeat(call, result),
        profile.lines_shown(call, result),
    )


@lru_cache(maxsize=32)  # asked when a result comes and when it is read
def _fails(profile: Profile, op: Op, text: str) -> bool:
    found = None if profile.envelope is None else profile.envelope.match(text)
    if found is not None:
        return int(found[1]) != 0
    # a client reports a failure at one of the ends; a look there alone keeps big outputs cheap
    ends = text if len(text) <= 2 * _END else f"{text[:_END]}\0{text[-_END:]}"
    return any(profile.fails.get(kind, _FAILS).search(ends) is not None for kind in (op, "any"))


@lru_cache(maxsize=16)
def _lines_of_result(profile: Profile, name: str, arguments: str, text: str) -> ShownText | None:
    """Return the lines of a file in the result of a successful call."""
    meaning = profile.effect_of(ToolCall("", name, arguments))
    if len(meaning.accesses) != 1 or meaning.accesses[0].op != "read" or profile.torn.search(text) is not None:
        return None
    if meaning.op == "read":
        return lines_shown_by(profile.layouts, meaning.accesses[0], arguments_of(arguments), text)
    return _shown_by_shell(profile, arguments, text) if meaning.op == "exec" else None


def _shown_by_shell(profile: Profile, arguments: str, text: str) -> ShownText | None:
    """Return the lines of a file from a plain viewing command."""
    read = exact_read(arguments_of(arguments))
    found = None if profile.envelope is None else profile.envelope.match(text)
    if read is None or (found is None) != (profile.envelope is None):
        return None
    shown = raw_text(read, text, found.end() if found is not None else 0)
    return None if shown is None or (profile.trims and not _is_certain(read, shown)) else shown


def _is_certain(read: ExactRead, shown: ShownText) -> bool:
    """Return whether no line can be missing at the beginning: numbered lines, or as many as were asked for."""
    return read.numbered or (read.last is not None and len(shown.lines) == read.last - read.first + 1)
