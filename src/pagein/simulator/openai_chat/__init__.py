"""OpenAI Chat Completions in the simulated provider."""

from typing import Final

from pagein.providers.wire.wire_format import Endpoint
from pagein.simulator.openai_chat import answers
from pagein.simulator.openai_prompt import field_error, prompt_of, retention_rules
from pagein.simulator.simulated_format import SimulatedFormat


def _endpoint(path: str) -> Endpoint | None:
    return Endpoint("chat") if path.endswith("/chat/completions") else None


def _too_long(tokens: int, window: int) -> str:
    return (
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens. "
        "Please reduce the length of the messages."
    )


FORMAT: Final = SimulatedFormat(
    "openai_chat",
    "openai-chat",
    _endpoint,
    answers.whole,
    answers.events,
    answers.error,
    answers.error_event,
    (("model", str), ("messages", list)),
    field_error,
    "You didn't provide an API key.",
    _too_long,
    prompt_of,
    "generic:r=.1,w=1,cache=openai-legacy",
    cache_rules=retention_rules,
)
