"""The page user's orders about a window, and a result's stored text, with the reason to leave or stay."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypedDict

from pagein.engine.engine import Engine
from pagein.engine.session import Session
from pagein.engine.window.pin_actions import InWindow
from pagein.errors import BadInput, NotRecallable, StoreError
from pagein.model.entries import EpochEntry, PagedOut, PreviewEntry, RequestSent
from pagein.policy.layouts.pooled_branch import PooledBranch
from pagein.providers.prices.price_lookup import newest_prices
from pagein.tools import pin_commands

ACTS: Final = (*pin_commands.ABOUT_OBJECTS, "epoch", "cancel", "off", "on")
"""What the page can order. The first five need an object."""
_OFF: Final = {
    "off": "pagein decides nothing in this session from its next call on; what left stays out",
    "on": "pagein decides in this session again, from its next call on",
}


class UndoStep(TypedDict):
    """An order that takes a part of another one back."""

    act: str
    target: str


class OrderView(TypedDict):
    """The outcome of an order.

    target: a result, by the id of its call or of its object; or a file, for every result that shows the file.
    text: the state after the order, in words. undo: the orders that take the order back, in sequence; empty if that is
    impossible.
    """

    session: str
    act: str
    target: str
    text: str
    undo: list[UndoStep]


class ResultView(TypedDict):
    """The facts of a tool result.

    stored: its whole text as stored; None if it was never stored, with the reason in `missing`.
    why: why it left or stays, in words.
    marks: as in `InWindow`.
    """

    call: str
    object: str
    tool: str
    form: str
    tokens: int
    marks: list[str]
    why: str
    stored: str | None
    missing: str


class WindowHand(Protocol):
    """Takes orders about windows. Called from any thread."""

    def order(self, session: str, act: str, target: str, *, now: bool) -> OrderView:
        """Carry out an order. Raises PageinError with the reason if it is refused."""
        ...

    def result(self, session: str, call: str) -> ResultView:
        """Return what is known of a tool result. Raises PageinError."""
        ...

    def is_off(self, session: str) -> bool:
        """Return whether pagein is switched off for this session. Raises PageinError."""
        ...


class EngineHand:
    """Takes orders on an engine's sessions."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def order(self, session: str, act: str, target: str, *, now: bool) -> OrderView:
        """Carry out an order. Raises BadInput for an unknown order, session or object, and StoreError."""
        found = self._session(session)
        if act not in ACTS:
            raise BadInput(f"{act[:40]!r} is no order; those there are: {', '.join(ACTS)}")
        if act in _OFF:
            failure, text = found.hand.off() if act == "off" else found.hand.on(), _OFF[act]
            undo = [UndoStep(act="on" if act == "off" else "off", target="")]
        elif act in ("epoch", "cancel"):
            done = pin_commands.epoch(found) if act == "epoch" else pin_commands.cancel_epoch(found)
            failure, text = done["failure"], done["text"]
            undo = [UndoStep(act="cancel", target="")] if act == "epoch" else []
        else:
            meant = pin_commands.results_meant(found, target) or (target,)
            before = [one for one in found.hand.window() if one.call_id in meant or one.object_id in meant]
            done = pin_commands.touch(found, act, target, now=now)
            failure, text, undo = done["failure"], done["text"], [step for one in before for step in _undo(one)]
        if failure is not None:
            raise StoreError(f"the store could not be written; the order holds until this gateway ends: {failure}")
        return OrderView(session=session, act=act, target=target, text=text, undo=undo)

    def is_off(self, session: str) -> bool:
        """Return whether pagein is switched off for this session."""
        return self._session(session).hand.wishes.off

    def result(self, session: str, call: str) -> ResultView:
        """Return what is known of a tool result. Raises BadInput for a result that is not in the window."""
        found = self._session(session)
        rows = found.hand.window()
        row = next((one for one in rows if call in (one.call_id, one.object_id)), None)
        if row is None:
            raise BadInput(f"{call[:80]} is not in the window of this session any more")
        stored, missing = None, "It stands whole in the window and was never stored; this is its text."
        pooled, form, why = found.traffic.pooled, str(row.form), _why(found, row, rows)
        if pooled is not None:
            form = "reference" if pooled.is_reference(row.call_id) else form
            why = _why_pooled(pooled, row.call_id)
            stored = found.pools.of_window.text(row.call_id) if form == "reference" else None
            missing = missing if stored is None else ""
        if row.object_id:
            try:
                stored, missing = self._engine.recall(row.object_id), ""
            except NotRecallable as problem:
                missing = str(problem)
        return ResultView(
            call=row.call_id,
            object=row.object_id,
            tool=row.tool,
            form=form,
            tokens=row.tokens,
            marks=list(row.marks),
            why=why,
            stored=stored,
            missing=missing,
        )

    def _session(self, name: str) -> Session:
        return pin_commands.existing_session(self._engine, name, lambda: ())


