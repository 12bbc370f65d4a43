"""Anthropic Messages."""

from typing import Final

from pagein.providers.wire.anthropic_messages import (
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
from pagein.providers.wire.anthropic_messages.stream_merge import MessagesMerger
from pagein.providers.wire.wire_format import AnswerForm, ValidityForm, WireFormat

FORMAT: Final = WireFormat(
    "anthropic",
    likeness.likeness,
    requests.FORM,
    tools.FORM,
    cache.FORM,
    AnswerForm(
        "usage",
        usage.usage_from,
        reply_reader.MessagesReader,
        reply_reader.whole,
        answers.turn,
        answers.result,
        answers.results,
        MessagesMerger,
        answers.merged,
        answers.with_results,
    ),
    ValidityForm(turns.turns, rules.RULES, turns.with_answer, binds_thinking=True),
    endpoints.FORM,
)
