"""The simulator compared with the provider: predicted and recorded usage, per source.

`append` with the host's own cache TTL repeats the host's requests, so the simulator should report the provider's usage.
With recorded misses replayed this is partly true by construction; the pure figures are the honest test of the cache
model.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pagein.model.bill import Prediction
from pagein.providers.prices.price_lookup import Prices
from pagein.providers.prices.price_lookup import prices as prices_of
from pagein.replay.policies.baselines import APPEND
from pagein.replay.policies.ledger import Ledger
from pagein.replay.prompt.billable_session import BillableSession, provider_family

_ANTHROPIC_PRICES = "generic:r=.1,w=1.25"
_OWN_PRICES = {"anthropic": _ANTHROPIC_PRICES, "openai": "generic:r=.1,w=1,cache=openai-legacy"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Tokens over the calls with recorded usage. written: all tokens except read ones."""

    calls: int = 0
    recorded_read: float = 0.0
    recorded_written: float = 0.0
    read: float = 0.0
    written: float = 0.0
    pure_read: float = 0.0
    pure_written: float = 0.0


def own_prices(model: str) -> Prices:
    """Return the prices of the recording's own cache; Anthropic's for an unknown model."""
    return prices_of(_OWN_PRICES.get(provider_family(model), _ANTHROPIC_PRICES), None)


def compare(replayed: BillableSession, pure: BillableSession, prices: Prices) -> Comparison:
    """Compare one session, with recorded misses replayed and without."""
    used = [i for i, one in enumerate(replayed.sized) if one.call.usage is not None]
    usages = [usage for one in replayed.sized if (usage := one.call.usage) is not None]
    read, written = _predict(replayed, prices, used)
    pure_read, pure_written = _predict(pure, prices, used)
    return Comparison(
        calls=len(used),
        recorded_read=sum(usage.read for usage in usages),
        recorded_written=sum(usage.prompt - usage.read for usage in usages),
        read=read,
        written=written,
        pure_read=pure_read,
        pure_written=pure_written,
    )


def _predict(recording: BillableSession, prices: Prices, used: list[int]) -> tuple[float, float]:
    ledger = Ledger(recording, APPEND, prices, stress=False, trace=True)
    ledger.run()
    trace = ledger.trace
    if trace is None:
        return 0.0, 0.0
    return sum(trace.read[i] for i in used), sum(trace.written[i] + trace.fresh[i] for i in used)


def prediction(sessions: Iterable[Comparison]) -> Prediction:
    """Return the errors of a source."""
    some = list(sessions)
    read = sum(one.recorded_read for one in some)
    written = sum(one.recorded_written for one in some)
    return Prediction(
        calls=sum(one.calls for one in some),
        read_error=_error(sum(one.read for one in some), read),
        written_error=_error(sum(one.written for one in some), written),
        pure_read_error=_error(sum(one.pure_read for one in some), read),
        pure_written_error=_error(sum(one.pure_written for one in some), written),
    )


def _error(predicted: float, recorded: float) -> float | None:
    return round(predicted / recorded - 1, 4) if recorded else None
