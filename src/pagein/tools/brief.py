"""The recall tools as they are offered beside a client's own: the fewest that suffice, in the fewest words, as each request has them.

What they do, and what else they can be told, is `peek` and `search`; a model that knows the longer forms is answered by them.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.errors import BadName
from pagein.model.objects import ObjectId
from pagein.providers.validity import Api
from pagein.providers.wire.tool_offers import ToolOffer, definition
from pagein.tools.calls import Call, refusal_result, schema
from pagein.tools.peek import PEEK
from pagein.tools.search import SEARCH

_NUMBER: Final = {"type": "integer"}
_TEXT: Final = {"type": "string"}

OFFERS: Final = (
    ToolOffer(
        PEEK.name,
        "Show text that was taken out of your context, by the id of its stub, exactly as it was.",
        schema(("id",), id=_TEXT, line=_NUMBER, lines=_NUMBER, offset=_NUMBER, length=_NUMBER),
    ),
    ToolOffer(
        SEARCH.name,
        "Find a text or /regex/ in what was taken out of your context. Gives ids and offsets for peek.",
        schema(("pattern",), pattern=_TEXT, scope={"type": "array", "items": _TEXT}, skip=_NUMBER),
    ),
)
"""The same bytes in every request; so a change here is one that sessions under way do not see (`engine.intake.recall_tools`)."""


def definitions(api: Api) -> list[dict[str, Any]]:
    """These tools as they stand among the tools of a request, for callers who offer them by themselves."""
    return [deepcopy(definition(one, api)) for one in OFFERS]  # whoever changes theirs changes nobody else's


def answer_call(session: Session, name: str, arguments: Mapping[str, object], call_id: str) -> ReadResult:
    """Answer a call of one of these, by what the session itself took out of its window or ingested, where it stands on its branch.

    Only that: who can make a model call here need not be the one whose sessions are stored, so an object of another session is answered
    as one that never was. Raises nothing that a model could have caused.
    """
    tool = next((one for one in (PEEK, SEARCH) if one.name == name), None)
    if tool is None:
        return refusal_result(f"There is no tool {name!r} here; there are {PEEK.name} and {SEARCH.name}.")
    own = {name: value for name, value in arguments.items() if name != "everything"}
    held = session.recalls.holdings
    for told in _names(own.get("id") if tool is PEEK else own.get("scope")):
        if not told:
            continue  # the tool says better what is wrong
        if not _is_stub(told):
            return refusal_result(
                f"{told!r} is no id of what was taken out of your context: those look like pg-01234567-89abcdef."
            )
        if told not in held:
            return refusal_result(f"Object {told} not found: nothing that was taken out of your context has this id.")
    return tool.answer(session, Call(own, id=call_id))


def _names(told: object) -> list[str]:
    """The names in an argument, as models quote them; none where it is not made of texts."""
    every = told if isinstance(told, list | tuple) else [told]
    return [one.strip(" \t\r\n\"'`") for one in every if isinstance(one, str)]


def _is_stub(name: str) -> bool:
    try:
        ObjectId.parse(name)
    except BadName:
        return False
    return True
