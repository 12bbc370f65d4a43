"""The contract of a wire format in the simulated provider: how it answers, refuses and counts in this format.

Requests are read by the format itself: `pagein.providers.wire`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from pagein.providers.cache_simulator import CacheRules
from pagein.providers.prices.token_prices import Prices
from pagein.providers.validity import Api
from pagein.providers.validity.turns import TurnPart
from pagein.providers.wire.wire_format import Endpoint
from pagein.simulator.model_call import ProviderCall
from pagein.simulator.named_prompts import NamedPrompts
from pagein.simulator.neutral_answer import SimulatedReply
from pagein.simulator.prompt_blocks import PromptBlocks, Prompts

CountTokens: TypeAlias = Callable[[ProviderCall], int]


class MissReasons(Protocol):
    """Explains a cache miss to a call that asks for the reason."""

    def diagnose(self, asked: ProviderCall, tag: str) -> Mapping[str, Any]:
        """Return the fields of the answer named by `tag` about a miss; none for a call that does not ask."""


class ErrorBody(Protocol):
    """Makes the body of an error, from a status; message and kind are the format's own for this status if None."""

    def __call__(self, status: int, message: str | None = None, kind: str | None = None) -> dict[str, Any]: ...


class ErrorEvent(Protocol):
    """Makes an error in the middle of a stream."""

    def __call__(self, status: int, message: str | None = None, kind: str | None = None) -> bytes: ...


class FieldError(Protocol):
    """Says that a field of a request is missing, or of the wrong type."""

    def __call__(self, name: str, *, is_missing: bool) -> str: ...


@dataclass(frozen=True, slots=True)
class SimulatedFormat:
    """A wire format in the simulated provider.

    name: the name of the format in `providers/wire/formats.py`.
    option: its name on the command line.
    endpoint: the meaning of a path, with anything in front of it; None for a path of others.
    whole, events: an answer as a body, and as the events of a stream.
    error, error_event: a failure as a body, and in the middle of a stream.
    needed: the fields that a request must have, with their types.
    field_error: the words about such a field.
    no_key: the words about missing credentials.
    too_long: the words about a prompt of some tokens that is longer than a window of some tokens.
    prompt: the cache's view of a prompt.
    unpriced: the price specification for a model without known prices.
    request_id: the header of an answer with its id.
    signature_error: message and kind of the error for a forged signature of thinking; None for a format without
        signatures.
    cache_rules: the rules of the cache, as a call asks for them.
    memory_blocks: an answer in the form of later requests, for checks of these; None for a format without such checks.
    clears_context: whether a call may ask for context edits.
    keeps_responses: whether answers are stored and continued by id.
    is_prewarming: whether a call only fills the cache, and is answered with nothing.
    count_body: the body of an answer with the tokens of a prompt.
    named_prompts: makes the store of the prompts that clients name in later calls, from functions that count the tokens of a
        prompt and give the fewest that are stored; None for a format without such prompts.
    searches_tools: whether deferred tools stay out of the prompt until the model finds them.
    diagnoses: makes what compares the prompts of calls that ask why the cache was missed; None for a format without such calls.
    refuses_get: whether a GET of a call's path is refused with 426, as for a WebSocket.
    """

    name: Api
    option: str
    endpoint: Callable[[str], Endpoint | None]
    whole: Callable[[SimulatedReply], dict[str, Any]]
    events: Callable[[SimulatedReply], Iterator[bytes]]
    error: ErrorBody
    error_event: ErrorEvent
    needed: Sequence[tuple[str, type]]
    field_error: FieldError
    no_key: str
    too_long: Callable[[int, int], str]
    prompt: Callable[[Prompts, ProviderCall, Prices], PromptBlocks]
    unpriced: str
    request_id: str = "x-request-id"
    signature_error: Callable[[TurnPart], tuple[str, str | None]] | None = None
    cache_rules: Callable[[ProviderCall, CacheRules], CacheRules] = lambda _, rules: rules
    memory_blocks: Callable[[SimulatedReply], Sequence[dict[str, Any]]] | None = None
    clears_context: bool = False
    keeps_responses: bool = False
    is_prewarming: Callable[[ProviderCall], bool] = lambda _: False
    count_body: Callable[[int], dict[str, Any]] = lambda tokens: {"input_tokens": tokens}
    named_prompts: Callable[[CountTokens, CountTokens], NamedPrompts] | None = None
    searches_tools: bool = False
    diagnoses: Callable[[Prompts], MissReasons] | None = None
    refuses_get: bool = False
