"""Decide evictions before a call, and texts that return, from policy, pins and window size.

Rules of this file
------------------
1. Content is stored before its stub may be sent. If the store cannot be written, nothing is evicted, and the failure is
   reported (law 1).
2. A pinned result stays, with everything that it depends on. A recently recalled text stays for a while.
3. A restored text is exactly the stored text. A read answer with markers is not restored: the window might no longer
   prove it.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pagein.engine.log.pageout import EvictionCandidate, Pager
from pagein.engine.log.request_draft import cut, pieces_since, shared_length, size
from pagein.engine.log.server_residents import SERVER
from pagein.engine.log.state import Rules, State
from pagein.engine.log.state_fold import step
from pagein.engine.reads.testimony import Stored
from pagein.engine.window import full_window
from pagein.engine.window.decision_inputs import account_after_previews, warm_calls
from pagein.engine.window.dependencies import UNPROVEN, sound_evictions
from pagein.engine.window.entry_masks import masked_on_entry, with_masked_on_entry
from pagein.engine.window.full_window import FullWindow, TurnRemoval
from pagein.engine.window.old_thinking import thought_in
from pagein.engine.window.restored_texts import places_to_restore, recall_for_window
from pagein.engine.window.shown_once import with_shown_once
from pagein.engine.window.stored_turns import store_turns
from pagein.errors import BadSetting, NotRecallable, StoreError
from pagein.model.entries import EpochEntry, PagedOut, Restoration, ThinkingObject, TurnsLeft
from pagein.model.journal_notes import ShownOnceNote
from pagein.model.messages import ToolCall
from pagein.policy.clients.window_files import NO_FILES, WindowFiles
from pagein.policy.economics.cache_lifetimes import ShortRewrite
from pagein.policy.economics.rewrite_cost import Account, Moment, excess_tokens, high_estimate, is_cold, likely_tokens
from pagein.policy.eviction import overflow
from pagein.policy.eviction.dependencies import plan_without
from pagein.policy.eviction.overflow import ReturningResult, Valve
from pagein.policy.eviction.read_ages import ReadAges
from pagein.policy.eviction.residency import Epoch, EpochPlan, Residency, plan
from pagein.policy.eviction.residents import Resident
from pagein.policy.privacy.exclusions import EXCLUDED
from pagein.policy.stubs.recall_ways import TOOLS, Way
from pagein.providers.prices.price_lookup import prices


@dataclass(frozen=True, slots=True)
class Scene:
    """The input of an eviction decision.

    session: name of the session.
    state: state at the request.
    residency: settings of the policy.
    valve: settings of the overflow.
    moment: the call as the policy sees it.
    previewed: outputs that enter as previews with the call.
    stored: returns stored versions for the witness; None to skip the witness.
    model: name of the model; None if unknown.
    files: what the window shows of files.
    opens: returns whether an epoch may begin at a message.
    paid: cost of this call's previews beyond their savings, in BIT.
    excluded: name patterns of files whose content is never stored.
    way: how the model recalls.
    servers: returns whether results of the provider's own tools may leave.
    shown: what the last request showed once; None without any.
    rewrite: as in `Gate`.
    """

    session: str
    state: State
    residency: Residency
    valve: Valve
    moment: Moment
    previewed: tuple[PagedOut, ...] = ()
    stored: Stored | None = None
    model: str | None = None
    files: WindowFiles = NO_FILES
    opens: Callable[[int], bool] = lambda _: True
    paid: float = 0.0
    excluded: tuple[str, ...] = EXCLUDED
    way: Way = TOOLS
    servers: Callable[[], bool] = lambda: True
    shown: ShownOnceNote | None = None
    rewrite: ShortRewrite | None = None

    @property
    def window(self) -> int | None:
        """Size of the model's window in tokens, by setting or by table; None if unknown."""
        return window_of(self.valve, self.model)


@dataclass(frozen=True, slots=True)
class EvictionOutcome:
    """The result of an eviction decision.

    opened: the epoch; None leaves the window as it is.
    failure: reason of an incomplete decision; None if absent.
    account: the account after the decision.
    crowded: True if the window is still nearly full; the client should compact.
    is_short: True if the rewrite is priced for the short TTL.
    """

    opened: EpochEntry | None
    failure: str | None
    account: Account
    crowded: bool = False
    is_short: bool = False


def window_of(valve: Valve, model: str | None) -> int | None:
    """Return the window size of a model in tokens, by setting or by table; None if unknown."""
    return valve.window if valve.window is not None or model is None else _listed_window(model)


@functools.lru_cache(maxsize=256)
def _listed_window(model: str) -> int | None:
    try:
        return prices(model).window
    except BadSetting:
        return None


