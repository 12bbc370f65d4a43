"""Read the structured reply of a child: answer, confidence and evidence.

Rules of this file
------------------
1. A reply that is the JSON object of the schema counts as it is, also in a code fence, or with text around it.
2. Any other reply is an answer of low confidence without evidence: the whole text, never less.
3. An object with an answer alone is an answer; what is malformed beside it counts as missing.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import ascii_letters
from typing import Any, Final, Literal, TypeAlias, cast, get_args

Confidence: TypeAlias = Literal["high", "medium", "low"]

REPLY_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "answer": {"type": "string", "description": "The answer to the question."},
        "confidence": {"type": "string", "enum": ["high", "medium", "low"]},
        "evidence": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Quotes from the content, copied exactly, that show the answer.",
        },
    },
    "required": ["answer", "confidence", "evidence"],
    "additionalProperties": False,
}
"""The schema of a reply, for providers with structured output."""
_FENCE: Final = "```"
_MOST_TRIED: Final = 20
_LONGEST_TRIED: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class ChildReply:
    """What a child replied.

    evidence: quotes as the child gave them, not yet looked up.
    is_structured: the reply had the form that was asked for; if not, the answer is its whole text.
    """

    answer: str
    confidence: Confidence = "low"
    evidence: tuple[str, ...] = ()
    is_structured: bool = False


def parse_reply(text: str) -> ChildReply:
    """Return the reply in the text of a child. Never raises."""
    for candidate in _candidates(text):
        if (found := _reply_in(candidate)) is not None:
            return found
    return ChildReply(text)


def _reply_in(value: object) -> ChildReply | None:
    if not isinstance(value, dict) or not isinstance(value.get("answer"), str):
        return None
    confidence, evidence = value.get("confidence"), value.get("evidence")
    is_known = isinstance(confidence, str) and confidence in get_args(Confidence)
    quotes = tuple(one for one in evidence if isinstance(one, str)) if isinstance(evidence, list) else ()
    is_whole = is_known and isinstance(evidence, list) and len(quotes) == len(evidence)
    return ChildReply(
        value["answer"], cast("Confidence", confidence) if is_known else "low", quotes, is_structured=is_whole
    )


def _candidates(text: str) -> Iterator[object]:
    """Yield the JSON values that a reply may be: the whole text, each code fence, each object in the text."""
    yield _decoded(text)
    if len(text) > _LONGEST_TRIED:
        return
    for fenced in text.split(_FENCE, 2 * _MOST_TRIED)[
        1::2
    ]:  # no pattern: one that skips lines takes cubic time on empty lines
        yield _decoded(fenced.lstrip(ascii_letters))
    decoder, at = json.JSONDecoder(strict=False), text.find("{")
    for _ in range(_MOST_TRIED):
        if at < 0:
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield value
        at = text.find("{", end)


def _decoded(text: str) -> object:
    try:
        return json.loads(text, strict=False)  # models write line ends into strings
    except (ValueError, RecursionError):
        return None
