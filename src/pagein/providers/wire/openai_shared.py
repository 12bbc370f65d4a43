"""Parts shared by the formats OpenAI Chat Completions and OpenAI Responses."""

from collections.abc import Mapping
from typing import Any, Final

from pagein.model.messages import ToolResult, Usage
from pagein.providers.caches.cache_values import Breakpoint
from pagein.providers.validity import breakpoint_checks
from pagein.providers.validity.breakpoint_checks import INPUTS
from pagein.providers.validity.rules import ValidityRule
from pagein.providers.validity.turns import PromptTurn, TurnPart, Wire, object_at, padded_objects, text_at
from pagein.providers.wire.json_values import Json, content_blocks, count_at, image_words
from pagein.providers.wire.wire_format import BreakpointForm, CacheForm

_REFUSED: Final = dict.fromkeys((401, 403, 413, 426, 431), "invalid_request_error")

RULES: Final[Mapping[str, ValidityRule]] = {
    "C4": ValidityRule(
        "cache options and breakpoints from GPT-5.6 on only",
        breakpoint_checks.check_cache_options,
        words=(breakpoint_checks.NO_OPTIONS,),
    ),
    "R7": ValidityRule(
        "cache options and cache retention exclude each other",
        breakpoint_checks.check_cache_retention,
        words=(breakpoint_checks.BOTH,),
    ),
    "O6": ValidityRule(
        "breakpoints stand on text, images and files of the input",
        breakpoint_checks.check_input_breakpoints,
        words=(breakpoint_checks.NOT_AN_INPUT,),
    ),
}
"""Rules of both formats."""


def usage_from(told: Mapping[str, Any]) -> Usage:
    """Read a usage object."""
    prompt = count_at(told, "prompt_tokens") or count_at(told, "input_tokens")
    details = told.get("prompt_tokens_details") or told.get("input_tokens_details")
    details = details if isinstance(details, Mapping) else {}
    read = count_at(details, "cached_tokens") or count_at(told, "prompt_cache_hit_tokens")
    written = count_at(details, "cache_write_tokens")
    output = count_at(told, "completion_tokens") or count_at(told, "output_tokens")
    return Usage(fresh=max(0, prompt - read - written), read=read, written=written, output=output)


def parsed_usage(told: object) -> Usage | None:
    """Read a usage object; None for other JSON values."""
    return usage_from(told) if isinstance(told, Mapping) else None


def content_parts(message: Wire, place: int) -> list[TurnPart]:
    """The parts of a message's content, for the validity rules."""
    content = message.get("content")
    if isinstance(content, str):
        return [TurnPart("text", place, 0, text=content)]
    return [
        TurnPart("text", place, index, text=text_at(part, "text"), mark=_breakpoint(part), source=part)
        for index, part in enumerate(padded_objects(content))
    ]


def _breakpoint(part: Wire) -> str | None:
    return "30m" if object_at(part, "prompt_cache_breakpoint") else None


def cache_blocks(value: Json) -> list[tuple[Json, str]]:
    """The blocks of a message as the cache counts them. A result, or an item that is no message, is one block."""
    role, kind = str(value.get("role") or ""), str(value.get("type") or "")
    if role == "tool" or kind not in ("", "message"):
        return [(value, role or ("tool" if kind.endswith("_output") else "assistant"))]
    return content_blocks(value)


def cache_form(text: str) -> CacheForm:
    """How requests speak about the prompt cache of OpenAI. It is implicit; breakpoints exist since GPT-5.6.

    text: the type of block behind the short form of a string.
    """
    form = BreakpointForm("prompt_cache_breakpoint", text, _may_carry, _word, _mark, marks_end=False)
    return CacheForm("generic:cache=openai", form)


def _may_carry(turn: PromptTurn | None, part: TurnPart) -> bool:
    """Whether the provider accepts a breakpoint on a block (O6)."""
    if part.kind == "text" and not part.text.strip() and part.wire.get("type") in (None, "text", "input_text"):
        return False
    is_input = part.source is None or part.wire.get("type") in INPUTS
    return part.kind == "text" and is_input and turn is not None and turn.side != "assistant"


def _word(_mark: Breakpoint) -> str:
    return "30m"


def _mark(_word: str) -> Wire:
    return {"mode": "explicit"}


def is_function(tool: Json) -> bool:
    """Whether a tool's definition is a function of the client."""
    return tool.get("type") == "function"


def result_text(block: ToolResult) -> str:
    """The text of a result that is sent. Images are not accepted there."""
    return "\n".join([block.text, *map(image_words, block.images)])


def joined_results(results: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Return recall results unchanged: in these formats each result is a message already."""
    return results


def has_openai_headers(_headers: Mapping[str, str]) -> bool:
    """Return False: requests to OpenAI have no header that distinguishes them from other formats."""
    return False


def error_body(status: int, message: str, code: str) -> Json:
    """The body of an error."""
    kind = _REFUSED.get(status, "server_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": f"pagein_{code}"}}
