"""The order of the hits on a page of search results.

Rules of this file
------------------
1. Pages follow the order of the store; only the hits within a page are arranged, so no hit is lost or shown twice by paging.
2. Newer days come first. Within a day, the user's words come first, then the assistant's, files and notes, arguments of
   calls, results, and metadata.
3. A line that the same speaker said once is shown once, though a chat and an object of its own hold it.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from pagein.model.search_query import METADATA, Hit

_DAY: Final = 86_400
_USER, _ASSISTANT, _FILE, _ARGUMENTS, _RESULT, _METADATA = range(6)
_SPOKEN: Final = {"user": _USER, "assistant": _ASSISTANT, "thinking": _ASSISTANT, "toolcall": _ARGUMENTS}
_KINDS: Final = {"user": _USER, "note": _FILE, "file": _FILE, "artifact": _FILE, "system_prompt": _FILE}
_ARGS: Final = "args"


def arrange_hits(hits: Iterable[Hit]) -> list[Hit]:
    """Return the hits of a page, arranged. Hits of the same day and kind keep their order."""
    ordered = sorted(hits, key=lambda hit: (-(hit.where.at // _DAY), rank_of(hit)))
    return _without_repetition(ordered)


def rank_of(hit: Hit) -> int:
    """Return the rank of a hit by its kind; the lowest comes first."""
    if hit.field == METADATA:
        return _METADATA
    if hit.where.type == "chat":
        speaker = None if hit.place is None else hit.place.speaker
        return _SPOKEN.get(speaker or "", _RESULT)
    if hit.where.type == "toolcall":
        return _ARGUMENTS if hit.field == _ARGS else _RESULT
    return _KINDS.get(hit.where.type, _RESULT)


def _without_repetition(hits: Sequence[Hit]) -> list[Hit]:
    said = {_words(hit) for hit in hits if hit.where.type == "user" and hit.field != METADATA}
    return [hit for hit in hits if hit.where.type != "chat" or rank_of(hit) != _USER or _words(hit) not in said]


def _words(hit: Hit) -> tuple[str | None, int | None, str]:
    return hit.where.chat, None if hit.place is None else hit.place.turn, hit.match.text
