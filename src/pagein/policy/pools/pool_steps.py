"""Transitions of pools: the new state after a sighting, a call, a turn, a person's action or an epoch. Pure functions.

Rules of this file
------------------
1. Nothing leaves the index or the metadata pool. A name alone never takes the place of a known content.
2. An object is active in one version, its newest. A version that is out of date leaves at once.
3. Active stays what a recent call showed, what a hand activated lately, and what is pinned. Everything else leaves by
   itself, so the active content is bounded whatever the model does.
4. What a hand put away comes back when it is read, activated or pinned, and never by itself.
5. Each change is told once, after the last message.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from pagein.model.object_types import type_of
from pagein.model.shared_collections import SharedMap
from pagein.policy.pools.pool_values import (
    USUAL,
    ActiveBy,
    ActiveContent,
    ChangeKind,
    PoolChange,
    PooledObject,
    PoolEpoch,
    PoolRules,
    PoolState,
    WindowSlot,
)

_LOCKED: Final = frozenset(["chat", "session", "system_prompt"])
"""Types that no set of a session may hold: they are always shown, or never."""


def is_locked(one: PooledObject) -> bool:
    """Return whether an object can be neither activated nor deactivated."""
    return one.locked or one.type in _LOCKED or type_of(one.type).locked


# --- the index and the metadata pool ---


def index_object(state: PoolState, found: PooledObject) -> PoolState:
    """Add a sighting of an object to the index.

    An object that is active in another version shows the new one, or leaves if that has no text.
    """
    known = state.index.get(found.id)
    if known is not None:
        found = _over(known, found)
    if found == known:
        return state
    state = replace(state, index=state.index.put(found.id, found))
    shown = _active(state, found.id)
    if shown is not None and found.version != shown.version:
        return _refresh(state, shown, found)
    if found.place is not None:
        state = _told(state, "updated", found.id)
    return _show(state, found.id, "hand") if shown is None and found.id in state.pinned else state


def list_object(state: PoolState, object_id: str) -> PoolState:
    """Add an indexed object to the metadata pool. Listed and locked objects stay as they are."""
    one = state.index[object_id]
    if one.place is not None or is_locked(one):
        return state
    listed = replace(one, place=state.size)
    state = replace(
        state,
        index=state.index.put(object_id, listed),
        order=state.order.put(str(state.size), object_id),
        size=state.size + 1,
    )
    return _told(state, "listed", object_id)


def _over(known: PooledObject, found: PooledObject) -> PooledObject:
    """Return what is known of an object after a sighting: a name alone never hides a content."""
    if found.content == "unread" and known.content != "unread" and not known.deleted:
        found = replace(found, content=known.content, version=known.version, chars=known.chars)
    return replace(
        found,
        type=found.type or known.type,
        path=found.path or known.path,
        file_type=found.file_type or known.file_type,
        nickname=found.nickname or known.nickname,
        tool=found.tool or known.tool,
        args=found.args or known.args,
        status=found.status or known.status,
        shows=found.shows or known.shows,
        place=known.place,
        locked=found.locked or known.locked,
        view=found.view or (known.view if found.version == known.version else ()),
    )


def make_unread(state: PoolState, object_id: str) -> PoolState:
    """Note that the content of an object changed and is not known any more. If it is active, it leaves.

    A deleted file is there again.
    """
    one = state.index[object_id]
    if one.content != "text" and not one.deleted:
        return state
    gone = replace(one, content="unread", version=None, chars=0, deleted=False)
    state = _hide(replace(state, index=state.index.put(object_id, gone)), object_id)
    return _told(state, "updated", object_id) if one.place is not None else state


# --- the active content ---


def activate(state: PoolState, object_id: str) -> PoolState:
    """Show an object by hand. One that is only in the index enters the metadata pool.

    Nothing becomes active without a text, and nothing locked.
    """
    state = list_object(state, object_id)
    state = replace(state, put_away=state.put_away.without(object_id))
    return _show(state, object_id, "hand")


def deactivate(state: PoolState, object_id: str) -> PoolState:
    """Deactivate an object by hand. The pin goes, and no recent call activates the object again."""
    if object_id not in state.index or is_locked(state.index[object_id]):
        return state
    state = unpin(state, object_id)
    state = replace(state, put_away=state.put_away.put(object_id, True), window=_without(state.window, object_id))  # noqa: FBT003
    return _hide(state, object_id)


def pin(state: PoolState, object_id: str) -> PoolState:
    """Keep an object active until it is unpinned or deactivated. Its content is shown as soon as it is known."""
    if object_id in state.pinned or is_locked(state.index[object_id]):
        return state
    state = replace(list_object(state, object_id), put_away=state.put_away.without(object_id))
    state = _told(replace(state, pinned=(*state.pinned, object_id)), "pinned", object_id)
    return _show(state, object_id, "hand")


def unpin(state: PoolState, object_id: str) -> PoolState:
    """Let an object leave again. It is shown as if it had been activated now."""
    if object_id not in state.pinned:
        return state
    pinned = tuple(one for one in state.pinned if one != object_id)
    active = tuple(replace(one, turn=state.turn) if one.id == object_id else one for one in state.active)
    return _told(replace(state, pinned=pinned, active=active), "unpinned", object_id)


def note_call(
    state: PoolState,
    call_id: str,
    shown: Iterable[str],
    rules: PoolRules = USUAL,
    *,
    used: Iterable[str] = (),
) -> PoolState:
    """Activate the objects that a call showed, and deactivate those that are no longer recent.

    shown: objects whose content the call showed: its own output, or a file that it read.
    used: objects that it changed. They stay if they are active, and do not become so.
    """
    shown = tuple(dict.fromkeys(shown))
    for one in shown:
        state = replace(state, put_away=state.put_away.without(one))
    kept = tuple(one for one in dict.fromkeys(used) if one not in shown and state.is_active(one))
    slot = WindowSlot(state.turn, call_id, (*shown, *kept))
    if slot.ids:
        rest = state.window
        if rest and not rest[-1].call_id and set(rest[-1].ids) <= set(slot.ids):
            rest = rest[:-1]  # the read is known by its call now
        state = replace(state, window=(*rest, slot))
    for one in shown:
        state = _show(state, one, "window")
    return trim(state, rules)


def trim(state: PoolState, rules: PoolRules = USUAL) -> PoolState:
    """Deactivate objects that are neither recent nor pinned."""
    oldest = state.turn - rules.recent_turns
    window: list[WindowSlot] = []
    of_turn: dict[int, int] = {}
    for slot in reversed(state.window):
        of_turn[slot.turn] = of_turn.get(slot.turn, 0) + 1
        if slot.turn > oldest and of_turn[slot.turn] <= rules.recent_calls:
            window.append(slot)
    window.reverse()
    state = state if len(window) == len(state.window) else replace(state, window=tuple(window))
    by_hand = [one for one in state.active if one.by == "hand" and one.turn > oldest and one.id not in state.pinned]
    by_hand.sort(key=lambda one: (one.turn, one.since))
    newest = by_hand[-rules.by_hand :] if rules.by_hand else []
    keep = {*state.pinned, *(one.id for one in newest), *(one for slot in window for one in slot.ids)}
    for one in state.active:
        if one.id not in keep:
            state = _hide(state, one.id)
    return state


def begin_turn(state: PoolState, rules: PoolRules = USUAL) -> PoolState:
    """Begin a turn: words of the user came."""
    return trim(replace(state, turn=state.turn + 1), rules)


def count_message(state: PoolState, *, is_answer: bool) -> PoolState:
    """Count a message of the branch. is_answer: whether it is the model's."""
    return replace(state, messages=state.messages + 1, ahead=1 if is_answer else 0)


