"""Usage as Gemini reports it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pagein.model.messages import Usage
from pagein.providers.wire.json_values import count_at

FIELD: Final = "usageMetadata"
_WRITTEN: Final = ("candidatesTokenCount", "thoughtsTokenCount")


def usage_from(told: Mapping[str, Any]) -> Usage:
    """Read a usage object.

    Cached tokens are part of the prompt, and absent if there are none. Thoughts are billed as output, and are no part
    of the candidates.
    """
    prompt = count_at(told, "promptTokenCount") + count_at(told, "toolUsePromptTokenCount")
    read = min(count_at(told, "cachedContentTokenCount"), prompt)
    return Usage(fresh=prompt - read, read=read, output=sum(count_at(told, name) for name in _WRITTEN))


def sum_usage(turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The usage of an answer of several turns for the client: output of every turn, and the prompt of the last turn.

    The prompts are not summed: the client compresses its history by this figure.
    """
    made = dict(turns[-1]) if turns else {}
    for name in _WRITTEN:
        if count := sum(count_at(one, name) for one in turns):
            made[name] = count
    if "totalTokenCount" in made:
        counted = ("promptTokenCount", "toolUsePromptTokenCount", *_WRITTEN)
        made["totalTokenCount"] = sum(count_at(made, name) for name in counted)
    return made
