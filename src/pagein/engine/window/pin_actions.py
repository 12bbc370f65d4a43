"""Pin actions on a session: pin, drop, restore or veto a result, order an epoch, pin a text, switch off.

Rules of this file
------------------
1. An order is an entry of the session's current branch (law 6). It takes effect with the next call; sent requests do
   not change.
2. Another process may add it; the running session reads it at its next call (see `SessionLog.catch_up`).
3. An object is named by its id, or by the id of the tool call of its result: before an eviction only the call has a
   name.
4. A target that is not on the current branch is searched for on the session's other branches (a sub-agent's, say),
   newest first; the order is added there, and the session stays at its own entry.
5. An order without an object, such as an epoch or a text, is added to each conversation of the session at its last
   entry, so that sub-agents get the rules too.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pagein.engine.log.holdings import description_in
from pagein.engine.log.pageout import SAID, Pager
from pagein.engine.log.pin_state import Hand
from pagein.engine.log.request_draft import WindowPiece, pieces_since
from pagein.engine.log.server_residents import results_of, weighed_results
from pagein.engine.log.session_log import SessionLog
from pagein.engine.log.state import State
from pagein.engine.window.restored_texts import recall_for_window
from pagein.errors import BadInput, BadName, StoreError
from pagein.model.entries import EntryId, EpochEntry, MessageEntry, TurnsLeft
from pagein.model.journal_notes import PinNote
from pagein.model.messages import ToolCall, ToolResult
from pagein.model.objects import ObjectId
from pagein.model.pins import Act, Wish
from pagein.policy.clients.profile import accesses
from pagein.policy.eviction.residency import is_removable
from pagein.policy.privacy.exclusions import may_show_excluded
from pagein.policy.stubs.result_stubs import description

MOST_PINNED: Final = 20_000
"""Longest pinned text in characters: every window shows the whole text."""
Form: TypeAlias = Literal["whole", "preview", "stub"]
_ID: Final = "pg-"
_MOST_FILES: Final = 5


@dataclass(frozen=True, slots=True)
class InWindow:
    """A tool result in the window.

    call_id: id of its call.
    tool: name of the tool.
    tokens: estimated tokens of the whole result.
    form: how the window shows it.
    object_id: id of the stored result; "" if it was never stored.
    marks: its state: `pinned`, `vetoed`, `dropping`, `restoring`, `warm`.
    leaves: whether it may ever be evicted.
    description: a short description.
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
    """Pin actions on a session. Thread-safe.

    Actions that return `str | None` give None once stored, or the reason why not; they hold in memory at once.

    log_switch: logs that pagein was switched off or on for the session.
    """

    def __init__(self, log: SessionLog, pager: Pager, log_switch: Callable[[bool], None]) -> None:
        self._log = log
        self._pager = pager
        self._log_switch = log_switch

    @property
    def wishes(self) -> Hand:
        """The pins at the session's current entry."""
        return self._state().hand

    def pin(self, target: str) -> str | None:
        """Keep a result in the window; restore an evicted result with the next epoch.

        target: id of an object or of a tool call.

        Raises BadInput if the window has no such result, and NotRecallable if the store has lost it.
        """
        return self._about(target, "pin")

    def unpin(self, target: str) -> str | None:
        """Remove the pin and the veto from a result."""
        return self._about(target, "unpin")

    def veto(self, target: str) -> str | None:
        """Never evict the result again. An evicted result stays evicted until a `restore`."""
        return self._about(target, "veto")

    def drop(self, target: str) -> str | None:
        """Evict the result with the next epoch, whatever its age, and remove its pins.

        Raises BadInput for a result that is never evicted.
        """
        return self._about(target, "drop")

    def restore(self, target: str) -> str | None:
        """Replace a stub or preview by the full text with the next epoch. Raises as `pin` does, and BadInput if nothing
        is evicted.
        """
        return self._about(target, "restore")

    def epoch(self) -> str | None:
        """Open an epoch with the next call, if there is anything to evict or restore."""
        return self._wish(Wish("epoch"))

    def cancel_epoch(self) -> str | None:
        """Take back an ordered epoch that no call has opened yet."""
        return self._wish(Wish("cancel"))

    def say(self, text: str) -> str | None:
        """Show a text in every window from the next call on, verbatim. `unsay` ends it, by the text or by its name
        (`model.pins.name_of`).

        Raises BadInput for a text that is empty, too long, or holds a key.
        """
        if not text.strip():
            raise BadInput("the text to pin is empty")
        if len(text) > MOST_PINNED:
            raise BadInput(
                f"the text to pin has {len(text):,} characters; every request would carry it, so {MOST_PINNED:,} is the most"
            )
        if self._log.privacy.is_private(text):
            raise BadInput("the text to pin holds a key, which must not be stored; pin it without the key")
        return self._wish(Wish("say", text=text))

    def unsay(self, name: str) -> str | None:
        """Stop showing a pinned text, given the name or the text.

        A text that was sent stays until the window begins anew.
        """
        places = (*self._elsewhere(), self._log.leaf)
        texts = {key: text for place in places for key, text in self._log.journal.state_at(place).hand.texts}
        text = texts.get(name, name)
        if text not in texts.values():
            known = ", ".join(texts) or "none"
            raise BadInput(f"no text called {name[:60]!r} is pinned in session {self._log.name!r}; pinned: {known}")
        return self._wish(Wish("unsay", text=text))

    def off(self) -> str | None:
        """Switch off decisions from the next call on: no evictions, no previews. The window stays as it is."""
        self._log_switch(False)  # noqa: FBT003 -- off
        return self._wish(Wish("off"))

    def on(self) -> str | None:
        """Switch decisions on again."""
        self._log_switch(True)  # noqa: FBT003 -- on
        return self._wish(Wish("on"))

    def window(self) -> tuple[InWindow, ...]:
        """Return the tool results in the window of the next request, oldest first."""
        return self._window(self._state())

    def calls_showing(self, path: str) -> tuple[str, ...]:
        """Return the calls in the window whose results show a file, oldest first: of the current branch, else of another.

        path: the file as a call names it, or the end of that path.

        Raises BadInput if several files have this name.
        """
        for place in self._places():
            state = self._log.journal.state_at(place)
            pieces = pieces_since(state.draft.ready.tip, 0)
            asked = [block for piece in pieces for block in piece.message.blocks if isinstance(block, ToolCall)]
            found = {call.id: name for call in asked if (name := _read_file(call, path)) is not None}
            shown = [one.call_id for one in self._window(state) if one.call_id in found]
            names = sorted({found[call] for call in shown})
            if len(names) > 1:
                raise BadInput(
                    f"{path} names {len(names)} files: {', '.join(names[:_MOST_FILES])}; write more of the path"
                )
            if shown:
                return tuple(shown)
        return ()

    def preview(self, object_id: str) -> str:
        """Return the preview of an object in the window; "" without one."""
        paged = self._state().hand.previews(object_id)
        return "" if paged is None else paged.stub

    def _window(self, state: State) -> tuple[InWindow, ...]:
        calls: dict[str, ToolCall] = {}
        found: list[InWindow] = []
        for piece in pieces_since(state.draft.ready.tip, 0):
            counts = iter(piece.tokens)
            for block in piece.message.blocks:
                if isinstance(block, ToolCall):
                    calls[block.id] = block
                elif isinstance(block, ToolResult):
                    found.append(self._describe(state, block, calls.get(block.call_id), next(counts, 0)))
            found += self._describe_servers(state, piece)
        return tuple(found)

    def _describe_servers(self, state: State, piece: WindowPiece) -> Iterator[InWindow]:
        """Yield the results of the provider's own tools in a message, if they may leave or have left."""
        whole = {one.call_id for one, _ in weighed_results(piece)}
        for one, tokens in zip(results_of(piece), piece.tokens, strict=False):
            stub = state.hand.away.get(one.call_id) if one.call_id not in whole else None
            if stub is not None or self._log.rules.residency.rules.lets_server_results_go:
                text = one.text if stub is None else stub.stub
                yield self._describe(state, ToolResult(one.call_id, text, one.tool), None, tokens)

    def _describe(self, state: State, result: ToolResult, call: ToolCall | None, tokens: int) -> InWindow:
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
        leaves = call is not None and is_removable(result, tokens, self._log.rules.residency)
        leaves = leaves and call is not None and not may_show_excluded(call, self._log.rules.excluded)
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

    # --- orders ---

    def _about(self, target: str, act: Act) -> str | None:
        try:
            with self._log.turn():
                self._lay(target.strip(), act)
        except StoreError as problem:
            self._lay(target.strip(), act)  # holds in memory at once; the next `keep` stores it
            return f"{type(problem).__name__}: {problem}"
        return None

    def _lay(self, target: str, act: Act) -> None:
        here = self._log.leaf
        place, call = self._find(target)
        self._check(target, act, call, place)
        if place == here:
            self._note(Wish(act, call))
            return
        self._log.move(place)
        self._note(Wish(act, call))
        self._log.move(here)
        self._log.note(PinNote())  # other readers of the journal continue here too

    def _wish(self, wish: Wish) -> str | None:
        try:
            with self._log.turn():
                self._note_everywhere(wish)
        except StoreError as problem:
            self._note_everywhere(wish)
            return f"{type(problem).__name__}: {problem}"
        return None

    def _note_everywhere(self, wish: Wish) -> None:
        here = self._log.leaf
        for place in (*self._elsewhere(), here):
            if place != self._log.leaf:
                self._log.move(place)
            self._note(wish)

    def _elsewhere(self) -> list[EntryId]:
        """Return the last entries of the session's other conversations, with other first messages."""
        first: dict[EntryId | None, EntryId | None] = {None: None}
        last: dict[EntryId, EntryId] = {}
        for entry in self._log.journal:
            begun = first[entry.parent]
            begun = first[entry.id] = entry.id if begun is None and isinstance(entry.body, MessageEntry) else begun
            if begun is not None:
                last[begun] = entry.id
        last.pop(first[self._log.leaf] or "", None)
        return list(last.values())

    def _note(self, wish: Wish) -> None:
        self._log.note(PinNote(wish.at(self._log.leaf)))

    def _check(self, target: str, act: Act, call: str, place: EntryId | None) -> None:
        """Raise BadInput or NotRecallable if the order could never be carried out."""
        if act == "unpin":
            return
        state = self._log.journal.state_at(place)
        one = next((one for one in self._window(state) if one.call_id == call), None)
        if one is None and call.startswith(SAID):
            raise BadInput(f"{target} holds what was said and left a full window. {_instead(target)}")
        if one is None and (turns := self._turns_with(call, place)) is not None:
            there = target if target.startswith(_ID) else turns.object_id
            raise BadInput(f"{target} left a full window together with its turn. {_instead(there)}")
        if one is None:
            where = f"the window of session {self._log.name!r}"
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
        """Return the evicted turns with this call on a branch; None if absent."""
        epochs = (one.body for one in reversed(self._log.journal.branch(place)) if isinstance(one.body, EpochEntry))
        return next((turns for epoch in epochs for turns in epoch.turns if call in turns.calls), None)

    def _find(self, target: str) -> tuple[EntryId | None, str]:
        """Return the branch with this name, by its last entry, and the named call."""
        name = _object_id_of(target)
        for place in self._places():
            state = self._log.journal.state_at(place)
            call = target if name is None else state.hand.calls.get(name)
            if call is not None and (name is not None or any(one.call_id == call for one in self._window(state))):
                return place, call
        for place in self._places() if name is None else ():
            if self._turns_with(target, place) is not None:
                return place, target
        if name is not None:
            self._pager.recall(name)  # raises with the reason for an unknown object
            raise BadInput(f"{name} is stored, and never stood in the window of session {self._log.name!r}")
        raise BadInput(
            f"session {self._log.name!r} has no tool result {target[:80]!r} in its window; "
            f"`pagein window {self._log.name}` lists what there is"
        )

    def _places(self) -> Iterator[EntryId | None]:
        """Yield the session's current entry, then the ends of further branches, newest first."""
        yield self._log.leaf
        entries = list(self._log.journal)
        parents = {one.parent for one in entries}
        yield from (one.id for one in reversed(entries) if one.id not in parents and one.id != self._log.leaf)

    def _state(self) -> State:
        return self._log.journal.state_at(self._log.leaf)


def _read_file(call: ToolCall, path: str) -> str | None:
    """Return the file of this name that a call reads, as the call names it; None if it reads no such file."""
    wanted = path.removeprefix("./")
    read = (one.path for one in accesses(call.name, call.arguments) if one.op == "read")
    return next(
        (name for name in read if wanted in (name, name.removeprefix("./")) or f"/{name}".endswith(f"/{wanted}")), None
    )


def _instead(object_id: str) -> str:
    """Return the advice for content that was evicted for good."""
    return (
        f"It does not come back to its place, but nothing of it is lost: `pagein peek {object_id}` shows it, `pagein search` finds it, and "
        "the model has the same by its tools (peek at it, or search)"
    )


def _object_id_of(target: str) -> str | None:
    """Return the normalised object id. Raises BadInput for a malformed object id.

    None for the id of a call.
    """
    if not target.startswith(_ID):
        return None
    try:
        return str(ObjectId.parse(target))
    except BadName as problem:
        raise BadInput(str(problem)) from problem
