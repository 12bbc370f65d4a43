"""The tool `peek`: show a part of an evicted result, byte for byte.

For a result shown as a preview, a call without a position begins where the preview's head ends. A call with a quote shows the
lines around the quote, for an edit that quotes evicted text.
"""

from dataclasses import replace
from typing import Final

from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.errors import HostError, NotRecallable, StoreError
from pagein.model.read_caps import ReadCaps
from pagein.policy.recall.surroundings import CONTEXT, around
from pagein.policy.recall.text_slices import LENGTH, LINES, Slice, by_characters, by_lines
from pagein.policy.stubs.previews import behind_head
from pagein.tools.calls import ArgumentReader, Call, Offer, refusal_result, schema
from pagein.tools.shown_links import link_lines

_GOES_ON: Final = "[This goes on where the preview stops; offset=0 shows what stands in front.]"


def _peek(session: Session, call: Call) -> ReadResult:
    given = ArgumentReader("peek", call.arguments)
    name = given.text("id").strip(" \t\r\n\"'`")  # models may add quotes
    offset, length = given.whole("offset", 0), given.whole("length", LENGTH)
    quote = given.text("around") if given.has("around") else ""
    line, lines = given.whole("line", 1), given.whole("lines", CONTEXT if quote else LINES)
    turns = given.span("turns")
    problem = given.problem()
    if problem is not None:
        return problem
    in_lines = given.has("line") or given.has("lines")
    if in_lines and offset > 0:
        return refusal_result("Give offset and length, or line and lines, not both.")
    if quote and any(map(given.has, ("offset", "length", "line"))):
        return refusal_result("Give around, or offset, length or line, not both.")

    goes_on = not (quote or given.has("offset") or given.has("line"))

    def cut(object_id: str, text: str, caps: ReadCaps) -> Slice:
        seen = behind_head(session.hand.preview(object_id), object_id, text) if goes_on else 0
        if quote:
            part = around(object_id, text, quote, lines, caps)
        elif in_lines:
            part = by_lines(object_id, text, text.count("\n", 0, seen) + 1 if seen else line, lines, caps)
        else:
            part = by_characters(object_id, text, seen or offset, length, caps)
        return replace(part, hints=(_GOES_ON, *part.hints)) if seen else part

    try:
        part = session.recalls.peek(name, cut, call_id=call.id, turns=turns)
    except NotRecallable as why:
        return refusal_result(f"Object {name} not found: {why}")
    except (StoreError, HostError) as why:
        return refusal_result(f"Object {name} cannot be had now: {why}")
    links = _link_lines(session, name, part.slice.text)
    return ReadResult("\n".join((part.slice.as_text, *links)), _details(name, part.slice), failure=part.failure)


def _link_lines(session: Session, name: str, text: str) -> list[str]:
    """Return what the links in a shown text name; nothing where this cannot be told."""
    try:
        return link_lines(session.objects, name, text)
    except (HostError, StoreError):
        return []


def _details(name: str, part: Slice) -> dict[str, object]:
    following = None if part.following is None else {part.following[0]: part.following[1]}
    return {"id": name, "offset": part.start, "end": part.end, "total": part.total, "next": following}


PEEK: Final = Offer(
    "peek",
    "Read a part of an object that was taken out of your context, by its id. The text is exactly what stood there. Where more "
    "follows, the last line says with which offset or line to go on.",
    schema(
        ("id",),
        id={
            "type": "string",
            "description": "The object's id, such as pg-01234567-89abcdef; of a stored object the id or name, with @3 for version 3.",
        },
        turns={"type": "string", "description": "Turns of a stored chat to show: 3, or 3-5."},
        offset={"type": "number", "description": "First character to show, counted from 0."},
        length={"type": "number", "description": "How many characters to show.", "default": LENGTH},
        line={"type": "number", "description": "First line to show, counted from 1; instead of offset."},
        lines={"type": "number", "description": f"How many lines to show, {LINES} if line is given alone."},
        around={"type": "string", "description": "Text to find; shows the lines around it. Use it before you edit."},
    ),
    _peek,
    legacy="rlm_peek",
)
