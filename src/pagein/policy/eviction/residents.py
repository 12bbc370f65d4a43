"""The value of a resident: a result open to eviction, or arguments open to masking; and the kind of a result.

The kind is resolved once, when the result enters the window: the rows of the residency table hold by kind. Kinds are
listed most specific first. The first of them that has a row in the table counts, so a kind without a row of its own
falls under the more general one. A result that the provider found itself is no resident, whatever the rows: the
provider takes it back only with content of its own, so no stub can stand in its place.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from pagein.model.entries import PagedOut
from pagein.model.messages import ToolCall, ToolResult
from pagein.policy.eviction.residency_rules import ResidencyRules, ResidentKind

STUB_TOKENS: Final = 40
"""Assumed size of a stub at the decision; its true size is known once it is written."""


Form: TypeAlias = Literal["result", "replaced", "texts", "text"]
"""Part of a call that leaves: the result; replaced text or every file text in its arguments; or a long user text."""


@dataclass(frozen=True, slots=True)
class Resident:
    """A tool result or an argument text in the window, open to eviction or masking one day.

    message, block: place in the request.
    born: the model call, from 0, that first saw it; results of one group share this.
    before: tokens in front of its message.
    kind: its rows in the residency table.
    path: the file that it shows, or whose text the arguments hold; "" where age alone decides.
    kept: record of the whole text, where this is a preview of it.
    form: part that leaves.
    stays: tokens of the text in its place afterwards.
    """

    call_id: str
    message: int
    block: int
    tokens: int
    born: int
    before: int = 0
    kind: ResidentKind = "result"
    kept: PagedOut | None = None
    path: str = ""
    form: Form = "result"
    stays: int = STUB_TOKENS

    @property
    def place(self) -> tuple[int, int]:
        """Its message and its block."""
        return self.message, self.block

    @property
    def gain(self) -> int:
        """Tokens saved by its eviction."""
        return max(0, self.tokens - self.stays)

    def behind(self, before: Mapping[int, int]) -> "Resident":
        """Return the resident with the new number of tokens in front of its message; itself if the message is not
        listed.
        """
        place = before.get(self.message, self.before)
        return self if place == self.before else replace(self, before=place)


WEB_SEARCHES: Final = frozenset(("websearch", "web_search", "google_web_search"))
"""Tools of clients that search the web, in lower case."""


def kind_of_result(call: ToolCall, result: ToolResult, rules: ResidencyRules) -> tuple[ResidentKind | None, str]:
    """Return the kind of a tool's result, and the first file that the call read, where its rows hold by file.

    The kind is None if no row holds for the result, the path "" if no file counts.
    """
    kind = next((one for one in kinds_of_result(call, result) if one in rules.by_kind), None)
    return kind, _path_read(call) if kind == "file read" else ""


def kinds_of_result(call: ToolCall, result: ToolResult) -> tuple[ResidentKind, ...]:
    """Return the kinds of a tool's result, most specific first."""
    if result.is_error:
        return ("failure",)
    if any(access.op == "read" for access in call.accesses):
        return ("file read", "read", "result") if _path_read(call) else ("read", "result")
    if call.name.lower() in WEB_SEARCHES:
        return ("web search", "result")
    return ("result",)


def _path_read(call: ToolCall) -> str:
    return next((access.path for access in call.accesses if access.op == "read"), "")
