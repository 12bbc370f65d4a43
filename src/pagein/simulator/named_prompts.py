"""Prompts that a provider stores under a name for later calls: the contract of a wire format with stored prompts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from pagein.providers.prices.token_prices import Prices, charge
from pagein.simulator.model_call import ProviderCall, SimulatedRefusal

_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class NamedPromptRequest:
    """A request for stored prompts.

    call: the prompt in it, as a call.
    """

    method: str
    path: str
    call: ProviderCall

    @property
    def body(self) -> Mapping[str, Any]:
        """The decoded body."""
        return self.call.body

    @property
    def at(self) -> float:
        """The time of the request, in seconds since 1970."""
        return self.call.at


@dataclass(frozen=True, slots=True)
class StoredPrompt:
    """A stored prompt, with its size and the time of its storage.

    made: the time of its creation.
    seconds: for how long it was stored so far.
    """

    model: str
    tokens: int
    made: float
    seconds: float


@dataclass(frozen=True, slots=True)
class NamedPromptsBill:
    """The cost of stored prompts, beside that of the calls.

    tokens: tokens stored, each counted once.
    bit: cost of storing them first, at the price of input.
    token_hours: tokens times the hours of their storage.
    storage_bit, storage_usd: cost of the storage; None if a model has no known price of storage.
    """

    tokens: int = 0
    bit: float = 0.0
    token_hours: float = 0.0
    storage_bit: float | None = 0.0
    storage_usd: float | None = 0.0


def bill_stored(stored: Iterable[StoredPrompt], prices_of: Callable[[str, float], Prices | None]) -> NamedPromptsBill:
    """Bill stored prompts.

    prices_of: the prices of a model at a time; None for unknown ones.
    """
    bill = NamedPromptsBill()
    for one in stored:
        rates = prices_of(one.model, one.made)
        storage = None if rates is None else rates.storage(one.tokens * one.seconds / _HOUR)
        usd = None if rates is None or storage is None else rates.usd(storage)
        bill = NamedPromptsBill(
            bill.tokens + one.tokens,
            bill.bit + (one.tokens if rates is None else charge(rates, (one.tokens, 0, 0, 0, 0), one.made)),
            bill.token_hours + one.tokens * one.seconds / _HOUR,
            None if bill.storage_bit is None or storage is None else bill.storage_bit + storage,
            None if bill.storage_usd is None or usd is None else bill.storage_usd + usd,
        )
    return bill


class NamedPrompts(Protocol):
    """The stored prompts of a provider."""

    def answer(self, asked: NamedPromptRequest) -> Mapping[str, Any] | SimulatedRefusal | None:
        """Answer a request for stored prompts; None for another path."""
        ...

    def resolve_call(self, call: ProviderCall) -> ProviderCall | SimulatedRefusal:
        """Put the named stored prompt in front of a call."""
        ...

    def stored(self, now: float) -> Sequence[StoredPrompt]:
        """The prompts stored so far."""
        ...
