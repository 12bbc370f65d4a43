"""Token counts of texts: exact for a public vocabulary, otherwise estimated from characters.

An estimate is calibrated on recorded usage.

A ratio of characters per token is off by up to a third for a single text. Over a session it is as good as its
calibration, so take one ratio per model and re-estimate it from the provider's reports (`RatioCounter.calibrate`).
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
    """Counts tokens. Pure: equal texts have equal counts, an empty text has none, and no text raises an error."""

    def count(self, text: str, kind: Kind = "result") -> float:
        """Count the tokens of a text.

        kind: `result` for a tool result, `said` for the model's output (arguments included), `user` for the user's
            words, `system` for a system prompt.
        """
        ...


@dataclass(frozen=True, slots=True)
class RatioCounter:
    """Counts by characters per token.

    result: ratio for tool results and any other text not written by the model.
    said: ratio for the model's own text.
    """

    result: float
    said: float

    def count(self, text: str, kind: Kind = "result") -> float:
        """Tokens of a text, a fraction included."""
        return len(text) / (self.said if kind == "said" else self.result)

    def calibrate(self, samples: Sequence[Sample]) -> "RatioCounter":
        """A counter corrected by recorded prompt growth.

        The ratios of this counter are the prior, and few samples move them little. Outliers are trimmed. The order of
        the samples does not matter.
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
    """The initial counter for a model id as recorded. An unknown or missing id gets an average ratio."""
    name = (model or "").lower()
    return next((counter for family, counter in _FAMILIES if family.search(name)), _UNKNOWN)


def counter_for(model: str | None) -> Counter:
    """The best counter for a model: exact for a public vocabulary if the `tokens` extra is installed."""
    return exact_counter(model) or ratio_counter(model)
