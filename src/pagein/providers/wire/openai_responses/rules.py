"""Why OpenAI Responses requests are refused, as a table from rule id to function.

`docs/reference/rules.md` is generated from this table.
"""

from collections.abc import Mapping
from typing import Final

from pagein.providers.validity import call_pairs, response_items
from pagein.providers.validity.rules import ValidityRule
from pagein.providers.wire.openai_shared import RULES as SHARED

_NOT_FOUND: Final = 404


RULES: Final[Mapping[str, ValidityRule]] = {
    "C4": SHARED["C4"],
    "R1": ValidityRule(
        "every output has its call before it", call_pairs.check_outputs_without_call, (call_pairs.NO_CALL,)
    ),
    "R2": ValidityRule(
        "every call has its output behind it",
        call_pairs.check_calls_without_output,
        (call_pairs.NO_OUTPUT,),
    ),
    "R3": ValidityRule(
        "a call that goes by its item's id has the reasoning before it that it came with",
        response_items.check_calls_without_reasoning,
        (response_items.NO_REASONING,),
    ),
    "R4": ValidityRule(
        "reasoning has behind it what came with it",
        response_items.check_reasoning_alone,
        (response_items.NO_FOLLOWER,),
    ),
    "R5": ValidityRule(
        "ids begin as their kind of item demands, and stand once",
        response_items.check_item_ids,
        (response_items.ID_SHAPE, response_items.DUPLICATE),
    ),
    "R6": ValidityRule(
        "reasoning that was not stored carries its encrypted content",
        response_items.check_unstored_reasoning,
        (response_items.NOT_KEPT,),
        status=_NOT_FOUND,
    ),
    "R7": SHARED["R7"],
    "O6": SHARED["O6"],
}
