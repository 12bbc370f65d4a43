"""The prompt cache of each account, and the cost of every call."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from pagein.errors import BadSetting
from pagein.model.messages import Usage
from pagein.providers.cache_simulator import CacheRules, CacheSimulator, CacheUsage, bill
from pagein.providers.prices.price_lookup import prices
from pagein.providers.prices.token_prices import Prices
from pagein.providers.tokens.counters import counter_for
from pagein.simulator.formats import simulated_format
from pagein.simulator.model_call import ProviderCall
from pagein.simulator.neutral_answer import FoundTools, ReplyCall, ReplySearch, ReplyText, ReplyThought, Spoken
from pagein.simulator.prompt_blocks import CounterOf, PromptBlocks, Prompts


@dataclass(frozen=True, slots=True)
class CallCharge:
    """The usage and cost of a call.

    bit: base-input-token equivalents.
    first: usage of the model's first part, if it searched for tools; None for an answer in one part.
    """

    usage: Usage
    served: CacheUsage
    prices: Prices
    bit: float
    first: Usage | None = None


class Accounts:
    """The caches of the accounts, separate for each set of credentials and kind of cache (A8).

    Calls must come in the order of their start.
    """

    def __init__(
        self,
        spec: str | None = None,
        counter: CounterOf = counter_for,
        kept: Callable[[CacheRules], CacheRules] = lambda rules: rules,
    ) -> None:
        """Start with empty caches.

        spec: a price specification for every model; None: each model's own prices, and plain multipliers for unknown
        models.
        counter: returns the token counter of a model.
        kept: returns the rules that the caches really follow; the calls are charged by the documented ones.
        Raises BadSetting for an invalid specification.
        """
        self._fixed = None if spec is None else prices(spec)
        self._kept = kept
        self._caches: dict[tuple[str, CacheRules], CacheSimulator] = {}
        self.prompts = Prompts(counter)

    def prices(self, asked: ProviderCall) -> Prices:
        """The prices of the called model on the day of the call."""
        return self.prices_of(asked.model, asked.at) or prices(simulated_format(asked.api).unpriced)

    def prices_of(self, model: str, at: float) -> Prices | None:
        """The prices of a model on a day; None for a model without prices."""
        if self._fixed is not None:
            return self._fixed
        try:
            return prices(model, datetime.fromtimestamp(at, UTC).date())
        except BadSetting:
            return None

    def prompt(self, asked: ProviderCall) -> PromptBlocks:
        """The cache's view of the prompt of a call."""
        return simulated_format(asked.api).prompt(self.prompts, asked, self.prices(asked))

    def charge(self, asked: ProviderCall, blocks: tuple[Spoken, ...], wait: float) -> CallCharge:
        """Charge a call for prompt and answer.

        blocks: the answer.
        wait: seconds until the first block.
        """
        rates = self.prices(asked)
        prompt = simulated_format(asked.api).prompt(self.prompts, asked, rates)
        output = sum(self.prompts.tokens(asked.model, _text_of(block)) for block in blocks)
        if prompt.is_cached:
            served = self._cache(asked, rates).serve(prompt.request(asked.at, asked.at + wait, output))
            if served.hit < prompt.stored:
                read = prompt.cumulative[prompt.stored - 1]
                served = CacheUsage(read, 0.0, 0.0, prompt.tokens - read, output, prompt.stored, "hit")
        else:
            served = CacheUsage(0.0, 0.0, 0.0, prompt.tokens, output, 0, "no_marks")
        usage, bit = usage_of(served), bill(served, rates, asked.at)
        searches = sum(isinstance(block, ReplySearch) for block in blocks)
        if not searches:
            return CallCharge(usage, served, rates, bit)
        # after each search the model reads the whole prompt again, and usage is the sum
        is_read = bool(served.read or served.written)
        again = CacheUsage(served.prompt if is_read else 0.0, 0.0, 0.0, 0.0 if is_read else served.prompt, 0.0)
        more, dearer = usage_of(again), bill(again, rates, asked.at)
        whole = sum([more] * searches, usage)
        return CallCharge(whole, served, rates, bit + searches * dearer, usage)

    def _cache(self, asked: ProviderCall, rates: Prices) -> CacheSimulator:
        rules = simulated_format(asked.api).cache_rules(asked, rates.cache)
        rules = self._kept(rules) if rules.model == "breakpoints" else rules
        return self._caches.setdefault((asked.key, rules), CacheSimulator(rules))


def usage_of(served: CacheUsage) -> Usage:
    """Round to whole tokens, as in provider reports. The rounding error goes to the fresh tokens."""
    read = round(served.read)
    # a prefix has the same number of tokens when it is written and when it is read
    written = round(served.read + served.written_5m + served.written_1h) - read
    long = min(round(served.written_1h), written)
    return Usage(round(served.prompt) - read - written, read, written, long, round(served.output))


def _text_of(block: Spoken) -> str:
    match block:
        case ReplyText() | ReplyThought():
            return block.text
        case ReplyCall():
            return block.name + block.arguments
        case ReplySearch():
            return block.name + block.query
        case FoundTools():
            return ""