def evict(scene: Scene, pager: Pager) -> EvictionOutcome:
    """Decide evictions and store their content. If the store fails, the window stays, and the outcome has the reason."""
    scene = _without_servers(scene) if scene.residency.rules.lets_server_results_go else scene
    state, moment, account = scene.state, scene.moment, _account_at_call(scene)
    planned = _plan(scene, moment, account)
    is_feared = _is_full(scene, moment, 0 if planned.epoch is None else planned.epoch.gain)
    whole, is_waiting = list[TurnRemoval](), False
    if is_feared and not state.hand.off:
        planned, whole, is_waiting = _plan_overflow(scene, moment, account, planned)
    planned = _with_uncached(scene, moment, planned)
    leaving, objection = _candidates(scene, planned, whole)
    if not leaving and not whole and not state.hand.restoring:
        is_crowded = not is_waiting and (is_feared or planned.epoch is not None) and _is_full(scene, moment, 0)
        return EvictionOutcome(None, objection, planned.alone, is_crowded)
    if (leaving or whole) and not scene.opens(_frontier(leaving, whole)):
        return EvictionOutcome(None, objection, planned.alone, _is_full(scene, moment, 0))
    try:
        paged = pager.page_out(scene.session, leaving, scene.way, scene.residency.arguments, scene.valve.pastes)
        turns = _turns(scene, paged, whole, pager)
        back, missing = _texts_to_restore(scene, planned, moment, pager)
        places = [one.message for one in paged] + [place for one in turns for place in (one.message, one.places[0][0])]
        thought = _store_thinking(scene, pager, places + [one.place.message for one in back])
    except StoreError as problem:
        failure = f"nothing was paged out: {type(problem).__name__}: {problem}"
        return EvictionOutcome(None, failure, planned.alone, _is_full(scene, moment, 0))
    if back:
        reason = overflow.ORDERED if state.hand.epoch_now else overflow.RESTORED
        planned = overflow.with_returns(planned, scene.residency, moment, [one.place for one in back], reason)
    planned = _with_turns(scene, planned, moment, account, whole)
    opened = _make_epoch(state, planned, paged, tuple(one.restored for one in back), thought, turns)
    gain = sum(one.resident.gain for one in leaving) - sum(one.place.tokens for one in back)
    gain += sum(one.gain for one in whole)
    failure = "; ".join([*([objection] if objection else []), *missing])
    account = planned.alone if opened is None else planned.account
    return EvictionOutcome(
        opened, failure or None, account, not is_waiting and _is_full(scene, moment, gain), planned.is_short
    )


def _account_at_call(scene: Scene) -> Account:
    """Return the account before the decision, with what the previews of this call saved and cost."""
    account = scene.state.account
    if scene.previewed:
        account = account_after_previews(account, scene.previewed, scene.residency, scene.state.scale)
    return replace(account, saved=account.saved - scene.paid)


def _candidates(
    scene: Scene, planned: EpochPlan, whole: Sequence[TurnRemoval]
) -> tuple[Sequence[EvictionCandidate], str | None]:
    """Return the results that a plan may let go without an answer losing its proof, and the objection of the witness."""
    files, calls = scene.files, _calls_in(scene.state, whole)
    # without an eviction, only answers that are unproven already may have to leave
    if planned.epoch is None and scene.stored is None and not (calls or files.own.unproven or files.client.unproven):
        return (), None
    return sound_evictions(scene.state, files, planned, scene.stored, calls)


def _without_servers(scene: Scene) -> Scene:
    """Leave results of the provider's own tools in the window where the request does not allow their eviction."""
    standing = scene.state.standing
    places = [one.place for one in standing.all() if one.form == SERVER]
    if not places or scene.servers():
        return scene
    return replace(scene, state=replace(scene.state, standing=standing.without(places)))


def _store_thinking(scene: Scene, pager: Pager, places: Sequence[int]) -> ThinkingObject | None:
    """Store the thinking that an epoch evicts, new messages included. Raises StoreError."""
    if scene.residency.thinking != "leaves" or not places:
        return None
    tip = scene.state.draft.ready.tip
    found = thought_in(pieces_since(tip, min(*places, shared_length(scene.state.sent, tip))))
    return None if found is None else pager.keep_thinking(scene.session, scene.state.epoch + 1, *found)


