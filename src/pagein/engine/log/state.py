"""The state of a session at a journal entry, and the rules of the fold."""

from dataclasses import dataclass, field
from typing import Final

from pagein.engine.log import pin_state as the_hand
from pagein.engine.log.pin_state import Hand
from pagein.engine.log.request_draft import Cell, RequestDraft
from pagein.policy.economics.rewrite_cost import Account
from pagein.policy.eviction.recall_warmth import COLD, Warmth
from pagein.policy.eviction.residency import EMPTY, Residency, ResidentSet
from pagein.policy.privacy.exclusions import EXCLUDED


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class State:
    """The state of a session at a journal entry.

    draft: the next request in the making.
    standing: the resident set, the parts of the draft that may be evicted.
    epoch: number of rewrites of the window, by pagein or by the client.
    sent: the last request that was sent; None before the first.
    sent_at: time of that request, in seconds.
    now: the latest time on any message.
    account: cost and savings of the session so far.
    prefix: estimated tokens of the prompt prefix; 0 if unknown.
    floor: its tokens by the first reported usage; None before the first report.
    scale: tokens that the provider counts for one estimated token, from each report.
    hand: the pins of the user.
    warm: recently recalled calls.
    hasty: True while a dropped result may still be too young to be evicted; each message checks again.
    withheld: digests of texts that were read from excluded files.
    guarded: True if the agent reported a hook that stops calls which quote a mask.
    offered: estimated tokens of the recall tools in each request, which the account counts as added.
    has_frontier: True if the last request had a cache breakpoint of pagein's in front of the next resident.
    """

    draft: RequestDraft = field(default_factory=RequestDraft)
    standing: ResidentSet = EMPTY
    epoch: int = 0
    sent: Cell | None = None
    sent_at: float | None = None
    now: float | None = None
    account: Account = field(default_factory=Account)
    prefix: int = 0
    floor: float | None = None
    scale: float = 1.0
    hand: Hand = the_hand.NOTHING
    warm: Warmth = COLD
    hasty: bool = False
    withheld: frozenset[str] = frozenset()
    guarded: bool = False
    offered: int = 0
    has_frontier: bool = False


START: Final = State()


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that make results evictable.

    residency: settings of the policy.
    excluded: name patterns of files whose content is never evicted.
    """

    residency: Residency
    excluded: tuple[str, ...] = EXCLUDED
