"""The pass before a call: what leaves the window and what comes back, by the policy, the user's hand and the size of the window.

Rules of this file
------------------
1. Content is stored before its stub may be sent. Where the store cannot be written nothing leaves, and that is told (law 1).
2. What the user holds stays, with all that it rests on. What was recalled lately stays while it is warm.
3. What comes back is exactly what was stored. An answer that stands for other text does not come back: the window would not bear it out.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from pagein.engine.evidence import Evidence
from pagein.engine.hand import Hand
from pagein.engine.paging import Pager
from pagein.engine.passes import credited, moment_of
from pagein.engine.rendering import pieces_since, shared
from pagein.engine.state import State
from pagein.engine.testimony import Stored
from pagein.engine.thoughts import thought_in
from pagein.engine.upholding import UNPROVEN, leaving_soundly, spared
from pagein.errors import BadSetting, NotRecallable, StoreError
from pagein.model.entries import EpochOpened, PagedOut, Restored, Thought
from pagein.model.messages import ToolCall, ToolResult
from pagein.policy import forcing
from pagein.policy.clients.chains import START, ClientReads
from pagein.policy.economics import Account, Moment, is_cold
from pagein.policy.files import Work
from pagein.policy.forcing import Back, Valve
from pagein.policy.residency import Plan, Residency, plan
from pagein.policy.stubs import MARKER
from pagein.providers.prices import prices


@dataclass(frozen=True, slots=True)
class Scene:
    """What the pass looks at. ground: what the window bears out. at: the time of the call. previewed: outputs that enter as previews with it.

    reads: what reads by the client's own tools have shown. stored: where the witness finds versions, None where it is not asked. window: tokens that the model's window holds, None where unknown.
    opens: whether an epoch may begin at a message. paid: BIT that previews of this call cost beside what they spare.
    """

    session: str
    state: State
    ground: Evidence
    residency: Residency
    valve: Valve
    at: float | None
    previewed: tuple[PagedOut, ...] = ()
    stored: Stored | None = None
    window: int | None = None
    reads: ClientReads = START
    opens: Callable[[int], bool] = lambda _: True
    paid: float = 0.0


@dataclass(frozen=True, slots=True)
class Curated:
    """What is to be done. opened: the epoch, None to leave the window alone. failure: why not all was done that should have been.

    crowded: the window is nearly full still; the host should compact.
    """

    opened: EpochOpened | None
    failure: str | None
    account: Account
    crowded: bool = False


def window_of(valve: Valve, model: str | None) -> int | None:
    """Tokens that this model's window holds, by setting or by the table; None where neither says."""
    return valve.window if valve.window is not None or model is None else _listed_window(model)


@functools.lru_cache(maxsize=256)
def _listed_window(model: str) -> int | None:
    try:
        return prices(model).window
    except BadSetting:
        return None


def curated(scene: Scene, pager: Pager) -> Curated:
    """Decide, and have stored what leaves. Never raises for a store that fails: then the window stays as it is, and that is told."""
    if scene.residency.arguments is None:
        scene = replace(scene, state=replace(scene.state, standing=scene.state.standing.without_arguments()))
    state = scene.state
    account, moment = credited(state.account, scene.previewed, scene.residency, state.scale), moment_of(state, scene.at)
    account = replace(account, saved=account.saved - scene.paid)
    planned = _planned(scene, moment, account)
    leaving, objection = leaving_soundly(state, scene.ground, planned, scene.stored, scene.reads)
    if leaving and not scene.opens(min(one.resident.message for one in leaving)):
        return Curated(None, objection, planned.alone, _is_full(scene, moment, 0))
    try:
        paged = pager.page_out(scene.session, leaving, scene.residency.arguments)
    except StoreError as problem:
        failure = f"nothing was paged out: {type(problem).__name__}: {problem}"
        return Curated(None, failure, planned.alone, _is_full(scene, moment, 0))
    back, missing = _brought(scene, planned, moment, pager)
    try:
        thought = _thought(scene, pager, [one.message for one in paged] + [one.place.message for one in back])
    except StoreError as problem:
        failure = f"nothing was paged out: {type(problem).__name__}: {problem}"
        return Curated(None, failure, planned.alone, _is_full(scene, moment, 0))
    reason = forcing.ORDERED if state.hand.epoch_now else forcing.RESTORED
    planned = forcing.with_back(planned, scene.residency, moment, [one.place for one in back], reason)
    failure = "; ".join([*([objection] if objection else []), *missing])
    opened = _opened(state, planned, paged, tuple(one.restored for one in back), thought)
    gain = sum(one.resident.gain for one in leaving) - sum(one.place.tokens for one in back)
    account = planned.alone if opened is None else planned.account
    return Curated(opened, failure or None, account, _is_full(scene, moment, gain))


def _thought(scene: Scene, pager: Pager, places: Sequence[int]) -> Thought | None:
    """The thinking that leaves with an epoch that changes these messages, stored: what no request held before goes too. Raises StoreError."""
    if scene.residency.thinking != "leaves" or not places:
        return None
    tip = scene.state.draft.ready().tip
    found = thought_in(pieces_since(tip, min(*places, shared(scene.state.sent, tip))))
    return None if found is None else pager.keep_thinking(scene.session, scene.state.epoch + 1, *found)


