"""Test whether a rewrite of the window pays, at the prices of a provider's cache.

Carrying removable tokens costs `read` each at every call; evicting them costs `write - read` for every token behind the
first of them that has to be written again. The rule is that of ski rental: rent until the rent paid equals the price.
Where the cache is cold the whole prompt is written anyway, and the rewrite is free.

Beyond that a *bankroll* binds (law 5): a rewrite may cost no more than this session has saved so far, plus a small
share of its bill. So no session pays more than that share for pagein's own work, however it ends.

Unit of money: one uncached input token (BIT). Sizes are in tokens.
"""

from dataclasses import dataclass, replace

from pagein.providers.prices.token_prices import Cliff, Peak

USER_TURN_RENT = 0.5
"""Share of the rent that is enough at a fresh user turn: a task has ended, and its results are not needed any more."""
COMING = 5.0
"""Assumed number of future calls that benefit when a rewrite drops below a price cliff."""
BELOW = 0.97
"""Share of a price cliff under which a request counts as below it, as sizes are estimates."""
HELD_BACK = 0.75
"""Share of the savings of previews and masks that counts; the rest may be spent on recalls of their texts."""
DENSE = 2.0
"""Tool definitions take up to this many times the tokens that their bytes suggest."""
SPARSE = 0.45
"""Part by which an estimate of text that no report counts yet may be too high: up to 5 characters a token."""
CAUTION = 1.5
"""Factor on the cost of a rewrite. Sizes are estimates: hidden tokens after the frontier have to be written again too."""
UNREPORTED = 4 / 3
"""Feared real tokens per estimated token before the provider has reported a count: three characters a token, not four.
"""
REPORTED = 1.05
"""Feared real tokens per estimated token after the provider has reported a count."""


@dataclass(frozen=True, slots=True)
class Economics:
    """Prices as multiples of an input token, the cache TTL, and the share of the bill to risk.

    read, write, output: price of a cached token read, a token written, a token generated.
    lifetime: cache TTL, seconds.
    share: share of the bill that the bankroll may risk.
    user_turns: whether a fresh user turn makes a rewrite cheap.
    keeps_front: whether the prompt in front of a rewrite is read as before; False for a cache of whole requests, which
        may have lost or split the entry.
    peak: hours with dearer prices.
    aside: BIT saved (or spent, if negative) besides the window (`policy.economics.cache_keepalive`).
    void: whether the client changed the prompt prefix, so that this call reads nothing from the cache.
    cliff: request size above which every token is dearer.
    least: tokens below which the cache stores nothing.
    at_marks: whether the cache has entries at earlier cache breakpoints only.
    uncached: None for a call that uses the cache; else the cost of each token that is missing once the client goes back
        to the cache.
    front: price of a token of the prompt prefix, to read and to write, where the cache holds the prefix alone; None
        where it costs the same as the messages.
    entrance: tokens of tools that enter for good with the first rewrite.
    reported: tokens of the last request, as the provider reported them, where the prompt prefix is written again too;
        0 if unknown.
    sure_from: the least tokens in front of a rewrite that are surely read as before (`policy.economics.written_parts`).
    marks_front: whether an entry ends with the prompt prefix, as a breakpoint of the client there leaves one.
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
    reported: int = 0
    sure_from: float = 0.0
    marks_front: bool = True


@dataclass(frozen=True, slots=True)
class Account:
    """Estimated cost and savings of a session so far.

    bill, saved: BIT.
    absent: tokens that the window would hold without pagein.
    entering: part of `absent` that would enter with the current call.
    anew: tokens up to which the window was last written in one go; cache entries end there, and in front of the first
        result that may still be evicted.
    found: tokens from the beginning to that first result; 0 if no entry ends there.
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

    now, last: time of this call and of the call before, seconds; None if unknown.
    size: tokens of the request as it stands.
    new: tokens beyond the last request.
    replied: part of `new` that the model wrote.
    user_turn: whether a person has just spoken.
    floor: tokens of the prompt prefix.
    scale: real tokens per estimated token, from the provider's report.
    blocks: content blocks beyond the last request.
    uncounted: whether an image, a document or another block is among them whose tokens no estimate can tell.
    """

    now: float | None
    last: float | None
    size: int
    new: int
    replied: int = 0
    user_turn: bool = False
    floor: float = 0.0
    scale: float = 1.0
    blocks: int = 0
    uncounted: bool = False


def is_cold(moment: Moment, economics: Economics) -> bool:
    """Return whether the cache no longer holds any of the last request: expired, or void after a change of the prompt
    prefix.
    """
    if economics.void:
        return True
    if moment.now is None or moment.last is None:
        return False
    return moment.now - moment.last > economics.lifetime  # an entry is readable up to the last second of its TTL


def is_user_turn(moment: Moment, economics: Economics) -> bool:
    """Return whether a person has just spoken and the settings count user turns."""
    return moment.user_turn and economics.user_turns


def price_factor(moment: Moment, economics: Economics) -> float:
    """Return the factor on the prices of this call: 1, or more in peak hours."""
    peak = economics.peak
    return peak.times if peak is not None and moment.now is not None and peak.covers(moment.now) else 1.0


def is_above_cliff(moment: Moment, economics: Economics, share: float = 1.0, gain: int = 0) -> bool:
    """Return whether a request smaller by `gain` is above this share of the price cliff."""
    cliff = economics.cliff
    return cliff is not None and moment.floor + moment.scale * (moment.size - gain) > share * cliff.above


def falls_short(moment: Moment, economics: Economics, gain: int) -> bool:
    """Return whether evicting `gain` tokens may leave a request too small to be cached.

    Such a request is paid in full at each call. A request that is too small already may grow, and without the evicted
    tokens it would be cached later than the client's own. What no report has counted yet is counted low.
    """
    unreported = max(0, moment.new - gain)
    whole = moment.floor + moment.scale * (moment.size - gain - SPARSE * unreported)
    return whole < CAUTION * economics.least


def falls_short_unreported(moment: Moment, economics: Economics, prefix: int, gain: int) -> bool:
    """Return whether a request may fall short, as `falls_short` tells, before the provider has reported any count.

    prefix: estimated tokens of the prompt prefix, which is counted low too; 0 if unknown, and then nothing falls short.
    """
    whole = replace(moment, floor=(1.0 - SPARSE) * prefix, new=moment.size)
    return prefix > 0 and falls_short(whole, economics, gain)


def cliff_savings(moment: Moment, economics: Economics, gain: int) -> float:
    """Return the savings of this call if evicting `gain` tokens brings the request below the price cliff, else 0."""
    cliff = economics.cliff
    if cliff is None or not is_above_cliff(moment, economics) or is_above_cliff(moment, economics, BELOW, gain):
        return 0.0
    return price_factor(moment, economics) * (cliff.input - 1.0) * _prompt(moment, economics)


def calls_below(moment: Moment, economics: Economics, gain: int) -> float:
    """Return the number of calls, from 1 to `COMING`, that stay below the price cliff at this call's rate of growth."""
    if economics.cliff is None:
        return 1.0
    room = BELOW * economics.cliff.above - moment.floor - moment.scale * (moment.size - gain)
    return max(1.0, min(COMING, room / max(1.0, moment.scale * moment.new)))


