"""Token prices of a model, and the cost of a call.

The unit is the BIT, *base-input-token equivalent*: the price of one uncached input token of the model, off-peak and
below any price cliff. Dollars are BIT times `input_usd` over a million.
"""

from dataclasses import dataclass
from datetime import date

from pagein.model.messages import Usage
from pagein.providers.caches.cache_rules import CacheRules

MILLION = 1_000_000
_WORKING_DAYS = 5


@dataclass(frozen=True, slots=True)
class Cliff:
    """A price cliff: a higher price for the whole request if its prompt is larger than `above` tokens.

    input, output: price factors for the prompt and for the output.
    """

    above: int
    input: float
    output: float


@dataclass(frozen=True, slots=True)
class Peak:
    """Peak hours (UTC, from-until, Monday to Friday), during which the price is multiplied by `times`."""

    times: float
    hours: tuple[tuple[int, int], ...]

    def covers(self, at: float) -> bool:
        """Whether a moment, in seconds since 1970, is in a peak hour."""
        day, second = divmod(at, 86_400)
        weekday = (day + 3) % 7  # 1970 began on a Thursday; Monday is 0
        return weekday < _WORKING_DAYS and any(start <= second / 3600 < end for start, end in self.hours)


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of a model from a date on.

    input_usd: dollars per million uncached input tokens; None if only multipliers are known.
    read, write_5m, write_1h, output: multiples of the input price. `write_1h` is the price of the long TTL, whatever
        its length.
    window: context window in tokens.
    binds_thinking: thinking is bound to its prefix (T1).
    strips_thinking: a user message without tool results makes the model drop earlier thinking, and with it the cached
        messages.
    storage_usd: dollars per million tokens and hour in a cache that requests name; None if there is no such cache, or its
        price is not known.
    source: D: the vendor's documentation; S: secondary; M: general knowledge, not verified again.
    """

    name: str
    provider: str
    input_usd: float | None
    read: float
    write_5m: float
    write_1h: float
    output: float
    cache: CacheRules
    window: int = 200_000
    cliff: Cliff | None = None
    peak: Peak | None = None
    binds_thinking: bool = False
    strips_thinking: bool = False
    valid_from: date | None = None
    source: str = ""
    storage_usd: float | None = None

    def storage(self, token_hours: float) -> float | None:
        """The cost in BIT of tokens in a cache that requests name; None for an unknown price."""
        if self.storage_usd is None or not self.input_usd:
            return None
        return token_hours * self.storage_usd / self.input_usd

    def usd(self, bit: float) -> float | None:
        """The dollars for a cost in BIT; None for a model without a dollar price."""
        return None if self.input_usd is None else bit * self.input_usd / MILLION


def charge(prices: Prices, tokens: tuple[float, float, float, float, float], at: float | None = None) -> float:
    """The cost in BIT of (fresh, read, written short, written long, output) tokens.

    at: seconds since 1970, for peak hours.
    """
    fresh, read, short, long, output = tokens
    into, out = factors(prices, fresh + read + short + long, at)
    prompt = fresh + prices.read * read + prices.write_5m * short + prices.write_1h * long
    return into * prompt + out * prices.output * output


def factors(prices: Prices, prompt: float, at: float | None = None) -> tuple[float, float]:
    """The price factors of a call for its prompt and its output: 1 off-peak and below the price cliff.

    prompt: tokens of the whole prompt. at: seconds since 1970, for peak hours.
    """
    cliff, peak = prices.cliff, prices.peak
    times = peak.times if peak is not None and at is not None and peak.covers(at) else 1.0
    return (times * cliff.input, times * cliff.output) if cliff is not None and prompt > cliff.above else (times, times)


def cost(usage: Usage, prices: Prices, at: float | None = None) -> float:
    """The cost in BIT of a call with recorded usage."""
    return charge(
        prices, (usage.fresh, usage.read, usage.written - usage.written_1h, usage.written_1h, usage.output), at
    )