def _make_epoch(
    state: State,
    planned: EpochPlan,
    paged: Sequence[PagedOut],
    back: Sequence[Restoration],
    thought: ThinkingObject | None,
    turns: Sequence[TurnsLeft],
) -> EpochEntry | None:
    places = [one.message for one in paged] + [one.message for one in back]
    places += [min(one.message, one.places[0][0]) for one in turns]
    if not places:
        return None
    epoch = planned.epoch or Epoch(0, reason=UNPROVEN)
    others_go_too = epoch.uncached and any(not epoch.is_free(one.call_id, (one.message, one.block)) for one in paged)
    reason = UNPROVEN if others_go_too else epoch.reason
    return EpochEntry(state.epoch + 1, min(places), tuple(paged), reason, tuple(back), thought, tuple(turns))


# --- overflow ---


def _plan_overflow(
    scene: Scene, moment: Moment, account: Account, planned: EpochPlan
) -> tuple[EpochPlan, list[TurnRemoval], bool]:
    """Plan for a nearly full window: evict results first, then whole turns and steps.

    The plan stays, with True as third value, if the bankroll does not cover the rewrite and the window is below the
    limit: the session can still continue, end, be compacted or pause, and then the rewrite would be wasted, or free
    later.
    """
    seen, most = _full_window(scene), _excess_of(scene, moment)
    texts = full_window.long_user_texts(seen, scene.valve.pastes)
    kinds = (scene.state.standing.all(), full_window.failures(seen), texts)
    forced = overflow.overflow_plan(
        kinds, scene.residency, moment, account, most=most, newest=seen.newest, held=seen.held
    )
    going, spared = ((), 0) if forced.epoch is None else (forced.epoch.page_out, forced.epoch.gain)
    missing = most - spared
    whole = full_window.whole(seen, missing, going) if missing > 0 else []
    charged = _with_turns(scene, forced, moment, account, whole)
    gain = 0 if planned.epoch is None else planned.epoch.gain
    if _is_at_limit(scene, moment, gain) or overflow.is_covered(charged, scene.residency):
        return forced, whole, False
    return planned, [], True


def _full_window(scene: Scene) -> FullWindow:
    """Return the window in the form for overflow evictions."""
    draft, allowed = scene.state.draft, scene.valve.low * (scene.window or 0)
    held = _calls_kept_by_user(scene) | scene.state.hand.calls_that_stay
    return FullWindow(pieces_since(draft.ready.tip, 0), draft.calls, held, scene.excluded, allowed)


def _calls_in(state: State, whole: Sequence[TurnRemoval]) -> frozenset[str]:
    """Return the calls in turns that are evicted whole."""
    pieces = pieces_since(state.draft.ready.tip, 0) if whole else []
    blocks = (block for one in whole for place in one.places for block in pieces[place].message.blocks)
    return frozenset(block.id for block in blocks if isinstance(block, ToolCall))


def _frontier(leaving: Sequence[EvictionCandidate], whole: Sequence[TurnRemoval]) -> int:
    """Return the first message that changes."""
    return min([one.resident.message for one in leaving] + [one.first for one in whole])


def _turns(scene: Scene, paged: Sequence[PagedOut], whole: Sequence[TurnRemoval], pager: Pager) -> list[TurnsLeft]:
    """Store the turns to evict whole, in their form after the other evictions. Raises StoreError."""
    if not whole:
        return []
    state = scene.state
    number, frontier = state.epoch + 1, min((one.message for one in paged), default=0)
    after = step(state, EpochEntry(number, frontier, tuple(paged)), Rules(scene.residency, scene.excluded))
    pieces = pieces_since(after.draft.ready.tip, 0)
    room = _full_window(scene).room()
    return [store_turns(scene.session, pieces, one, room, pager, scene.way) for one in whole]


def _with_turns(
    scene: Scene, planned: EpochPlan, moment: Moment, account: Account, whole: Sequence[TurnRemoval]
) -> EpochPlan:
    """Add whole turns to a plan, with their cost."""
    if not whole:
        return planned
    tip = scene.state.draft.ready.tip
    turns = [Resident("", one.first, 0, one.gain, 0, before=size(cut(tip, one.first)), stays=0) for one in whole]
    going = () if planned.epoch is None else planned.epoch.page_out
    charged = overflow.plan_of([*going, *turns], scene.residency, moment, account, overflow.FULL)
    return replace(charged, epoch=Epoch(charged.epoch.frontier if charged.epoch else 0, going, overflow.FULL))


# --- evictions ---


def _plan(scene: Scene, moment: Moment, account: Account) -> EpochPlan:
    """Return the plan: at the short TTL's price, where that leaves enough in hand, else at the client's."""
    short, prices = scene.rewrite, scene.residency.economics
    if short is not None and prices is not None and prices.uncached is None:
        # the prompt prefix keeps the client's TTL
        cheaper = replace(prices, write=short.write, front=(prices.read, prices.write))
        planned = _plan_at(scene, replace(scene.residency, economics=cheaper), moment, account)
        if planned.epoch is not None:
            gain = sum(one.gain for one in planned.epoch.page_out)
            if short.is_covered(max(0.0, planned.alone.saved - planned.account.saved), moment.scale * gain):
                return replace(planned, is_short=True)
    return _plan_at(scene, scene.residency, moment, account)


