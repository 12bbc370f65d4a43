"""OpenAI Chat Completions."""

from typing import Final

from pagein.providers.wire.openai_chat import answers, endpoints, likeness, reply_reader, requests, rules, tools, turns
from pagein.providers.wire.openai_chat.stream_merge import ChatMerger
from pagein.providers.wire.openai_shared import cache_form, joined_results, usage_from
from pagein.providers.wire.wire_format import AnswerForm, ValidityForm, WireFormat

FORMAT: Final = WireFormat(
    "openai_chat",
    likeness.likeness,
    requests.FORM,
    tools.FORM,
    cache_form("text"),
    AnswerForm(
        "usage",
        usage_from,
        reply_reader.ChatReader,
        reply_reader.whole,
        answers.turn,
        answers.result,
        joined_results,
        ChatMerger,
        answers.merged,
    ),
    ValidityForm(turns.turns, rules.RULES, turns.with_answer),
    endpoints.FORM,
)
