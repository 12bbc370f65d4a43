"""The kind of a result, resolved once, when it enters the window: the rows of the residency table hold by kind.

Kinds are listed most specific first. The first of them that has a row in the table counts, so a kind without a row of
its own falls under the more general one.
"""

from collections.abc import Mapping
from typing import Final

from pagein.model.messages import Other, ToolCall, ToolResult
from pagein.policy.eviction.residency_rules import ResidentKind

WEB_SEARCHES: Final = frozenset(("websearch", "web_search", "google_web_search"))
"""Tools of clients that search the web, in lower case."""

SERVER_RESULTS: Final[Mapping[str, ResidentKind]] = {"web_search_tool_result": "web search"}
"""Kinds of blocks with results that the provider found itself.

No such result counts as a more general kind: it leaves only by a row for its own.
"""


def kinds_of_result(call: ToolCall, result: ToolResult) -> tuple[ResidentKind, ...]:
    """Return the kinds of a tool's result, most specific first."""
    if result.is_error:
        return ("failure",)
    if any(access.op == "read" for access in call.accesses):
        return ("file read", "read", "result") if path_read(call) else ("read", "result")
    if call.name.lower() in WEB_SEARCHES:
        return ("web search", "result")
    return ("result",)


def kinds_of_server_result(block: Other) -> tuple[ResidentKind, ...]:
    """Return the kinds of a result that the provider found itself; empty for any other block."""
    kind = SERVER_RESULTS.get(block.kind)
    return () if kind is None else (kind,)


def path_read(call: ToolCall) -> str:
    """Return the first file that a call read; "" without any."""
    return next((access.path for access in call.accesses if access.op == "read"), "")