def _plan_at(scene: Scene, settings: Residency, moment: Moment, account: Account) -> EpochPlan:
    """Return the policy's plan at the prices of these settings; without one, the user's order."""
    state, hand = scene.state, scene.state.hand
    planned = plan(state.standing, settings, moment, account)
    if hand.off:
        return EpochPlan(None, planned.alone, planned.alone)
    # dependencies are computed only for a planned eviction: they need all reads in the window
    if planned.epoch is not None or hand.epoch_now:
        last = state.draft.calls - max(settings.reads_wait, 1)
        rules = settings.rules
        work = ReadAges(rules, state.draft.calls, state.standing.work) if rules.of("file read") else None
        kept = _calls_kept_by_user(scene) | warm_calls(state)
        young = scene.files.calls_needed_by_young(last, work)
        planned = plan_without(planned, kept | young, state.standing, settings, moment)
        if planned.epoch is None and hand.epoch_now:
            # the order also covers results in use by young answers of pagein's own tool, which leave with them
            kept |= scene.files.client.calls_needed_by_young(last, work)
            planned = overflow.user_plan(state.standing, settings, moment, account, kept)
    return planned


def _with_uncached(scene: Scene, moment: Moment, planned: EpochPlan) -> EpochPlan:
    """Add uncached text to a plan: results that the last request showed once, and arguments masked on entry."""
    state, residency = scene.state, scene.residency
    if state.hand.off:
        return planned
    if scene.shown is not None:
        planned = with_shown_once(planned, scene.shown, state, _calls_kept_by_user(scene) | warm_calls(state))
    if residency.arguments is None or residency.arguments.on_entry is None:
        return planned
    entering = masked_on_entry(state, residency, _calls_kept_by_user(scene), scene.excluded)
    return with_masked_on_entry(planned, entering, residency, moment)


def _excess_of(scene: Scene, moment: Moment) -> float:
    """Return the estimated tokens to evict from a nearly full window."""
    allowed = scene.valve.low * (scene.window or 0)
    return excess_tokens(moment, allowed, reported=scene.state.floor is not None)


def _is_full(scene: Scene, moment: Moment, gain: int) -> bool:
    """Return whether a high estimate of the request exceeds the share of the window at which overflow begins.

    gain: tokens that leave.
    """
    allowed = scene.valve.share * (scene.window or 0)
    return allowed > 0 and high_estimate(moment, gain, reported=scene.state.floor is not None) > allowed


def _is_at_limit(scene: Scene, moment: Moment, gain: int) -> bool:
    tokens = likely_tokens(moment, gain, reported=scene.state.floor is not None)
    return overflow.is_at_limit(scene.valve, scene.window, tokens)


def _calls_kept_by_user(scene: Scene) -> frozenset[str]:
    """Return the calls on which a pinned answer depends. Pinned results are not residents."""
    return scene.files.calls_needed_with(scene.state.hand.calls_that_stay)


# --- restored texts ---


@dataclass(frozen=True, slots=True)
class _Restoration:
    place: ReturningResult
    restored: Restoration


def _texts_to_restore(
    scene: Scene, planned: EpochPlan, moment: Moment, pager: Pager
) -> tuple[list[_Restoration], list[str]]:
    """Return the texts to restore with this call, and the reasons of failures."""
    hand, economics = scene.state.hand, scene.residency.economics
    if not hand.restoring or hand.off:
        return [], []
    epoch, is_free = planned.epoch, economics is not None and is_cold(moment, economics)
    overflows = epoch is not None and epoch.reason == overflow.FULL  # what leaves makes no room for what returns
    is_cheap = hand.epoch_now or is_free or (epoch is not None and not epoch.uncached)
    if not is_cheap or overflows or _is_full(scene, moment, 0 if epoch is None else epoch.gain):
        return [], []
    back: list[_Restoration] = []
    problems: list[str] = []
    for place, index, paged, before in places_to_restore(scene.state, hand):
        if not scene.opens(place):
            continue
        try:
            text = recall_for_window(pager, paged.object_id)
        except (NotRecallable, StoreError) as problem:
            problems.append(f"{paged.object_id} was not restored: {problem}")
            continue
        restored = Restoration(paged.call_id, paged.object_id, text, paged.tokens, place, index, paged.part)
        back.append(_Restoration(ReturningResult(place, before, paged.tokens), restored))
    return back, problems