def note_request(state: PoolState) -> PoolState:
    """Record that a request showed the messages so far. Later news stand after later messages."""
    return state if state.ahead else replace(state, ahead=2)


def clear_window(state: PoolState, kept: int) -> PoolState:
    """Follow a compaction by the host: restart the message count at the kept messages, and begin an epoch.

    The sets stay: what they hold was never in the messages.
    """
    return begin_epoch(replace(state, messages=kept, ahead=0))


def begin_epoch(state: PoolState) -> PoolState:
    """Write the metadata block anew: it shows everything listed so far, and the news begins again."""
    epoch = PoolEpoch(state.epoch.number + 1, state.size, state.changes, state.messages, state.index)
    return replace(state, epoch=epoch, news=SharedMap())


# --- parts of steps ---


def _active(state: PoolState, object_id: str) -> ActiveContent | None:
    return next((one for one in state.active if one.id == object_id), None)


def _show(state: PoolState, object_id: str, by: ActiveBy) -> PoolState:
    one, shown = state.index[object_id], _active(state, object_id)
    if one.content != "text" or one.version is None or is_locked(one):
        return state
    state = list_object(state, object_id)
    if shown is not None:
        again = replace(shown, turn=state.turn, by="hand" if "hand" in (by, shown.by) else by)
        active = tuple(again if other is shown else other for other in state.active)
        return replace(state, active=active)
    state = _told(state, "activated", object_id)
    entered = ActiveContent(object_id, one.version, state.changes, state.turn, by)
    return replace(state, active=(*state.active, entered))


def _refresh(state: PoolState, shown: ActiveContent, found: PooledObject) -> PoolState:
    if found.content != "text" or found.version is None:
        return _told(_hide(state, found.id), "updated", found.id)
    state = _told(state, "refreshed", found.id)
    # its bytes change, so it stands behind what stays the same
    again = replace(shown, version=found.version, since=state.changes, turn=state.turn)
    rest = tuple(other for other in state.active if other.id != found.id)
    return replace(state, active=(*rest, again))


def _hide(state: PoolState, object_id: str) -> PoolState:
    if not state.is_active(object_id):
        return state
    state = replace(state, active=tuple(one for one in state.active if one.id != object_id))
    return _told(state, "deactivated", object_id)


def _without(window: tuple[WindowSlot, ...], object_id: str) -> tuple[WindowSlot, ...]:
    left = (replace(slot, ids=tuple(one for one in slot.ids if one != object_id)) for slot in window)
    return tuple(slot for slot in left if slot.ids)


def _told(state: PoolState, kind: ChangeKind, object_id: str) -> PoolState:
    behind = state.messages + state.ahead
    told = state.news.get(str(behind), ())
    news = state.news.put(str(behind), (*told, PoolChange(kind, object_id, behind)))
    return replace(state, changes=state.changes + 1, news=news)
