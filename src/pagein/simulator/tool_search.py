"""Deferred tools in the simulated provider: the tools that a prompt has loaded, and the search for further tools.

Rules of this file
------------------
1. A deferred tool stands in the prompt only where a search result refers to it: with its definition, at that place.
2. A scripted model that calls a deferred tool which its prompt has not loaded searches for it first, if it is offered a
   tool that searches; else it says that it cannot.
3. The model goes on after each search with the whole prompt read again, and usage is the sum, as it is for all tools
   of the provider.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pagein.providers.validity.call_pairs import referenced_tools
from pagein.providers.validity.request_settings import is_search_tool
from pagein.providers.validity.turns import Turns, Wire, object_at, objects_at, text_at
from pagein.simulator.script import Say, ScriptCall, ScriptPart

SEARCH_TOOL_TOKENS: Final = 500
"""Tokens of the tool that searches (source: Anthropic, Introducing advanced tool use, 2025-11-24: "about 500 tokens")."""
MOST_FOUND: Final = 5


def deferred_tools(fields: Wire) -> Mapping[str, Wire]:
    """The deferred tools of a request, by name."""
    tools = objects_at(fields, "tools")
    return {text_at(tool, "name"): tool for tool in tools if tool.get("defer_loading") is True}


def search_name(fields: Wire) -> str:
    """The name of the search tool; "" without a search tool."""
    found = (text_at(tool, "name") for tool in objects_at(fields, "tools") if is_search_tool(tool))
    return next(found, "")


def loaded_tools(turns: Turns) -> frozenset[str]:
    """The names of the tools in a prompt's search results."""
    return frozenset(name for turn in turns.turns for part in turn.parts for name in referenced_tools(part))


def find_tools(query: str, tools: Mapping[str, Wire]) -> tuple[str, ...]:
    """The names of the tools that match a regular expression in name, description or arguments; an exact name first."""
    found = [name for name, tool in tools.items() if any(re.search(query, text) for text in _texts(name, tool))]
    found.sort(key=lambda name: name != query)
    return tuple(found[:MOST_FOUND])


def _texts(name: str, tool: Wire) -> Iterator[str]:
    yield name
    yield text_at(tool, "description")
    for argument, schema in object_at(object_at(tool, "input_schema"), "properties").items():
        yield str(argument)
        yield text_at(schema, "description") if isinstance(schema, Mapping) else ""


def missing_tool(one: ScriptPart, fields: Wire, loaded: frozenset[str]) -> str:
    """The name of a called tool that is deferred and not found yet; "" for other parts of a script."""
    is_missing = isinstance(one, ScriptCall) and one.tool in deferred_tools(fields) and one.tool not in loaded
    return one.tool if is_missing and isinstance(one, ScriptCall) else ""


def without_unreachable(said: Sequence[ScriptPart], fields: Wire, loaded: frozenset[str]) -> tuple[ScriptPart, ...]:
    """The scripted parts for a request. Without a search tool, a text replaces each call of an unseen tool."""
    if search_name(fields):
        return tuple(said)
    missing = [(one, missing_tool(one, fields, loaded)) for one in said]
    return tuple(Say(f"there is no tool {name}") if name else one for one, name in missing)
