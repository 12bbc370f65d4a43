"""Why OpenAI Chat Completions requests are refused, as a table from rule id to function.

`docs/reference/rules.md` is generated from this table.
"""

from collections.abc import Mapping
from typing import Final

from pagein.providers.validity import call_pairs, request_settings
from pagein.providers.validity.rules import ValidityRule
from pagein.providers.wire.openai_shared import RULES as SHARED

RULES: Final[Mapping[str, ValidityRule]] = {
    "C1": ValidityRule(
        "tool messages that answer every call follow it at once",
        call_pairs.check_chat_unanswered_calls,
        (call_pairs.CHAT_UNANSWERED,),
    ),
    "C2": ValidityRule(
        "every tool message answers a call of the assistant message before it",
        call_pairs.check_chat_orphan_results,
        (call_pairs.CHAT_ORPHANED,),
    ),
    "C3": ValidityRule(
        "from GPT-5.4 on functions are offered without a reasoning effort",
        request_settings.check_tools_with_effort,
        (request_settings.TOOLS_WITH_EFFORT, request_settings.TOOLS_WITH_EFFORT_SINCE_5_6),
    ),
    **SHARED,
}
