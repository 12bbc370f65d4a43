"""Check cache breakpoints and cache settings: rules M14-M17, C4, R7, O6."""

from collections.abc import Iterator
from typing import Final

from pagein.providers.caches.breakpoint_rules import MAX_MARKS
from pagein.providers.validity.call_pairs import Found
from pagein.providers.validity.turns import TurnPart, Turns, object_at, objects_at

TOO_MANY: Final = "A maximum of 4 blocks with cache_control may be provided. Found {count}."
LONG_LATE: Final = (
    "{place}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. "
    "Note that blocks are processed in the following order: tools, system, messages."
)
CLASH: Final = (
    "Top-level cache_control has ttl='{wanted}' but the target block already has cache_control with ttl='{given}'"
)
NO_SLOT: Final = "Top-level cache_control needs one of the 4 slots, and blocks take all of them"
NO_AUTOMATIC: Final = "cache_control: Extra inputs are not permitted"
ON_EMPTY: Final = "{place}.text: cache_control cannot be set for empty text blocks"
ON_THINKING: Final = "{place}.{kind}.cache_control: Extra inputs are not permitted"
ON_DEFERRED: Final = (
    "Tool '{name}' cannot have both defer_loading=true and cache_control set. "
    "Tools with defer_loading cannot use prompt caching."
)
NO_OPTIONS: Final = "{field} is not supported on this model"
BOTH: Final = "prompt_cache_options cannot be combined with prompt_cache_retention"
NOT_AN_INPUT: Final = "prompt_cache_breakpoint is taken on text, images and files of the input only"

_BREAKPOINT: Final = "prompt_cache_breakpoint"
INPUTS: Final = ("text", "image_url", "file", "input_text", "input_image", "input_file")


def breakpoints_of(turns: Turns) -> Iterator[tuple[TurnPart, str]]:
    """Yield the blocks with breakpoints and their TTL, including blocks inside results, in the order of the prompt."""
    if not turns.from_wire:
        return
    for part in turns.head:
        if part.mark is not None:
            yield part, part.mark
    for turn in turns.turns:
        for part in turn.parts:
            if part.kind == "result":
                marks = (object_at(one, "cache_control") for one in objects_at(part.wire, "content"))
                yield from ((part, str(mark.get("ttl") or "5m")) for mark in marks if mark)
            if part.mark is not None:
                yield part, part.mark


def _place(part: TurnPart) -> str:
    return part.place if part.message >= 0 else f"{'tools' if part.kind == 'tool' else 'system'}.{part.block}"


def check_breakpoint_count(turns: Turns, _since: int) -> Found:
    """M14: at most four breakpoints."""
    marks = list(breakpoints_of(turns))
    if len(marks) > MAX_MARKS:
        yield marks[MAX_MARKS][0], TOO_MANY.format(count=len(marks))


def check_ttl_order(turns: Turns, _since: int) -> Found:
    """M15: one-hour breakpoints come before five-minute breakpoints."""
    short = False
    for part, lifetime in breakpoints_of(turns):
        if lifetime != "1h":
            short = True
        elif short:
            yield part, LONG_LATE.format(place=_place(part))


def check_automatic_breakpoint(turns: Turns, _since: int) -> Found:
    """M16: the automatic breakpoint needs a free slot, and the TTL of an explicit breakpoint on the same block."""
    mark = object_at(turns.fields, "cache_control")
    if not mark:
        return
    part = TurnPart("other", -1, 0)
    if turns.target.platform == "legacy":
        yield part, NO_AUTOMATIC
        return
    marks = list(breakpoints_of(turns))
    wanted = str(mark.get("ttl") or "5m")
    last = turns.turns[-1].parts[-1] if turns.turns and turns.turns[-1].parts else None
    if last is not None and last.mark is not None:
        if last.mark != wanted:
            yield last, CLASH.format(wanted=wanted, given=last.mark)
    elif len(marks) >= MAX_MARKS:
        yield part, NO_SLOT


def check_breakpoint_places(turns: Turns, _since: int) -> Found:
    """M17: no breakpoint on thinking, empty text or a deferred tool."""
    for part, _ in breakpoints_of(turns):
        if part.mark is None:
            continue
        if part.kind == "thinking":
            yield part, ON_THINKING.format(place=part.place, kind=part.wire.get("type"))
        elif part.kind == "text" and not part.text:
            yield part, ON_EMPTY.format(place=_place(part))
        elif part.wire.get("defer_loading") is True:
            yield part, ON_DEFERRED.format(name=part.wire.get("name"))


def check_cache_options(turns: Turns, _since: int) -> Found:
    """C4, for both formats of OpenAI: cache options and breakpoints only for models with support."""
    if "cache options" not in turns.target.abilities.refuses:
        return
    if turns.fields.get("prompt_cache_options") is not None:
        yield TurnPart("other", -1, 0), NO_OPTIONS.format(field="prompt_cache_options")
    marked = next((part for turn in turns.turns for part in turn.parts if part.mark is not None), None)
    if marked is not None:
        yield marked, NO_OPTIONS.format(field=_BREAKPOINT)


def check_cache_retention(turns: Turns, _since: int) -> Found:
    """R7: cache options and cache retention exclude each other."""
    if turns.fields.get("prompt_cache_options") is not None and turns.fields.get("prompt_cache_retention") is not None:
        yield TurnPart("other", -1, 0), BOTH


def check_input_breakpoints(turns: Turns, _since: int) -> Found:
    """O6: breakpoints only on text, images and files of the input."""
    if any(_BREAKPOINT in tool for tool in objects_at(turns.fields, "tools")):
        yield TurnPart("other", -1, 0), NOT_AN_INPUT
    for turn in turns.turns:
        for part in turn.parts:
            if part.mark is not None and (turn.side == "assistant" or part.wire.get("type") not in INPUTS):
                yield part, NOT_AN_INPUT
