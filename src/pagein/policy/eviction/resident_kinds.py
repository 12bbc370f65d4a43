"""The kind of a result, resolved once, when it enters the window: the rows of the residency table hold by kind.

Kinds are listed most specific first. The first of them that has a row in the table counts, so a kind without a row of
its own falls under the more general one. A result that the provider found itself is no resident, whatever the rows:
the provider takes it back only with content of its own, so no stub can stand in its place.
"""

from typing import Final

from pagein.model.messages import ToolCall, ToolResult
from pagein.policy.eviction.residency_rules import ResidentKind

WEB_SEARCHES: Final = frozenset(("websearch", "web_search", "google_web_search"))
"""Tools of clients that search the web, in lower case."""


def kinds_of_result(call: ToolCall, result: ToolResult) -> tuple[ResidentKind, ...]:
    """Return the kinds of a tool's result, most specific first."""
    if result.is_error:
        return ("failure",)
    if any(access.op == "read" for access in call.accesses):
        return ("file read", "read", "result") if path_read(call) else ("read", "result")
    if call.name.lower() in WEB_SEARCHES:
        return ("web search", "result")
    return ("result",)


def path_read(call: ToolCall) -> str:
    """Return the first file that a call read; "" without any."""
    return next((access.path for access in call.accesses if access.op == "read"), "")