def _prompt(moment: Moment, economics: Economics) -> float:
    """Return the lowest possible price of the unchanged prompt, below the cliff and off-peak.

    The lowest, because the bankroll has a share of it. So where the cache is cold the prompt prefix counts as read:
    other sessions may hold it.
    """
    price = economics.write if is_cold(moment, economics) else economics.read
    held = moment.scale * (moment.size - moment.new)
    front = economics.read if economics.front is None else economics.front[0]
    return front * moment.floor + price * held + economics.write * moment.scale * moment.new


def account_after_call(account: Account, moment: Moment, economics: Economics) -> Account:
    """Return the account after this call, if the window is left alone."""
    price = economics.write if is_cold(moment, economics) else economics.read
    cliff = economics.cliff if is_above_cliff(moment, economics) else None
    prompt = _prompt(moment, economics) * (cliff.input if cliff is not None else 1.0)
    said = economics.output * certain_part(moment.scale) * moment.replied * (cliff.output if cliff is not None else 1.0)
    whole = prompt + said
    dearer = price_factor(moment, economics)
    saved = account.saved + dearer * price * certain_part(moment.scale) * (account.absent - account.entering)
    return replace(account, bill=account.bill + dearer * whole, saved=saved, entering=0)


@dataclass(frozen=True, slots=True)
class CallOutlook:
    """The outlook of a call at the start of a decision.

    alone: the account after this call, if the window is left alone.
    is_cold: as `is_cold` tells. is_user_turn: as `is_user_turn` tells.
    """

    alone: Account
    is_cold: bool
    is_user_turn: bool


def call_outlook(account: Account, moment: Moment, economics: Economics) -> CallOutlook:
    """Return the outlook of a call for a decision before the call."""
    alone = account_after_call(account, moment, economics)
    return CallOutlook(alone, is_cold(moment, economics), is_user_turn(moment, economics))


def rewrite_cost(moment: Moment, economics: Economics, before: int, gain: int) -> float:
    """Return the cost of evicting `gain` tokens with `before` tokens in front of the first of them; 0 for a cold cache.

    A scale above 1 tells of dense text or of tokens that no message shows, such as thinking. Dense text leaves with the
    evicted results; hidden tokens stay and are written again. So `CAUTION` times the cost is never less than the cost
    if the whole difference is hidden.
    """
    if is_cold(moment, economics):
        return 0.0
    in_front_of_it = moment.floor + moment.scale * before
    is_held = before > 0 or economics.marks_front
    keeps_front = economics.keeps_front and is_held and in_front_of_it >= max(economics.least, economics.sure_from)
    behind = max(0, moment.size - (before if keeps_front else 0) - gain - moment.new)
    steep = (
        economics.cliff.input if economics.cliff is not None and is_above_cliff(moment, economics, BELOW, gain) else 1.0
    )
    again = economics.write - economics.read + (economics.uncached or 0.0)
    in_front = again if economics.front is None else economics.front[1] - economics.front[0]
    dense = moment.scale * behind
    # a floor that was measured too low hides most of a prompt
    ahead = 0.0 if keeps_front else max(moment.floor, economics.reported - dense - moment.scale * gain)
    hidden = dense + (moment.scale - certain_part(moment.scale)) * gain
    return steep * price_factor(moment, economics) * (again * max(dense, hidden / CAUTION) + in_front * ahead)


