"""The results of `prepare` and `observe`: the request to send, and the cache use of its answer."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from pagein.engine.cache.cache_inputs import AnsweredRequest, Part
from pagein.engine.cache.cache_ttl import KeepAlivePlan, TtlTerms
from pagein.engine.cache.prompt_layout import SentRequest
from pagein.errors import BadInput
from pagein.model.cache_notes import CacheVerdictNote
from pagein.model.entries import AFTER_A_LOSS, EntryId, EpochEntry, PagedOut
from pagein.model.json_text import decode_json
from pagein.model.messages import Message, Usage
from pagein.policy.economics.cache_lifetimes import ShortRewrite
from pagein.policy.economics.rewrite_cost import Account, Economics, Moment
from pagein.policy.eviction.residency import Thinking
from pagein.policy.eviction.results_shown_once import ResultsShownOnce
from pagein.policy.stubs.recall_ways import TOOLS, EnteringTools, Way
from pagein.providers.caches.cache_doctor import WELL, Diagnosis
from pagein.providers.validity import Api

Placed: TypeAlias = Literal["new", "continued", "retried", "forked", "compacted", "passed"]
"""Relation of a request to earlier ones: the first of its conversation; a continuation; a retry; a fork, which shares only the
beginning of one; a conversation that the client began anew; or passthrough."""


@dataclass(frozen=True, slots=True)
class WindowRequest:
    """A request: the first `keep` messages of the session's previous request, then `tail`.

    keep: number of unchanged messages.
    tail: the further messages.
    epoch: rewrites of the window so far, by pagein or by the client. Within an epoch, `keep` is the whole previous
        request.
    opened: the epoch opened for this request; None if the window was left alone.
    failure: reason of an incomplete decision (law 7); the request is valid anyway. None without one.
    previewed: large outputs that enter as previews with this request.
    crowded: True if the window is nearly full after the decision; the client should compact.
    shown_once: results that this request shows once: the caller must put its last cache breakpoint in front of the first
        of them (`Gate.unseen_tail`). None without any.
    is_short: True if the rewrite was priced for the short TTL, so that the request must ask for it (`Gate.rewrite`).
    """

    keep: int
    tail: tuple[Message, ...]
    epoch: int
    opened: EpochEntry | None = None
    failure: str | None = None
    previewed: tuple[PagedOut, ...] = ()
    crowded: bool = False
    shown_once: ResultsShownOnce | None = None
    is_short: bool = False

    @property
    def length(self) -> int:
        """Number of messages in the request."""
        return self.keep + len(self.tail)


@dataclass(frozen=True, slots=True)
class Gate:
    """The allowed decisions for a call.

    previews: True if outputs may enter as previews.
    rereads: False if the provider may take earlier results out of the request, so that none may stand for a later one.
    opens: returns whether an epoch may begin at a message.
    economics: prices of this call; None for those of the settings.
    arguments: True if texts in arguments may be masked, as far as the settings allow.
    thinking: treatment of thinking in finished turns after an epoch's frontier; None for the settings.
    way: how evicted content is recalled; None forbids evictions.
    begins: recall tools that the first eviction must pay for; None if absent.
    servers: returns whether results of the provider's own tools may be evicted.
    unseen_tail: tokens at the end of the request that its messages do not show, where the last cache breakpoint can be put
        in front of results that the request shows once; None where it cannot.
    rewrite: the rewrite for a shorter TTL than the client's; None where only the client's is possible.
    """

    previews: bool = True
    rereads: bool = True
    opens: Callable[[int], bool] = lambda _: True
    economics: Economics | None = None
    arguments: bool = True
    thinking: Thinking | None = "kept"
    way: Way | None = TOOLS
    begins: EnteringTools | None = None
    servers: Callable[[], bool] = lambda: True
    unseen_tail: float | None = None
    rewrite: ShortRewrite | None = None


OPEN_GATE: Final = Gate()
CLOSED_GATE: Final = Gate(previews=False, opens=lambda _: False)
NO_ACCOUNT: Final = Account()


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowCall:
    """A model call in preparation: the decisions of the stages about the window so far.

    at: time of the call, in seconds since 1970; None if unknown.
    gate: the allowed decisions.
    moment: the call as the policy sees it, if nothing enters as a preview; None to compute it.
    previewed: outputs that enter as previews, markers or diffs.
    paid: cost of large outputs as previews beyond their savings, in BIT; None without such previews.
    opened: the epoch opened for the call; None leaves the window as it is.
    account: cost and savings of the session with the call.
    crowded: True if the window is still nearly full.
    entry: journal entry of the request; None until it is journaled.
    epoch: rewrites of the window so far.
    gained: savings of the session by this request, in BIT; None until it is journaled.
    failure: reason of an incomplete decision; None without one.
    shown_once: results that the request shows once; None without any.
    is_short: as in `WindowRequest`.
    """

    at: float | None = None
    gate: Gate = OPEN_GATE
    moment: Moment | None = None
    previewed: tuple[PagedOut, ...] = ()
    paid: float | None = None
    opened: EpochEntry | None = None
    account: Account = NO_ACCOUNT
    crowded: bool = False
    entry: EntryId | None = None
    epoch: int = 0
    gained: float | None = None
    failure: str | None = None
    shown_once: ResultsShownOnce | None = None
    is_short: bool = False


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A provider's request, ready to send.

    body: bytes to send; the client's own if nothing was changed.
    api: the wire format.
    at: time of the request, in seconds since 1970.
    model: name of its model; "" if it names none.
    session: name of its session; "" without one.
    entry: its entry in the session; None if not journaled.
    placed: relation to earlier requests.
    messages: number of messages that the client sent.
    shared: number of leading messages that the session knew.
    epoch, opened, previewed: as in `WindowRequest`.
    replaced: results that are sent as a stub or preview.
    changed_by_client: prompt prefix parts that the client changed since the request before on this branch.
    crowded: True if the window is nearly full after the decision; the client should compact.
    repaired: True if the client's request is invalid by itself, so that nothing was decided.
    failure: reason of an incomplete decision; the body is valid anyway (law 7).
    gained: savings of the session by this request, in BIT; None if nothing was decided.
    offered: names of the tools that pagein added to it.
    deferred: names of the client's tools that the model must search for.
    terms: its cache terms; None if left to the client.
    is_unsure: True if a rewrite may find an entry gone that only renewal keeps (`policy.economics.written_parts`).
    original: the client's bytes.
    sent: the request as it was sent; None if unknown.
    before: the last answered request that it continues, as the journal has it; None without one, and for retries and forks.
    last: name of its last message, which finds a request without an entry after it was journaled.
    """

    body: bytes
    api: Api
    at: float | None = None
    model: str = ""
    session: str = ""
    entry: EntryId | None = None
    placed: Placed = "passed"
    messages: int = 0
    shared: int = 0
    epoch: int = 0
    opened: EpochEntry | None = None
    previewed: tuple[PagedOut, ...] = ()
    replaced: int = 0
    changed_by_client: tuple[Part, ...] = ()
    crowded: bool = False
    repaired: bool = False
    failure: str | None = None
    gained: float | None = None
    offered: tuple[str, ...] = ()
    deferred: tuple[str, ...] = ()
    terms: TtlTerms | None = field(default=None, repr=False, compare=False)
    is_unsure: bool = field(default=False, repr=False, compare=False)
    original: bytes = field(default=b"", repr=False)
    sent: SentRequest | None = field(default=None, repr=False, compare=False)
    before: AnsweredRequest | None = field(default=None, repr=False, compare=False)
    last: EntryId = field(default="", repr=False, compare=False)

    @property
    def extended(self) -> AnsweredRequest | None:
        """The answered request before, if pagein changed nothing of it that the cache still held."""
        is_after_loss = self.opened is not None and self.opened.reason in AFTER_A_LOSS
        return None if self.rewrites and not is_after_loss else self.before

    @property
    def rewrites(self) -> bool:
        """True if it changes a part of the prompt that the request before left in the cache."""
        return self.opened is not None and not self.opened.is_uncached

    @property
    def is_changed(self) -> bool:
        """True if the body differs from the client's."""
        return self.body is not self.original and self.body != self.original

    @property
    def sent_messages(self) -> int:
        """Number of sent messages, with hidden exchanges; 0 if unknown."""
        return 0 if self.sent is None else len(self.sent.items)

    @property
    def request(self) -> dict[str, Any]:
        """The body as plain values."""
        value = decode_json(self.body)
        if not isinstance(value, dict):
            raise BadInput("the request body is not a JSON object")
        return value


@dataclass(frozen=True, slots=True)
class Observation:
    """The cache use of an answered request. Tokens as the provider counts them.

    usage: reported usage; None if the reply has none.
    expected: tokens that the call before on the branch left in the cache; None for a first call.
    predicted: tokens that the simulator predicts to be read.
    diagnosis: why less was read than expected, if so.
    failure: why the reply could not be recorded in full; None if absent.
    keep: the next keep-alive request; None for no keep-alive.
    verdict: news about the provider's cache, shown by this answer; None for no news.
    """

    usage: Usage | None = None
    expected: float | None = None
    predicted: float = 0.0
    diagnosis: Diagnosis = WELL
    failure: str | None = None
    keep: KeepAlivePlan | None = None
    verdict: CacheVerdictNote | None = None

    @property
    def shortfall(self) -> int:
        """Number of tokens read less than expected."""
        return self.diagnosis.shortfall

    @property
    def explanation(self) -> str:
        """The reason, in one sentence."""
        return self.diagnosis.words
