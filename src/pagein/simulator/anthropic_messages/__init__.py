"""Anthropic Messages in the simulated provider."""

from typing import Any, Final

from pagein.providers.validity.turns import TurnPart
from pagein.providers.wire.wire_format import Endpoint
from pagein.simulator.anthropic_messages import answers, prompt
from pagein.simulator.anthropic_messages.cache_diagnoses import CallFingerprints
from pagein.simulator.model_call import ProviderCall
from pagein.simulator.neutral_answer import SimulatedReply
from pagein.simulator.simulated_format import SimulatedFormat

FORGED: Final = "{place}: Invalid `signature` in `thinking` block"
FORGED_DATA: Final = "{place}: Invalid `data` in `redacted_thinking` block"


def _endpoint(path: str) -> Endpoint | None:
    if path.endswith("/messages/count_tokens"):
        return Endpoint("count_tokens", is_call=False)
    return Endpoint("messages") if path.endswith("/messages") else None


def _field_error(name: str, *, is_missing: bool) -> str:
    return f"{name}: Field required" if is_missing else f"{name}: Input should be valid"


def _too_long(tokens: int, window: int) -> str:
    return f"prompt is too long: {tokens} tokens > {window} maximum"


def _signature_error(part: TurnPart) -> tuple[str, str | None]:
    words = FORGED_DATA if part.wire.get("type") == "redacted_thinking" else FORGED
    return words.format(place=part.place), None


def _memory_blocks(reply: SimulatedReply) -> list[dict[str, Any]]:
    return [answers.wire_block(block) for block in reply.blocks]


def _is_prewarming(asked: ProviderCall) -> bool:
    return asked.body.get("max_tokens") == 0


FORMAT: Final = SimulatedFormat(
    "anthropic",
    "anthropic",
    _endpoint,
    answers.whole,
    answers.events,
    answers.error,
    answers.error_event,
    (("model", str), ("max_tokens", int), ("messages", list)),
    _field_error,
    "x-api-key header is required",
    _too_long,
    prompt.prompt_of,
    "generic:r=.1,w=1.25",
    request_id="request-id",
    signature_error=_signature_error,
    memory_blocks=_memory_blocks,
    clears_context=True,
    is_prewarming=_is_prewarming,
    searches_tools=True,
    diagnoses=CallFingerprints,
)
