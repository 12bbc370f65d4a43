"""Google Gemini in the simulated provider."""

import re
from typing import Any, Final

from pagein.providers.validity.turns import TurnPart
from pagein.providers.wire.wire_format import Endpoint
from pagein.simulator.gemini_generate_content import answers, prompt
from pagein.simulator.gemini_generate_content.named_caches import NamedCaches
from pagein.simulator.simulated_format import SimulatedFormat

_PATH: Final = re.compile(r"/models/(?P<model>[^/:]+):(?P<method>\w+)$")
CORRUPTED: Final = "Corrupted thought signature."


def _endpoint(path: str) -> Endpoint | None:
    found = _PATH.search(path)
    match found and found["method"]:
        case "generateContent" | "streamGenerateContent" as method:
            return Endpoint("generate_content", model=str(found and found["model"]), streams=method[0] == "s")
        case "countTokens":
            return Endpoint("count_tokens", is_call=False, model=str(found and found["model"]))
        case _:
            return None


def _field_error(name: str, *, is_missing: bool) -> str:
    if is_missing:
        return f"* GenerateContentRequest.{name}: {name} is not specified"
    return f"Invalid value at '{name}'"


def _too_long(tokens: int, window: int) -> str:
    return f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})."


def _signature_error(_: TurnPart) -> tuple[str, str | None]:
    return CORRUPTED, None


def _count_body(tokens: int) -> dict[str, Any]:
    return {"totalTokens": tokens, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}]}


FORMAT: Final = SimulatedFormat(
    "gemini_generate_content",
    "gemini",
    _endpoint,
    answers.whole,
    answers.events,
    answers.error,
    answers.error_event,
    (("contents", list),),
    _field_error,
    "Method doesn't allow unregistered callers (callers without established identity).",
    _too_long,
    prompt.prompt_of,
    "generic:r=.1,w=1,cache=gemini",
    signature_error=_signature_error,
    count_body=_count_body,
    named_prompts=NamedCaches,
)
