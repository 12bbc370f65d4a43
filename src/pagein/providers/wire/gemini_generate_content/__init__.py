"""Google Gemini: `generateContent` and `streamGenerateContent`."""

from typing import Final

from pagein.providers.wire.gemini_generate_content import (
    answers,
    cache,
    endpoints,
    likeness,
    reply_reader,
    requests,
    rules,
    tools,
    turns,
    usage,
)
from pagein.providers.wire.gemini_generate_content.stream_merge import GeminiMerger
from pagein.providers.wire.wire_format import AnswerForm, ValidityForm, WireFormat

FORMAT: Final = WireFormat(
    "gemini_generate_content",
    likeness.likeness,
    requests.FORM,
    tools.FORM,
    cache.FORM,
    AnswerForm(
        usage.FIELD,
        usage.usage_from,
        reply_reader.GeminiReader,
        reply_reader.whole,
        answers.turn,
        answers.result,
        answers.results,
        GeminiMerger,
        answers.merged,
        answers.with_results,
    ),
    ValidityForm(turns.turns, rules.RULES, turns.with_answer, signs_open_turn=True),
    endpoints.FORM,
)
