"""Whether a rewrite of the window pays, at the prices of a provider's cache.

Carrying removable tokens costs `read` each at every call; taking them out costs `write - read` for every token behind
the first of them that has to be written again. The rule is that of ski rental: rent until the rent paid equals the price
(notes on cache economics, 2.3 and 2.5). Where the cache is cold everything is written anyway, and the rewrite is free.

Beyond that a *bankroll* binds (law 5): a rewrite may cost no more than what this session has saved so far, and a small
share of its bill. So no session pays more than that share for the engine's own doing, however it ends.

Unit of money: one uncached input token (BIT). All sizes are in tokens.
"""

from dataclasses import dataclass, replace

from pagein.providers.prices.token_prices import Cliff, Peak

USER_TURN_RENT = 0.5  # at a fresh user turn half the rent is enough: a task has ended, and its results with it

COMING = 5.0
"""As many calls as this are taken for coming where a rewrite brings them below a price cliff."""
BELOW = 0.97
"""A request counts as below a price cliff by so much, as sizes are estimates."""
HELD_BACK = 0.75
DENSE = 2.0  # definitions of tools take up to so many times the tokens that their bytes tell
CAUTION = 1.5  # sizes are estimates: what is hidden from us behind the frontier has to be written again too


@dataclass(frozen=True, slots=True)
class Economics:
    """Prices as multiples of an input token, the lifetime of what is cached in seconds, and the share of the bill to risk.

    user_turns: whether a fresh user turn makes a rewrite cheap. keeps_front: whether what stands in front of a rewrite is read as
    before; not where a cache holds whole requests only, which it may have lost or parted since. peak: hours in which all is dearer.
    aside: what was saved, or below nothing spent, beside the window (`policy.economics.cache_keepalive`). void: whether the client changed what stands in
    front of the conversation, so that nothing of it is read at this call. cliff: a size above which all of a request is dearer. least: tokens
    below which the cache holds nothing. at_marks: whether the cache has entries where marks stood, and nowhere else.
    uncached: None for a call that the cache takes part in; for one that it does not, what each token costs, once the client goes back to the
    cache, that is not found there as it was. front: what a token costs that stands in front of all messages, to read and to write, where the
    cache holds these alone; None where it is as all others. entrance: tokens that enter for good when the window is rewritten first.
    """

    read: float = 0.1
    write: float = 1.25
    output: float = 5.0
    lifetime: float = 300.0
    share: float = 0.02
    user_turns: bool = True
    keeps_front: bool = True
    peak: Peak | None = None
    aside: float = 0.0
    void: bool = False
    cliff: Cliff | None = None
    least: int = 0
    at_marks: bool = False
    uncached: float | None = None
    front: tuple[float, float] | None = None
    entrance: float = 0.0


@dataclass(frozen=True, slots=True)
class Account:
    """What a session cost and saved so far, estimated. absent: tokens that the window would hold without us; entering: those of them that
    would enter with the call at hand. anew: tokens up to which the window was written in one go last, so that entries of the cache end there
    and in front of the first result that may still leave alone, `found` tokens from the beginning.
    """

    bill: float = 0.0
    saved: float = 0.0
    absent: int = 0
    entering: int = 0
    anew: int = 0
    found: int = 0


@dataclass(frozen=True, slots=True)
class Moment:
    """The call that is about to be made.

    now, last: its time and that of the call before, seconds; None where nobody knows. size: tokens of the request as
    it stands. new: those behind what the last request held. replied: those of them that the model said.
    user_turn: whether a person has just spoken. floor: tokens that stand in front of all messages. scale: what a token of
    our estimate really was, by what the provider reported.
    """

    now: float | None
    last: float | None
    size: int
    new: int
    replied: int = 0
    user_turn: bool = False
    floor: float = 0.0
    scale: float = 1.0


def is_cold(moment: Moment, economics: Economics) -> bool:
    """Whether nothing of the last request can be read any more: by the clock, once per pause, or because the client changed its front."""
    if economics.void:
        return True
    if moment.now is None or moment.last is None:
        return False
    return moment.now - moment.last > economics.lifetime  # to the second of its lifetime an entry is still read


def is_user_turn(moment: Moment, economics: Economics) -> bool:
    """Whether a person has just spoken, and that counts."""
    return moment.user_turn and economics.user_turns


def times(moment: Moment, economics: Economics) -> float:
    """How many times the usual price this call is at."""
    peak = economics.peak
    return peak.times if peak is not None and moment.now is not None and peak.covers(moment.now) else 1.0


def is_above(moment: Moment, economics: Economics, share: float = 1.0, gain: int = 0) -> bool:
    """Whether a request that is smaller by `gain` stands above this share of the price cliff."""
    cliff = economics.cliff
    return cliff is not None and moment.floor + moment.scale * (moment.size - gain) > share * cliff.above


def falls_short(moment: Moment, economics: Economics, gain: int) -> bool:
    """Whether a request that is smaller by `gain` may be too small to be cached, and might not be without: then it is paid in full at each call."""
    whole = moment.floor + moment.scale * moment.size
    return whole - moment.scale * gain < CAUTION * economics.least and economics.least <= CAUTION * whole


def cliff_savings(moment: Moment, economics: Economics, gain: int) -> float:
    """What this call costs less because taking `gain` tokens out brings it below the price cliff; 0 where it does not."""
    cliff = economics.cliff
    if cliff is None or not is_above(moment, economics) or is_above(moment, economics, BELOW, gain):
        return 0.0
    return times(moment, economics) * (cliff.input - 1.0) * _prompt(moment, economics)