def _opened(
    state: State, planned: Plan, paged: Sequence[PagedOut], back: Sequence[Restored], thought: Thought | None
) -> EpochOpened | None:
    places = [one.message for one in paged] + [one.message for one in back]
    if not places:
        return None
    reason = UNPROVEN if planned.epoch is None else planned.epoch.reason
    return EpochOpened(state.epoch + 1, min(places), tuple(paged), reason, tuple(back), thought)


# --- what leaves ---


def _planned(scene: Scene, moment: Moment, account: Account) -> Plan:
    """What the policy wants; else what the user ordered; and where the window is nearly full, what must go."""
    state, settings, hand = scene.state, scene.residency, scene.state.hand
    planned = plan(state.standing, settings, moment, account)
    if hand.off:
        return Plan(None, planned.alone, planned.alone)
    # what must stay is asked for where something is to leave: it takes a look at all reads that stand in the window
    if planned.epoch is not None or hand.epoch_now:
        last = state.draft.calls - max(settings.reads_wait, 1)
        rules = settings.files
        work = None if rules is None else Work(rules, state.draft.calls, state.standing.task)
        also = _kept(scene) | _warm(state) | scene.reads.held_by_young(last, work)
        planned = spared(planned, state, scene.ground, settings, moment, also)
        if planned.epoch is None and hand.epoch_now:
            planned = forcing.ordered(state.standing, settings, moment, account, also)
    gain = 0 if planned.epoch is None else sum(one.gain for one in planned.epoch.page_out)
    if not _is_full(scene, moment, gain):
        return planned
    most = forcing.excess(moment, scene.valve.low * (scene.window or 0), reported=state.floor is not None)
    newest = state.draft.calls
    return forcing.forced(state.standing, settings, moment, account, most=most, newest=newest, held=_kept(scene))


def _is_full(scene: Scene, moment: Moment, gain: int) -> bool:
    if scene.window is None:
        return False
    feared = forcing.feared(moment, gain, reported=scene.state.floor is not None)
    return forcing.is_full(scene.valve, scene.window, feared)


def _kept(scene: Scene) -> frozenset[str]:
    """Calls on whose results something rests that the user holds, by whichever way it was read."""
    return _held(scene.state, scene.ground) | scene.reads.held_with(scene.state.hand.staying)


def _held(state: State, ground: Evidence) -> frozenset[str]:
    """Calls on whose results something rests that the user holds. What is held itself is no resident."""
    staying = state.hand.staying
    if not staying:
        return staying
    paths = {path for call in staying if (path := ground.path_of.get(call)) is not None}
    placed = [one for one in ground.placed() if one.told.event.path in paths] if paths else []
    resting = {one.told.event.path for one in placed if one.call in staying and one.stands_for_more}
    return frozenset(one.call for one in placed if one.told.event.path in resting)


def _warm(state: State) -> frozenset[str]:
    """Calls whose results show what was recalled lately, or a part of it."""
    warm = state.warm
    if not warm.tool_calls and not warm.objects:
        return frozenset()
    calls = (state.hand.calls.get(one) for one in warm.objects)
    return frozenset(warm.tool_calls) | frozenset(call for call in calls if call is not None)


# --- what comes back ---


@dataclass(frozen=True, slots=True)
class _Coming:
    place: Back
    restored: Restored


def _brought(scene: Scene, planned: Plan, moment: Moment, pager: Pager) -> tuple[list[_Coming], list[str]]:
    """What comes back with this call, and why something that should does not."""
    hand, economics = scene.state.hand, scene.residency.economics
    if not hand.restoring or hand.off:
        return [], []
    is_free = economics is not None and is_cold(moment, economics)
    if not (planned.epoch or hand.epoch_now or is_free) or _is_full(scene, moment, 0):
        return [], []
    back: list[_Coming] = []
    problems: list[str] = []
    for place, index, paged, before in _places(scene.state, hand):
        if not scene.opens(place):
            continue
        try:
            text = recalled_for_window(pager, paged.object_id)
        except (NotRecallable, StoreError) as problem:
            problems.append(f"{paged.object_id} was not restored: {problem}")
            continue
        restored = Restored(paged.call_id, paged.object_id, text, paged.tokens, place, index, paged.part)
        back.append(_Coming(Back(place, before, paged.tokens), restored))
    return back, problems


def recalled_for_window(pager: Pager, object_id: str) -> str:
    """The text of an object, exactly, for its old place in the window. Raises NotRecallable, saying why, or StoreError."""
    text = pager.recall(object_id)
    if MARKER in text:
        raise NotRecallable(
            f"{object_id} is an answer that rests on text shown earlier, so it cannot stand in the window again; "
            "peek at it, or read the file anew"
        )
    return text


def _places(state: State, hand: Hand) -> Iterator[tuple[int, int, PagedOut, int]]:
    """Where the results stand that are to come back: message, block, what stands for them, tokens in front of the message."""
    before = 0
    for place, piece in enumerate(pieces_since(state.draft.tip, 0)):
        for index, block in enumerate(piece.message.blocks):
            paged: PagedOut | None = None
            if isinstance(block, ToolResult) and block.call_id in hand.restoring:
                paged = hand.stands_for(block)
            elif isinstance(block, ToolCall) and block.id in hand.restoring:
                paged = hand.stands_for_arguments(block)
            if paged is not None:
                yield place, index, paged, before
        before += piece.weight