def _undo(before: InWindow) -> list[UndoStep]:
    """Return the orders that restore a result's earlier marks."""
    orders = (("pinned", "pin"), ("vetoed", "veto"), ("dropping", "drop"), ("restoring", "restore"))
    acts = ("unpin", *(act for mark, act in orders if mark in before.marks))
    return [UndoStep(act=act, target=before.call_id) for act in acts]


def _why_pooled(pooled: PooledBranch, call: str) -> str:
    if not pooled.is_reference(call):
        return "It stands whole in its place: the pooled layout leaves short results, images and what must not be stored there."
    if pooled.shows_result(call):
        return "A reference stands in its place. Its content stands behind it, below ACTIVE_CONTENT."
    return "A reference stands in its place. Its content has left the window; the model can activate it."


@dataclass(frozen=True, slots=True)
class _Leave:
    """How a result left. number: of the epoch; 0 for a preview. requests: sent since then, this one included."""

    paged: PagedOut
    number: int
    reason: str
    requests: int


def _why(session: Session, row: InWindow, rows: Sequence[InWindow]) -> str:
    orders = {
        "pinned": "You pinned it, so it stays.",
        "vetoed": "You vetoed its eviction.",
        "dropping": "You dropped it: it leaves with the next epoch.",
        "restoring": "You restored it: its text comes back with the next epoch.",
        "warm": "It was recalled a moment ago, so it stays for three calls.",
    }
    said = [words for mark, words in orders.items() if mark in row.marks]
    if row.form == "whole":
        behind = len(rows) - 1 - next(place for place, one in enumerate(rows) if one is row)
        if row.leaves:
            said.append(
                f"It may leave: it has {row.tokens:,} tokens, and {behind} results came after it. It leaves with an epoch, as soon as "
                "what its absence spares on the coming calls is more than the price of writing everything behind it to the cache again."
            )
        else:
            said.append(
                f"No rule lets it leave: it is small ({row.tokens:,} tokens), failed, an image, or must not be stored."
            )
        return " ".join(said)
    left = _leave(session, row.call_id)
    if left is None:
        return " ".join([*said, "It left before what is recorded here."])
    how = (
        "entered as a preview, before any request showed it whole"
        if not left.number
        else f"left with epoch {left.number}"
    )
    said.append(f"It {how}{f' ({left.reason})' if left.reason else ''}.")
    if left.paged.why:
        said.append(f"An edit will hardly quote it: {left.paged.why}.")
    short = session.tokens_of(left.paged.stub)
    spared = max(0, row.tokens - short)
    paid = newest_prices(session.model or "")
    worth = f", {spared * left.requests * paid.read:,.0f} BIT at the price of cache reads" if paid is not None else ""
    said.append(
        f"Its {row.tokens:,} tokens are {short:,} now, in {left.requests} request{'s' * (left.requests != 1)} so far{worth}. "
        "What the rewrite cost stands with its epoch."
    )
    return " ".join(said)


def _leave(session: Session, call: str) -> _Leave | None:
    """Return how a result left for the last time on the session's branch; None if no entry tells."""
    here, requests = session.leaf, 0
    while here is not None:
        entry = session.journal.entry(here)
        match entry.body:
            case RequestSent():
                requests += 1
            case EpochEntry() | PreviewEntry() as body:
                paged = next((one for one in body.paged if one.call_id == call and one.part == "result"), None)
                if paged is not None:
                    number, reason = (body.number, body.reason) if isinstance(body, EpochEntry) else (0, "")
                    return _Leave(paged, number, reason, requests)
            case _:
                pass
        here = entry.parent
    return None
