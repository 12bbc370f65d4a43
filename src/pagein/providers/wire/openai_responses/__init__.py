"""OpenAI Responses."""

from typing import Final

from pagein.providers.wire.openai_responses import (
    answers,
    endpoints,
    likeness,
    reply_reader,
    requests,
    rules,
    tools,
    turns,
)
from pagein.providers.wire.openai_responses.stream_merge import ResponsesMerger
from pagein.providers.wire.openai_shared import cache_form, joined_results, usage_from
from pagein.providers.wire.wire_format import AnswerForm, ValidityForm, WireFormat

FORMAT: Final = WireFormat(
    "openai_responses",
    likeness.likeness,
    requests.FORM,
    tools.FORM,
    cache_form("input_text"),
    AnswerForm(
        "usage",
        usage_from,
        reply_reader.ResponsesReader,
        reply_reader.whole,
        answers.turn,
        answers.result,
        joined_results,
        ResponsesMerger,
        answers.merged,
    ),
    ValidityForm(turns.turns, rules.RULES, turns.with_answer),
    endpoints.FORM,
)
