"""How many tokens a text is: exactly where the vocabulary is public, else by characters, calibrated on recorded usage.

A ratio of characters per token is off by up to a third for a single text. Over a session it is as good as its calibration,
so take one ratio per model and re-estimate it from what the provider reported (`RatioCounter.calibrate`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, Protocol, TypeAlias

from pagein.providers.tokens.ratio_fit import Sample, fit
from pagein.providers.tokens.vocabularies import exact_counter

__all__ = ["Counter", "Kind", "RatioCounter", "Sample", "counter_for", "ratio_counter"]

Kind: TypeAlias = Literal["result", "said", "user", "system"]


class Counter(Protocol):
    """Counts tokens. Pure: the same text always has the same count; an empty one has none; never raises, whatever the text."""

    def count(self, text: str, kind: Kind = "result") -> float:
        """Tokens of a text of this kind: a tool's result, what the model said (arguments included), a user's words, a system prompt."""
        ...


@dataclass(frozen=True, slots=True)
class RatioCounter:
    """Counts by characters per token: `result` for tool results and all that is not the model's own, `said` for what it said."""

    result: float
    said: float

    def count(self, text: str, kind: Kind = "result") -> float:
        """Tokens of a text, a fraction included."""
        return len(text) / (self.said if kind == "said" else self.result)

    def calibrate(self, samples: Sequence[Sample]) -> "RatioCounter":
        """A counter corrected by recorded prompt growth.

        The ratios of this one are the prior, and few samples move them little; what does not fit is trimmed. The order of the
        samples does not matter.
        """
        return replace(self, **fit(samples, self.result, self.said)._asdict())


# Characters per token, fitted on prompt growth of recorded sessions. Claude 4.7 and later have a new vocabulary,
# about 30 % more tokens for the same text.
_CLAUDE: Final = RatioCounter(2.85, 2.85)
_CLAUDE_NEW: Final = RatioCounter(2.2, 2.2)
_GPT: Final = RatioCounter(3.8, 3.8)
_GPT_IN_CODEX: Final = RatioCounter(4.1, 4.1)
_UNKNOWN: Final = RatioCounter(3.5, 3.5)

_FAMILIES: Final = (
    (re.compile(r"fable|mythos"), _CLAUDE_NEW),
    (re.compile(r"(?:opus|sonnet|haiku)[-.]?(?:4[-.][7-9](?!\d)|[5-9])"), _CLAUDE_NEW),
    (re.compile(r"claude|opus|sonnet|haiku"), _CLAUDE),
    (re.compile(r"gpt-5\.5|codex-spark"), _GPT_IN_CODEX),
    (re.compile(r"gpt|codex|\bo[1-9]\b"), _GPT),
)


def ratio_counter(model: str | None) -> RatioCounter:
    """The characters per token to start from for a model id as recorded; an unknown or missing one gets a middling ratio."""
    name = (model or "").lower()
    return next((counter for family, counter in _FAMILIES if family.search(name)), _UNKNOWN)


def counter_for(model: str | None) -> Counter:
    """The best counter there is for a model: exact where its vocabulary is public and the `tokens` extra is installed."""
    return exact_counter(model) or ratio_counter(model)
