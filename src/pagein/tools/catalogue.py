"""Every tool that a model may be offered, under the names used by its host, with guidance for the system prompt."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from pagein.engine.engine import Settings
from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.policy.delegation.prompts import root_prompt
from pagein.tools import read
from pagein.tools.calls import Call, Offer, refusal_result
from pagein.tools.delegation_tools import BATCH, DELEGATION, EXTRACT, QUERY
from pagein.tools.expand import EXPAND
from pagein.tools.ingest import INGEST
from pagein.tools.note_guidance import NOTES
from pagein.tools.peek import PEEK
from pagein.tools.pools import ACTIVATE, POOL_TOOLS
from pagein.tools.reading.legacy_tools import LEGACY_TOOLS
from pagein.tools.search import SEARCH
from pagein.tools.stats import STATS
from pagein.tools.version_tools import HISTORY, SELECT
from pagein.tools.window_tools import WINDOW_TOOLS

Names: TypeAlias = Literal["pagein", "pi-rlm"]
"""Naming scheme of the tools: pagein's own names, or the names of Pi-RLM, for hosts that use its prompts."""

DISABLED: Final = "RLM is disabled. Use /rlm on to enable."


def _read_offer(tool: read.Tool) -> Offer:
    return Offer(
        tool.name,
        tool.description,
        tool.schema,
        lambda session, call: tool.call(session, call.arguments, call.signal),
    )


READING: Final = (_read_offer(read.READ_BY_MODE), _read_offer(read.REFRESH))
RECALL: Final = (PEEK, SEARCH, EXPAND, INGEST, STATS)
TOOLS: Final = (*READING, *RECALL)
MORE: Final = (SELECT, HISTORY, *WINDOW_TOOLS)
"""Tools that no host offers by itself: a setting of the MCP server names them."""
DEPRECATED: Final = LEGACY_TOOLS
"""Tools that `read` has replaced. They are answered, and offered only if the settings ask for them."""
USUAL: Final = Settings()


def offer_tools(
    names: Names = "pagein", settings: Settings = USUAL, *, delegation: bool = False, pools: bool = False
) -> tuple[Offer, ...]:
    """Return every tool, under the names of this scheme.

    Hosts that use the names of Pi-RLM have a read tool of their own: there `read` has its arguments, and no modes.

    settings: tell whether the tools that `read` has replaced are offered, too
    delegation: whether a child model is set, so that the tools that ask it are offered, too
    pools: whether the session's window is made of its pools. Then the tools for objects take the place of those for reads.
    """
    asking = DELEGATION if delegation else ()
    if pools:
        return (*POOL_TOOLS, *RECALL, *asking)
    old = (*asking, *(DEPRECATED if settings.deprecated_tools else ()))
    if names == "pagein":
        return (*TOOLS, *old)
    own = (_read_offer(read.READ), *TOOLS[1:], *old)
    return tuple(replace(tool, name=tool.legacy, legacy=tool.name) if tool.legacy else tool for tool in own)


def tool_named(name: str, *, pools: bool = False) -> Offer | None:
    """Return the tool of this name or legacy name, or None. pools: as in `offer_tools`."""
    known = (*POOL_TOOLS, *RECALL, *DELEGATION) if pools else (*TOOLS, *MORE, *DELEGATION, *DEPRECATED)
    return next((tool for tool in known if name in (tool.name, tool.legacy) and name), None)


def answer(session: Session, name: str, call: Call, *, enabled: bool = True, pools: bool = False) -> ReadResult:
    """Answer a call by the tool's name.

    enabled: False while pagein is switched off; recall tools then say so
    pools: as in `offer_tools`
    """
    tool = tool_named(name, pools=pools)
    if tool is None:
        known = (*POOL_TOOLS, *RECALL) if pools else TOOLS
        return refusal_result(f"There is no tool {name!r}; the tools are {', '.join(one.name for one in known)}.")
    if not enabled and tool in (*RECALL, *MORE, *DELEGATION):
        return refusal_result(DISABLED)
    return tool.answer(session, call)


_TOLD: Final = (
    (PEEK, "shows a part of an object, exactly as it stood there. Costs one short result."),
    (SEARCH, "finds a text or an expression in all objects, with ids and offsets to peek at."),
    (EXPAND, "follows the references of a stored object, in both directions."),
    (QUERY, "asks a child model about objects, together. Costs a model call."),
    (BATCH, "asks a child model about each of many objects. Costs a model call for each."),
    (EXTRACT, "as query, and keeps the answer as an object."),
    (INGEST, "puts many files into the store without showing them, so that they can be searched."),
    (STATS, "tells how much was taken out and brought back."),
)


_GUIDANCE: Final = """\
## RLM External Context

Long results of earlier steps may have been replaced in your context by a line with an object id. Nothing is lost: the full text
is in a store, and these tools bring it back.

{tools}

- If the user refers to something that you do not see, look for it with {search} before you say that you do not have it: the user
  sees the whole conversation, you see a shortened one.
- Before you edit or quote text that stands behind an id, get it with {peek}. Never write such a line into a file.
- Check that what you brought back is what was meant.
- What earlier sessions said and did is stored too: look for it with {search} and everything, then get the turns with {peek}.
- For a file as it is now, read the file; an object is a text as it was."""


_POOLS: Final = """\
## Objects

Files and the outputs of your calls are objects. The metadata pool lists those that you know; results of calls only name theirs. What
you see whole stands in the active content, at the end, each object once and in its newest version.

- The outputs of your last calls are active by themselves; older ones leave. Use **activate** to see one again, **pin** for what you
  need for long, **deactivate** for what you need no more.
- Use **read** for a file that is not listed yet."""


def guidance(tools: Iterable[Offer], *, notes: bool = False, delegation: str = "") -> str:
    """Return the paragraph of a system prompt about the recall tools among `tools`, "" if there are none.

    notes: whether it also tells the model to write notes
    delegation: the user's own words about child models (see `policy.delegation.prompts`); "" for the built-in ones

    The text depends only on the tools' names, so that it is the same in every request.
    """
    names = {one.answer: one.name for one in tools}
    told = [(names[tool.answer], words) for tool, words in _TOLD if tool.answer in names]
    if not told:
        return ""
    search, peek = (names.get(tool.answer, tool.name) for tool in (SEARCH, PEEK))
    text = _GUIDANCE.format(tools="\n".join(f"- **{name}** {words}" for name, words in told), search=search, peek=peek)
    if any(tool.answer in names for tool in DELEGATION):
        text = f"{text}\n\n{root_prompt(delegation)}"
    text = f"{text}\n\n{_POOLS}" if ACTIVATE.answer in names else text
    return f"{text}\n- {NOTES}" if notes else text
