"""The user's hand on a session: pin, drop, restore and veto what is in its window, order an epoch, pin a text, switch off.

Rules of this file
------------------
1. A wish is an entry of the branch where the session stands (law 6). It takes effect with the next call; nothing that was sent changes before.
2. It may be laid down by another process; the running session takes it over at its next call (see `JournalPersistence.adopt`).
3. An object is named by its id, or by the id of the tool call whose result it is: what was never paged out has no other name.
4. What is not on the branch where the session was left last is looked for on its other branches (a sub-agent's, say), the newest first; the
   wish is laid down there, and the session stands where it stood.
5. What means no object, an epoch or a text, is for each conversation of the session, where that was left last: sub-agents are told the rules too.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

from pagein.engine.log.holdings import description_in
from pagein.engine.log.journal import Journal
from pagein.engine.log.pageout import SAID, Pager
from pagein.engine.log.pin_state import Hand
from pagein.engine.log.rendering import pieces_since
from pagein.engine.log.state import Rules, State
from pagein.engine.window.eviction import recall_for_window
from pagein.errors import BadInput, BadName, StoreError
from pagein.model.entries import EntryId, EpochEntry, MessageEntry, TurnsLeft
from pagein.model.messages import ToolCall, ToolResult
from pagein.model.objects import ObjectId
from pagein.model.pins import HAND, Act, Wish, name_of, wish_note
from pagein.policy.eviction.residency import removable
from pagein.policy.privacy.exclusions import may_show_excluded
from pagein.policy.stubs.result_stubs import description

MOST_PINNED: Final = 20_000
"""Characters that one pinned text may have: every window shows all of it."""
Form: TypeAlias = Literal["whole", "preview", "stub"]
_ID: Final = "pg-"
_BACK: Final = "{}"


class PinSession(Protocol):
    """What a hand needs of a session."""

    @property
    def name(self) -> str:
        """The session's name."""
        ...

    @property
    def journal(self) -> Journal[State]:
        """Its entries and the states behind them."""
        ...

    @property
    def leaf(self) -> EntryId | None:
        """Where it stands."""
        ...

    def is_private(self, text: str) -> bool:
        """Whether a text holds what must not be stored."""
        ...

    def note(self, kind: str, data: str) -> EntryId:
        """Journal a fact."""
        ...

    def move(self, leaf: EntryId | None) -> None:
        """Stand elsewhere."""
        ...

    def turn(self) -> AbstractContextManager[None]:
        """A time in which nobody else adds to it. Raises StoreError."""
        ...

    def note_switch(self, *, on: bool) -> None:
        """Log that pagein was switched off for it, or on again."""
        ...


@dataclass(frozen=True, slots=True)
class InWindow:
    """A tool result in the window. form: as what it stands there. object_id: of what was paged out, "" where nothing was.

    tokens: of the whole, estimated. marks: what is said of it: `pinned`, `vetoed`, `dropping`, `restoring`, `warm`. leaves: whether it may leave at all.
    """

    call_id: str
    tool: str
    tokens: int
    form: Form
    object_id: str
    marks: tuple[str, ...]
    leaves: bool
    description: str


