"""Why Gemini requests are refused, as a table from rule id to function.

`docs/reference/rules.md` is generated from this table.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from pagein.providers.validity.call_pairs import Found, calls_of, of_kind
from pagein.providers.validity.rules import ValidityRule
from pagein.providers.validity.turns import PromptTurn, TurnPart, Turns, object_at, objects_at, recent, text_at
from pagein.providers.wire.gemini_generate_content.cache import EXPLICIT

CALL_PLACE: Final = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
)
RESPONSE_PLACE: Final = "Please ensure that function response turn comes immediately after a function call turn."
RESPONSE_COUNT: Final = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)
UNSIGNED: Final = (
    "Function call is missing a thought_signature in functionCall parts. "
    "Additional data, function call `default_api:{name}`, position {position}."
)
NO_PREFILL: Final = "Requests ending with a model turn are not supported."
NO_CONTENTS: Final = "* GenerateContentRequest.contents: contents is not specified"
NO_PARTS: Final = "* GenerateContentRequest.contents[{message}].parts: contents.parts must not be empty."
NO_NAME: Final = (
    "* GenerateContentRequest.contents[{message}].parts[{part}].function_response.name: Name cannot be empty."
)
NO_FUNCTIONS: Final = "Function calling config is set without function_declarations."
CACHED: Final = (
    "CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config."
)
NO_CACHED: Final = "explicit caching is not supported on this model"
_WHOLE: Final = TurnPart("other", -1, 0)


def check_call_place(turns: Turns, since: int) -> Found:
    """G1: a turn with calls follows the user's."""
    for index, turn in recent(turns, since):
        before = turns.turns[index - 1] if index else None
        if calls_of(turn) and (before is None or before.side != "user"):
            yield calls_of(turn)[0], CALL_PLACE


def check_response_place(turns: Turns, since: int) -> Found:
    """G2: results follow a turn with calls."""
    for index, turn in recent(turns, since):
        results = _results(turn)
        if results and not calls_of(turns.turns[index - 1] if index else None):
            yield results[0], RESPONSE_PLACE


def check_response_count(turns: Turns, since: int) -> Found:
    """G3: the next turn answers each call once. Ids are not compared: either side may leave them out."""
    for index, turn in recent(turns, since):
        calls = calls_of(turn)
        after = turns.turns[index + 1] if index + 1 < len(turns.turns) else None
        if calls and len(calls) != len(_results(after)):
            yield calls[0], RESPONSE_COUNT


def check_signatures(turns: Turns, _since: int) -> Found:
    """G4: in the open turn, the first call of each answer is signed."""
    if not turns.from_wire or "unsigned calls" not in turns.target.abilities.refuses:
        return
    for turn in _open_turn(turns):
        for part in calls_of(turn)[:1]:
            if not text_at(part.wire, "thoughtSignature"):
                name = text_at(object_at(part.wire, "functionCall"), "name")
                yield part, UNSIGNED.format(name=name, position=part.message + 1)


def check_prefill(turns: Turns, _since: int) -> Found:
    """G5: the last turn is not the model's."""
    last = turns.turns[-1] if turns.turns else None
    if last is not None and last.side == "assistant" and "prefill" in turns.target.abilities.refuses:
        yield TurnPart("text", last.first, 0), NO_PREFILL


def check_empty_contents(turns: Turns, since: int) -> Found:
    """G6: there are contents, each has parts, and each result names its function."""
    if since <= 1 and not turns.turns:
        yield _WHOLE, NO_CONTENTS
    for _, turn in recent(turns, since):
        if not turn.parts:
            yield TurnPart("text", turn.first, 0), NO_PARTS.format(message=turn.first)
        for part in _results(turn) if turns.from_wire else ():
            if not text_at(object_at(part.wire, "functionResponse"), "name"):
                yield part, NO_NAME.format(message=part.message, part=part.block)


def check_calling_config(turns: Turns, _since: int) -> Found:
    """G7: settings for calls come with functions."""
    config = object_at(turns.fields, "toolConfig") or object_at(turns.fields, "tool_config")
    calling = object_at(config, "functionCallingConfig") or object_at(config, "function_calling_config")
    names = ("functionDeclarations", "function_declarations")
    has_functions = any(name in tool for tool in objects_at(turns.fields, "tools") for name in names)
    if calling and not has_functions and EXPLICIT.field not in turns.fields:
        yield _WHOLE, NO_FUNCTIONS


def check_named_cache(turns: Turns, _since: int) -> Found:
    """G8: a request with a named cache leaves out what the cache may hold, and its model takes such caches."""
    if not turns.fields.get(EXPLICIT.field):
        return
    if "named caches" in turns.target.abilities.refuses:
        yield _WHOLE, NO_CACHED
    if any(name in turns.fields for name in EXPLICIT.holds):
        yield _WHOLE, CACHED


def _results(turn: PromptTurn | None) -> list[TurnPart]:
    return of_kind(turn, "result") if turn is not None and turn.side == "user" else []


def _open_turn(turns: Turns) -> Iterator[PromptTurn]:
    """The turns since the last text of the user."""
    texts = [
        place
        for place, turn in enumerate(turns.turns)
        if turn.side == "user" and (of_kind(turn, "text") or not _results(turn))
    ]
    yield from turns.turns[texts[-1] + 1 if texts else 0 :]


RULES: Final[Mapping[str, ValidityRule]] = {
    "G1": ValidityRule("a turn with calls follows a turn of the user", check_call_place, (CALL_PLACE,)),
    "G2": ValidityRule("a turn with results follows a turn with calls", check_response_place, (RESPONSE_PLACE,)),
    "G3": ValidityRule(
        "the turn after calls has one result for each, all in this turn", check_response_count, (RESPONSE_COUNT,)
    ),
    "G4": ValidityRule(
        "from Gemini 3 on, the first call of each answer since the user's last text has the signature that came with it",
        check_signatures,
        (UNSIGNED,),
        kept="parts keep their bytes; `engine/window_stages.py` evicts nothing in an open turn",
    ),
    "G5": ValidityRule(
        "from Gemini 3.6 Flash and 3.5 Flash-Lite on, the last turn is the user's", check_prefill, (NO_PREFILL,)
    ),
    "G6": ValidityRule(
        "it has contents, none without parts, and no result without the name of its function",
        check_empty_contents,
        (NO_CONTENTS, NO_PARTS),
        (NO_NAME,),
    ),
    "G7": ValidityRule("settings for calls come with functions", check_calling_config, (NO_FUNCTIONS,)),
    "G8": ValidityRule(
        "a request with a named cache has no instructions and no tools, and goes to a model before Gemini 4",
        check_named_cache,
        (CACHED,),
        (NO_CACHED,),
    ),
}
