"""The recall tools as they are offered beside a client's own: the fewest that suffice, in the fewest words, as each request has them.

What they do, and what else they can be told, is `peek` and `search`; a model that knows the longer forms is answered by them.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from pagein.engine.reading import ReadResult
from pagein.engine.session import Session
from pagein.errors import BadName
from pagein.model.objects import ObjectId
from pagein.providers.validity import Api
from pagein.providers.wire.tools import Offer, definition
from pagein.tools.calls import Call, refused, schema
from pagein.tools.peek import PEEK
from pagein.tools.search import SEARCH

_NUMBER: Final = {"type": "integer"}
_TEXT: Final = {"type": "string"}

OFFERS: Final = (
    Offer(
        PEEK.name,
        "Show text that was taken out of your context, by the id of its stub, exactly as it was.",
        schema(("id",), id=_TEXT, line=_NUMBER, lines=_NUMBER, offset=_NUMBER, length=_NUMBER),
    ),
    Offer(
        SEARCH.name,
        "Find a text or /regex/ in what was taken out of your context. Gives ids and offsets for peek.",
        schema(("pattern",), pattern=_TEXT, scope={"type": "array", "items": _TEXT}, skip=_NUMBER),
    ),
)
"""The same bytes in every request; so a change here is one that sessions under way do not see (`engine.offering`)."""


def definitions(api: Api) -> list[dict[str, Any]]:
    """These tools as they stand among the tools of a request, for callers who offer them by themselves."""
    return [deepcopy(definition(one, api)) for one in OFFERS]  # whoever changes theirs changes nobody else's


def answered(session: Session, name: str, arguments: Mapping[str, object], call_id: str) -> ReadResult:
    """Answer a call of one of these, by what the session itself took out of its window.

    Only that: other things that are stored have no stub in it. Raises nothing that a model could have caused.
    """
    tool = next((one for one in (PEEK, SEARCH) if one.name == name), None)
    if tool is None:
        return refused(f"There is no tool {name!r} here; there are {PEEK.name} and {SEARCH.name}.")
    if tool is PEEK and not _is_stub(arguments.get("id")):
        return refused(
            f"{arguments.get('id')!r} is no id of what was taken out of your context: those look like pg-01234567-89abcdef."
        )
    own = {name: value for name, value in arguments.items() if name != "everything"}
    return tool.answer(session, Call(own, id=call_id))


def _is_stub(name: object) -> bool:
    if not isinstance(name, str):
        return True  # the tool says better what is wrong
    try:
        ObjectId.parse(name.strip(" \t\r\n\"'`"))
    except BadName:
        return not name.strip()
    return True