class Touch:
    """The hand on one session. Any number of threads may use it."""

    def __init__(self, session: PinSession, pager: Pager, rules: Rules) -> None:
        self._session = session
        self._pager = pager
        self._rules = rules

    @property
    def wishes(self) -> Hand:
        """What is wanted where the session stands."""
        return self._state().hand

    def pin(self, target: str) -> str | None:
        """The result stays in the window; if it is out, it comes back with the next epoch.

        target: an object's id or a tool call's. Gives why this is not kept yet, None where it is (so do all of these). Raises BadInput where
        nothing of this name is in the window, NotRecallable where it is out and gone.
        """
        return self._about(target, "pin")

    def unpin(self, target: str) -> str | None:
        """Neither a pin nor a veto holds any more."""
        return self._about(target, "unpin")

    def veto(self, target: str) -> str | None:
        """The result never leaves again. What is out stays out until somebody restores it."""
        return self._about(target, "veto")

    def drop(self, target: str) -> str | None:
        """The result leaves with the next epoch, whatever its age; pins on it are off. Raises BadInput for what never leaves."""
        return self._about(target, "drop")

    def restore(self, target: str) -> str | None:
        """The result's own text takes the place of its stub or preview with the next epoch. Raises as `pin` does, and where it is not out."""
        return self._about(target, "restore")

    def epoch(self) -> str | None:
        """The next call opens an epoch, if anything may go or is to come back."""
        return self._wish(Wish("epoch"))

    def say(self, text: str) -> str:
        """Have a text stand in every window from the next call on, verbatim. Gives the name by which it is taken back.

        Raises BadInput for an empty text and for one that is too long.
        """
        return self.say_and_tell(text)[0]

    def say_and_tell(self, text: str) -> tuple[str, str | None]:
        """As `say`; gives the name, and why the wish could not be kept, None where it was. Raises BadInput as it does."""
        if not text.strip():
            raise BadInput("the text to pin is empty")
        if len(text) > MOST_PINNED:
            raise BadInput(
                f"the text to pin has {len(text):,} characters; every request would carry it, so {MOST_PINNED:,} is the most"
            )
        if self._session.is_private(text):
            raise BadInput("the text to pin holds a key, which must not be stored; pin it without the key")
        failure = self._wish(Wish("say", text=text))
        return name_of(text), failure

    def unsay(self, name: str) -> str | None:
        """A pinned text, by its name or itself, is not shown anew any more. Where it was sent it stays until the window begins anew."""
        places = (*self._elsewhere(), self._session.leaf)
        texts = {key: text for place in places for key, text in self._session.journal.state_at(place).hand.texts}
        text = texts.get(name, name)
        if text not in texts.values():
            known = ", ".join(texts) or "none"
            raise BadInput(f"no text called {name[:60]!r} is pinned in session {self._session.name!r}; pinned: {known}")
        return self._wish(Wish("unsay", text=text))

    def off(self) -> str | None:
        """From the next call on we decide nothing: nothing leaves, nothing enters as a preview. What stands in the window stays as it is."""
        self._session.note_switch(on=False)
        return self._wish(Wish("off"))

    def on(self) -> str | None:
        """We decide again."""
        self._session.note_switch(on=True)
        return self._wish(Wish("on"))

    def window(self) -> tuple[InWindow, ...]:
        """The tool results in the window as it would leave now, oldest first."""
        return self._window(self._state())

    def preview(self, object_id: str) -> str:
        """The text that stands in the window for this object and shows its beginning and its end; "" where none does."""
        paged = self._state().hand.previews(object_id)
        return "" if paged is None else paged.stub

    def _window(self, state: State) -> tuple[InWindow, ...]:
        calls: dict[str, ToolCall] = {}
        found: list[InWindow] = []
        for piece in pieces_since(state.draft.ready().tip, 0):
            counts = iter(piece.tokens)
            for block in piece.message.blocks:
                if isinstance(block, ToolCall):
                    calls[block.id] = block
                elif isinstance(block, ToolResult):
                    found.append(self._shown(state, block, calls.get(block.call_id), next(counts, 0)))
        return tuple(found)

    def _shown(self, state: State, result: ToolResult, call: ToolCall | None, tokens: int) -> InWindow:
        hand, name = state.hand, result.call_id
        paged = hand.stands_for(result)
        form: Form = "whole" if paged is None else "preview" if paged.short else "stub"
        said = {
            "pinned": name in hand.pinned,
            "vetoed": name in hand.vetoed,
            "dropping": name in hand.dropping,
            "restoring": name in hand.restoring,
            "warm": state.warm.is_call_warm(name) or (paged is not None and state.warm.is_warm(paged.object_id)),
        }
        leaves = call is not None and removable(result, tokens, self._rules.residency)
        leaves = leaves and call is not None and not may_show_excluded(call, self._rules.excluded)
        return InWindow(
            call_id=name,
            tool=result.name or (call.name if call is not None else ""),
            tokens=tokens if paged is None else paged.tokens,
            form=form,
            object_id="" if paged is None else paged.object_id,
            marks=tuple(mark for mark, holds in said.items() if holds),
            leaves=leaves,
            description=description(result.text) if paged is None else description_in(paged),
        )

    # --- one wish ---

    def _about(self, target: str, act: Act) -> str | None:
        try:
            with self._session.turn():
                self._lay(target.strip(), act)
        except StoreError as problem:
            self._lay(target.strip(), act)  # it holds here at once, and is kept with what is kept next
            return f"{type(problem).__name__}: {problem}"
        return None

    def _lay(self, target: str, act: Act) -> None:
        here = self._session.leaf
        place, call = self._found(target)
        self._check(target, act, call, place)
        if place == here:
            self._note(Wish(act, call))
            return
        self._session.move(place)
        self._note(Wish(act, call))
        self._session.move(here)
        self._session.note(HAND, _BACK)  # who reads the journal goes on here, too

    def _wish(self, wish: Wish) -> str | None:
        try:
            with self._session.turn():
                self._note_everywhere(wish)
        except StoreError as problem:
            self._note_everywhere(wish)
            return f"{type(problem).__name__}: {problem}"
        return None

    def _note_everywhere(self, wish: Wish) -> None:
        here = self._session.leaf
        for place in (*self._elsewhere(), here):
            if place != self._session.leaf:
                self._session.move(place)
            self._note(wish)

    def _elsewhere(self) -> list[EntryId]:
        """Where the other conversations of the session were left: those that begin with another message than the one it stands in."""
        first: dict[EntryId | None, EntryId | None] = {None: None}
        last: dict[EntryId, EntryId] = {}
        for entry in self._session.journal:
            begun = first[entry.parent]
            begun = first[entry.id] = entry.id if begun is None and isinstance(entry.body, MessageEntry) else begun
            if begun is not None:
                last[begun] = entry.id
        last.pop(first[self._session.leaf] or "", None)
        return list(last.values())

    def _note(self, wish: Wish) -> None:
        self._session.note(HAND, wish_note(wish.at(self._session.leaf)))

    def _check(self, target: str, act: Act, call: str, place: EntryId | None) -> None:
        """Raises BadInput or NotRecallable where the wish could never come true."""
        if act == "unpin":
            return
        state = self._session.journal.state_at(place)
        one = next((one for one in self._window(state) if one.call_id == call), None)
        if one is None and call.startswith(SAID):
            raise BadInput(f"{target} holds what was said and left a full window. {_instead(target)}")
        if one is None and (turns := self._turns_with(call, place)) is not None:
            there = target if target.startswith(_ID) else turns.object_id
            raise BadInput(f"{target} left a full window together with its turn. {_instead(there)}")
        if one is None:
            where = f"the window of session {self._session.name!r}"
            raise BadInput(f"{target} is not in {where} any more: it was compacted away")
        is_masked = state.hand.is_away(call)
        may_leave = one.leaves or any(resident.call_id == call for resident in state.standing.all())
        if act == "drop" and not may_leave and one.form != "preview":
            why = (
                "is out already"
                if one.form == "stub"
                else "never leaves: it is small, failed, an image, or must not be stored"
            )
            raise BadInput(f"{target} {why}")
        if act == "restore" and one.form == "whole" and not is_masked:
            raise BadInput(f"{target} is in the window as it is; there is nothing to restore")
        if act in ("pin", "restore") and one.form != "whole":
            recall_for_window(self._pager, one.object_id)

    def _turns_with(self, call: str, place: EntryId | None) -> TurnsLeft | None:
        """The turns with which this call left the window of a branch, None where it left with none."""
        epochs = (one.body for one in reversed(self._session.journal.branch(place)) if isinstance(one.body, EpochEntry))
        return next((turns for epoch in epochs for turns in epoch.turns if call in turns.calls), None)

    def _found(self, target: str) -> tuple[EntryId | None, str]:
        """The branch on which something has this name, by its last entry, and the call that is meant."""
        name = _object_id_of(target)
        for place in self._places():
            state = self._session.journal.state_at(place)
            call = target if name is None else state.hand.calls.get(name)
            if call is not None and (name is not None or any(one.call_id == call for one in self._window(state))):
                return place, call
        for place in self._places() if name is None else ():
            if self._turns_with(target, place) is not None:
                return place, target
        if name is not None:
            self._pager.recall(name)  # says why, where there is none
            raise BadInput(f"{name} is stored, and never stood in the window of session {self._session.name!r}")
        raise BadInput(
            f"session {self._session.name!r} has no tool result {target[:80]!r} in its window; "
            f"`pagein window {self._session.name}` lists what there is"
        )

    def _places(self) -> Iterator[EntryId | None]:
        """Where the session stands, then the ends of its other branches, newest first."""
        yield self._session.leaf
        entries = list(self._session.journal)
        parents = {one.parent for one in entries}
        yield from (one.id for one in reversed(entries) if one.id not in parents and one.id != self._session.leaf)

    def _state(self) -> State:
        return self._session.journal.state_at(self._session.leaf)


def _instead(object_id: str) -> str:
    """What to do about something that left for good."""
    return (
        f"It does not come back to its place, but nothing of it is lost: `pagein peek {object_id}` shows it, `pagein search` finds it, and "
        "the model has the same by its tools (peek at it, or search)"
    )


def _object_id_of(target: str) -> str | None:
    """The object's id in its one form, None for what is the id of a call. Raises BadInput for an id that is none."""
    if not target.startswith(_ID):
        return None
    try:
        return str(ObjectId.parse(target))
    except BadName as problem:
        raise BadInput(str(problem)) from problem
