"""What comes out of preparing a request, and of comparing its answer with what was expected."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from pagein.engine.cache.cache_ttl import CacheTerms, Due
from pagein.engine.cache.prompt_prefix import Part
from pagein.errors import BadInput
from pagein.model.codec import decode_json
from pagein.model.entries import EntryId, EpochEntry, PagedOut
from pagein.model.messages import Message, Usage
from pagein.policy.economics.rewrite_cost import Economics
from pagein.policy.eviction.residency import Thinking
from pagein.policy.stubs.recall_ways import TOOLS, Begins, Way
from pagein.providers.caches.cache_doctor import WELL, Diagnosis
from pagein.providers.validity import Api

Placed: TypeAlias = Literal["new", "continued", "retried", "forked", "compacted", "passed"]
"""How a request stands to those before it: the first of its conversation; more of one that is known; the same as one before; part
of one before and then something else; a conversation that the client began anew; or not looked at."""


@dataclass(frozen=True, slots=True)
class WindowRequest:
    """A request: the first `keep` messages of the one that this session prepared before, then `tail`.

    epoch: how often the window was rewritten so far, by us or by the host. While it lasts, `keep` is all of the request before.
    previewed: big outputs that enter as previews with this request. opened: the epoch that we opened for it, None where we
    left the window alone.
    failure: why what should have been done was not (law 7); the request is good all the same. None where all went well.
    crowded: the window is nearly full although all left that may; the host should compact.
    """

    keep: int
    tail: tuple[Message, ...]
    epoch: int
    opened: EpochEntry | None = None
    failure: str | None = None
    previewed: tuple[PagedOut, ...] = ()
    crowded: bool = False

    @property
    def length(self) -> int:
        """How many messages the request has."""
        return self.keep + len(self.tail)


@dataclass(frozen=True, slots=True)
class Gate:
    """What may be decided before a call. previews: outputs may enter as such. opens: whether an epoch may begin at a message.

    Both are given where a request is not to be touched, or must not be for what stands in it. economics: prices that hold for this call
    alone, None: those of the settings. arguments: texts in those of calls may be masked, where the settings have it so. thinking: what
    becomes of that of finished turns behind an epoch's frontier, None: what the settings say. way: how
    what leaves is brought back, None: nothing leaves that the window does not show. begins: what the first that leaves has to pay for
    besides.
    """

    previews: bool = True
    opens: Callable[[int], bool] = lambda _: True
    economics: Economics | None = None
    arguments: bool = True
    thinking: Thinking | None = "kept"
    way: Way | None = TOOLS
    begins: Begins | None = None


OPEN_GATE: Final = Gate()
CLOSED_GATE: Final = Gate(previews=False, opens=lambda _: False)


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A provider's request, ready to be sent.

    body: the bytes to send; the client's own where nothing was replaced. session: the name of the session that it was placed in, and
    entry: where its request stands there, None where it stands nowhere.
    messages: how many the client sent, and shared: how many of them, from the first on, were known there.
    epoch, opened, previewed: as in `WindowRequest`. replaced: results of the request that stand as a stub or preview now.
    changed_by_client: what of the prefix the client itself changed since the request before on this branch.
    crowded: the window is nearly full although all left that may; the client should compact.
    repaired: the request is not valid by itself, so nothing was decided for it. offered: names of our tools that it has.
    terms: what the cache was asked for, None where that was left to the client.
    failure: why what should have been done was not; the body is good all the same (law 7). ticket: the engine's own, for `observe`.
    last: the name of its last message, by which one that stands nowhere yet is found once it was journaled.
    """

    body: bytes
    api: Api
    at: float | None = None
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
    offered: tuple[str, ...] = ()
    terms: CacheTerms | None = field(default=None, repr=False, compare=False)
    original: bytes = field(default=b"", repr=False)
    ticket: object = field(default=None, repr=False, compare=False)
    last: EntryId = field(default="", repr=False, compare=False)

    @property
    def is_changed(self) -> bool:
        """Whether it differs from what the client sent."""
        return self.body is not self.original and self.body != self.original

    @property
    def request(self) -> dict[str, Any]:
        """The body as plain values."""
        value = decode_json(self.body)
        if not isinstance(value, dict):
            raise BadInput("the request body is not a JSON object")
        return value


@dataclass(frozen=True, slots=True)
class Observation:
    """What an answer tells of its request. Tokens as the provider counts them.

    usage: as reported, None where the reply tells none. expected: what the call before on the branch left in the cache, None for a
    first one; predicted: what the simulator says was read of it. diagnosis: why less was read than expected, where less was.
    failure: why this could not be taken in whole. keep: when the window is to be kept alive, None: not at all.
    """

    usage: Usage | None = None
    expected: float | None = None
    predicted: float = 0.0
    diagnosis: Diagnosis = WELL
    failure: str | None = None
    keep: Due | None = None

    @property
    def shortfall(self) -> int:
        """How many tokens less than expected were read."""
        return self.diagnosis.shortfall

    @property
    def explanation(self) -> str:
        """Why, in one sentence."""
        return self.diagnosis.words
