"""OpenAI Responses in the simulated provider."""

from typing import Final

from pagein.providers.validity.turns import TurnPart
from pagein.providers.wire.wire_format import Endpoint
from pagein.simulator.openai_prompt import field_error, prompt_of, retention_rules
from pagein.simulator.openai_responses import answers
from pagein.simulator.simulated_format import SimulatedFormat

ENCRYPTED: Final = "The encrypted content for item {item} could not be verified. Reason: Encrypted content could not be decrypted or parsed."


def _endpoint(path: str) -> Endpoint | None:
    return Endpoint("responses") if path.endswith("/responses") else None


def _too_long(_tokens: int, _window: int) -> str:
    return "Your input exceeds the context window of this model. Please adjust your input and try again."


def _signature_error(part: TurnPart) -> tuple[str, str | None]:
    return ENCRYPTED.format(item=part.id), "invalid_encrypted_content"


FORMAT: Final = SimulatedFormat(
    "openai_responses",
    "openai-responses",
    _endpoint,
    answers.whole,
    answers.events,
    answers.error,
    answers.error_event,
    (("model", str),),
    field_error,
    "You didn't provide an API key.",
    _too_long,
    prompt_of,
    "generic:r=.1,w=1,cache=openai-legacy",
    cache_rules=retention_rules,
    signature_error=_signature_error,
    memory_blocks=answers.items,
    keeps_responses=True,
    refuses_get=True,
)