def calls_below(moment: Moment, economics: Economics, gain: int) -> float:
    """How many calls stay below the price cliff if the window goes on to grow as with this one: from 1 to `COMING`."""
    if economics.cliff is None:
        return 1.0
    room = BELOW * economics.cliff.above - moment.floor - moment.scale * (moment.size - gain)
    return max(1.0, min(COMING, room / max(1.0, moment.scale * moment.new)))


def _prompt(moment: Moment, economics: Economics) -> float:
    """The price of the prompt below the cliff, off-peak, if the window is left alone: the least that it can be, for the bankroll has a share
    of it. So where the cache is cold what stands in front of all messages counts as read: others may hold it.
    """
    price = economics.write if is_cold(moment, economics) else economics.read
    held = moment.scale * (moment.size - moment.new)
    front = economics.read if economics.front is None else economics.front[0]
    return front * moment.floor + price * held + economics.write * moment.scale * moment.new


def account_after_call(account: Account, moment: Moment, economics: Economics) -> Account:
    """The account after this call, if the window is left alone."""
    price = economics.write if is_cold(moment, economics) else economics.read
    cliff = economics.cliff if is_above(moment, economics) else None
    prompt = _prompt(moment, economics) * (cliff.input if cliff is not None else 1.0)
    said = economics.output * _surely(moment.scale) * moment.replied * (cliff.output if cliff is not None else 1.0)
    whole = prompt + said
    dearer = times(moment, economics)
    saved = account.saved + dearer * price * _surely(moment.scale) * (account.absent - account.entering)
    return replace(account, bill=account.bill + dearer * whole, saved=saved, entering=0)


def rewrite_cost(moment: Moment, economics: Economics, before: int, gain: int) -> float:
    """What taking `gain` tokens out costs, when `before` tokens stand in front of the first of them. 0 where it is cold.

    A scale above 1 tells of dense text or of tokens that no message shows, such as thinking. Dense text leaves with what goes; hidden
    tokens stay and are written again. So `CAUTION` times the cost is never less than the cost if all of that is hidden.
    """
    if is_cold(moment, economics):
        return 0.0
    keeps_front = economics.keeps_front and moment.floor + moment.scale * before >= economics.least
    behind = max(0, moment.size - (before if keeps_front else 0) - gain - moment.new)
    ahead = 0.0 if keeps_front else moment.floor
    steep = economics.cliff.input if economics.cliff is not None and is_above(moment, economics, BELOW, gain) else 1.0
    again = economics.write - economics.read + (economics.uncached or 0.0)
    in_front = again if economics.front is None else economics.front[1] - economics.front[0]
    dense = moment.scale * behind
    hidden = dense + (moment.scale - _surely(moment.scale)) * gain
    return steep * times(moment, economics) * (again * max(dense, hidden / CAUTION) + in_front * ahead)


def economics_at_entrance(economics: Economics, entrance: float) -> Economics:
    """The prices of a rewrite with which our tools enter in front of all: nothing of the cache is read. entrance: their tokens, which cost next
    to nothing where they are read from the cache, and their full price at every call where they are not.
    """
    is_read = economics.uncached is None or economics.front is not None
    return replace(economics, keeps_front=False, entrance=0.0 if is_read else DENSE * entrance)


def pays(rent: float, cost: float, moment: Moment, economics: Economics, account: Account) -> bool:
    """Whether to rewrite now. rent: what carrying the removable tokens has cost since they might have gone.

    Where the client changed its front, `cost` is what is lost if it changes that back while the cache still holds what was before.
    """
    if is_cold(moment, economics):
        return not economics.void or CAUTION * cost <= in_hand(account, economics)
    due = USER_TURN_RENT if is_user_turn(moment, economics) else 1.0
    return rent > due * cost and CAUTION * cost <= in_hand(account, economics)


def in_hand(account: Account, economics: Economics) -> float:
    """What may be risked: what was saved so far, in the window and beside it, and a share of the bill."""
    return account.saved + economics.aside + economics.share * account.bill


def at_risk(account: Account, economics: Economics) -> float:
    """What of the bill so far may be risked on lifetimes: the bankroll's share of it, less caution, for the bill is an estimate."""
    return economics.share * account.bill / CAUTION


def account_with_previews(account: Account, economics: Economics, spared: int, scale: float) -> Account:
    """The account after big outputs entered as previews. They are not written now and not read later; but a preview may
    not be enough, so a part of what is spared now is held back for recalls.
    """
    saved = account.saved + HELD_BACK * economics.write * _surely(scale) * spared
    return replace(account, saved=saved, absent=account.absent + spared, entering=account.entering + spared)


def _surely(scale: float) -> float:
    """How much of our own estimate what is spared is at least. A scale above 1 may tell of what nobody sees in a request, as thinking, and
    that does not leave with a result; so what is spared counts for no more than we count.
    """
    return min(1.0, scale)


def rewritten(account: Account, moment: Moment, economics: Economics, cost: float, gain: int) -> Account:
    """The account of a call at which the window is rewritten, given that of leaving it alone."""
    first = (
        times(moment, economics) * economics.write * _surely(moment.scale) * gain if is_cold(moment, economics) else 0.0
    )
    saved = account.saved + first - cost
    return replace(account, saved=saved, absent=account.absent + gain, anew=moment.size - gain, found=0)


def readable(account: Account, economics: Economics, before: int) -> int:
    """Tokens in front of a change that are read, when so many stand there: at least those in front of the last entry that is sure to be found."""
    return min(before, account.found) if economics.at_marks and before < account.anew else before