def economics_at_entrance(economics: Economics, entrance: float) -> Economics:
    """Return the prices of a rewrite that also puts the recall tools in front of the prompt: nothing is read from the
    cache.

    entrance: tokens of the tools. They cost next to nothing where they are read from the cache, and their full price at
        every call where they are not.
    """
    is_read = economics.uncached is None or economics.front is not None
    return replace(economics, keeps_front=False, entrance=0.0 if is_read else DENSE * entrance)


def pays(rent: float, cost: float, moment: Moment, economics: Economics, account: Account) -> bool:
    """Return whether to rewrite now.

    rent: cost of carrying the removable tokens since they became removable.
    Where the client changed its prompt prefix, `cost` is the loss if the client changes it back while the cache still
    holds the old prompt.
    """
    if is_cold(moment, economics):
        return not economics.void or CAUTION * cost <= bankroll(account, economics)
    due = USER_TURN_RENT if is_user_turn(moment, economics) else 1.0
    return rent > due * cost and CAUTION * cost <= bankroll(account, economics)


def bankroll(account: Account, economics: Economics) -> float:
    """Return the amount that may be risked, in BIT: savings in the window and elsewhere, and a share of the bill."""
    return account.saved + economics.aside + economics.share * account.bill


def at_risk(account: Account, economics: Economics) -> float:
    """Return the BIT of the bill so far to risk on cache TTLs: the bankroll's share, less caution for an estimated
    bill.
    """
    return economics.share * account.bill / CAUTION


def account_with_previews(account: Account, economics: Economics, spared: int, scale: float) -> Account:
    """Return the account after big outputs entered as previews.

    They are not written now and not read later; but a preview may not be enough, so a part of the savings is held back
    for recalls.
    """
    saved = account.saved + HELD_BACK * economics.write * certain_part(scale) * spared
    return replace(account, saved=saved, absent=account.absent + spared, entering=account.entering + spared)


def account_with_tools(account: Account, economics: Economics | None, tools: int) -> Account:
    """Return the account after recall tools of so many tokens have entered with a rewrite, which writes them."""
    written = 0.0 if economics is None else economics.write * tools
    return replace(account, saved=account.saved - written, absent=account.absent - tools)


def certain_part(scale: float) -> float:
    """Return the certain part of each estimated token saved.

    A scale above 1 may come from tokens that no request shows, such as thinking, and these do not leave with a result;
    so savings count at most as estimated.
    """
    return min(1.0, scale)


def account_after_rewrite(account: Account, moment: Moment, economics: Economics, cost: float, gain: int) -> Account:
    """Return the account of a call with a rewritten window, given the account without the rewrite."""
    first = (
        price_factor(moment, economics) * economics.write * certain_part(moment.scale) * gain
        if is_cold(moment, economics)
        else 0.0
    )
    saved = account.saved + first - cost
    return replace(account, saved=saved, absent=account.absent + gain, anew=moment.size - gain, found=0)


def readable_tokens(account: Account, economics: Economics, before: int) -> int:
    """Return the tokens in front of a change that are certain to be read from the cache.

    With entries at cache breakpoints only, that is the prompt up to the last entry sure to be found.
    """
    if not economics.at_marks or before >= account.anew:
        return before
    return account.found if account.found <= before else 0


# --- how large a request may be ---


def high_estimate(moment: Moment, spared: int = 0, *, reported: bool) -> float:
    """Return a high estimate of the request's tokens after `spared` tokens have left.

    reported: whether the provider has reported a token count.
    """
    if reported:
        return REPORTED * (moment.floor + moment.scale * (moment.size - spared))
    return UNREPORTED * (moment.floor + moment.size - spared)


def likely_tokens(moment: Moment, spared: int = 0, *, reported: bool) -> float:
    """Return the last reported token count plus a high estimate of the news, after `spared` tokens have left.

    reported: whether the provider has reported a token count. If not, the whole request is estimated high.
    """
    if not reported:
        return high_estimate(moment, spared, reported=False)
    return moment.floor + moment.scale * (moment.size - spared + (UNREPORTED - 1) * moment.new)


def excess_tokens(moment: Moment, allowed: float, *, reported: bool) -> float:
    """Return the estimated tokens to evict until a high estimate is within `allowed`."""
    each = REPORTED * moment.scale if reported else UNREPORTED
    return max(0.0, high_estimate(moment, reported=reported) - allowed) / each
