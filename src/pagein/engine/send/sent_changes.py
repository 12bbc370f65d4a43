"""Compute how the window of a request differs from the client's messages, for each sent request of the journal.

Rules of this file
------------------
1. Only the window decides: a result is replaced if its text in the window is not the client's. So the deciding entry
   does not matter, and a restored result is the client's again. The same holds for a user message that lost a long text
   or reports removed turns. Removed turns are not sent.
2. If thinking is bound to the prompt before it, an epoch removes all thinking after its frontier for good (T2, T8), and
   new recall tools remove all thinking. Later thinking is bound to the window without it. Thinking that answered the
   client's own prompt (while pagein was off, or failed) is removed where pagein's prompt differs. If thinking is not
   bound, an epoch removes thinking of finished turns if the settings say so (`thoughts`), also for good.
3. An epoch also removes the texts recalled in hidden exchanges after its frontier for good, once the model has made some calls
   since. The epoch rewrites that part of the prompt anyway, so this costs nothing.
4. The work grows with the difference from the window before. A request is computed from the request before on its branch;
   the most recently used ones are remembered.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, TypeAlias

from pagein.engine.intake.message_chain import Unit
from pagein.engine.intake.recall_tools import Settled
from pagein.engine.log.journal import Fold, Journal
from pagein.engine.log.request_draft import Cell, WindowPiece, news_of
from pagein.engine.log.state import State
from pagein.engine.send.message_changes import GONE, UNCHANGED, MessageChange, change_of, join_changes
from pagein.engine.send.splice import HiddenExchange, Splicer
from pagein.engine.window.old_thinking import count_finished
from pagein.model.entries import CompactionEntry, EntryId, EpochEntry, NoteEntry, RequestSent
from pagein.model.journal_notes import BrokenNote, ForgottenNote, PassthroughNote, PrefixDigests, ToolsNote
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.model.note_forms import kind_of
from pagein.policy.eviction.recall_warmth import WARM_CALLS
from pagein.providers.prices.model_abilities import abilities
from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named

_REMEMBERED: Final = 32
_BEGINNINGS: Final = frozenset(map(kind_of, (ToolsNote, ForgottenNote, BrokenNote)))
_PASSED: Final = kind_of(PassthroughNote)


@dataclass(frozen=True, slots=True)
class RenderedWindow:
    """A window and its differences from the client's messages.

    tip: the window.
    changes: differences, by the number of the message in the conversation.
    rewritten: True if an epoch was opened for it.
    since: first message that may differ from the window before on the branch.
    top: last message with changes; -1 without any.
    replaced: number of replaced results and arguments.
    said: messages of the conversation.
    """

    tip: Cell | None = None
    changes: Mapping[int, MessageChange] = field(default_factory=dict)
    rewritten: bool = False
    since: int = 0
    top: int = -1
    replaced: int = 0
    said: int = 0


@dataclass(frozen=True, slots=True)
class SentWindow:
    """A window as sent.

    tip: the window.
    said: messages of the session by then, with the conversation's last message as the last.
    rewritten: True if an epoch was opened for it.
    binds: True if thinking is bound to the prompt before it.
    takes: True if the epoch removed the thinking of finished turns.
    begun: True if recall tools entered with it.
    apart: first message after which the prompt differs from the client's for other reasons; -1 if from the start, None
        if never.
    passed: True if the request before it was retried unmodified.
    exchanges: messages that stand for hidden exchanges.
    """

    tip: Cell | None
    said: int
    rewritten: bool = False
    binds: bool = False
    takes: bool = False
    begun: bool = False
    apart: int | None = None
    passed: bool = False
    exchanges: Collection[int] = ()


NOTHING_RENDERED: Final = RenderedWindow()
OtherLayout: TypeAlias = Callable[[EntryId, SentWindow, Sequence[Unit], RenderedWindow], RenderedWindow | None]
"""Renders the request at an entry, as `render_window` does, if it is not of the inline layout; else returns None."""


@dataclass(frozen=True, slots=True)
class SentView:
    """A sent request, and the splicer for its changes.

    before: an earlier request on its branch.
    since: first message that may differ from `before`.
    """

    rendered: RenderedWindow
    splicer: Splicer
    before: RenderedWindow
    since: int


@dataclass(frozen=True, slots=True)
class WindowLayout:
    """The window of a request beside the client's messages.

    view: the window, as it differs from them.
    stood: hidden recall exchanges, by the number of the client's merged answer.
    """

    view: SentView
    stood: Mapping[int, HiddenExchange]


class SentHistory:
    """The sent requests of one journal. Not thread-safe."""

    def __init__(
        self,
        journal: Journal[State],
        heads: Fold[PrefixDigests],
        settled: Fold[Settled],
        other: OtherLayout = lambda *_: None,
        other_kind: str = "",
    ) -> None:
        self._journal = journal
        self._other, self._other_kind = other, other_kind  # the kind of note that a journal with such requests has
        self._heads = heads
        self._settled = settled
        self._known: OrderedDict[EntryId, tuple[RenderedWindow, Splicer]] = OrderedDict()
        journal.on_take_back(self._take_back)
        kept = None if journal.restored is None else journal.restored.states.get("shown")
        if journal.restored is not None and kept is not None:
            splicer = Splicer()
            splicer.restore((kept["rendered"], kept["stood"]), kept["made"])
            self._known[journal.restored.leaf] = kept["rendered"], splicer

    def snapshot_values(self, entry: EntryId) -> Mapping[str, Any] | None:
        """Return the remembered values of a request, for a later process.

        None if the request is not remembered.
        """
        rendered, splicer = self._known.get(entry, (NOTHING_RENDERED, Splicer()))
        if splicer.basis is None or splicer.basis[0] is not rendered:
            return None
        return {"rendered": rendered, "stood": dict(splicer.basis[1]), "made": splicer.snapshot_values()}

    def at(self, entry: EntryId, units: Sequence[Unit], api: Api, exchanges: Collection[int] = ()) -> "SentView":
        """Return the request that was sent at this entry.

        units: its conversation.
        exchanges: the messages that stand for hidden exchanges.
        """
        requests, nearest = self._behind_known(entry)
        before, splicer = self._known[nearest] if nearest is not None else (NOTHING_RENDERED, Splicer())
        known, since = before, len(units)
        base = self._journal.states[entry].draft.said - len(units)
        for one in requests:
            state = self._journal.states[one.name]
            binds = binds_thinking(self._heads[one.name], api)
            has_tools = binds and isinstance(tools := self._settled[one.name], tuple) and bool(tools)
            window = SentWindow(
                state.sent,
                state.draft.said,
                one.epoch is not None,
                binds,
                one.epoch is not None and one.epoch.thought is not None,
                one.begun,
                -1 if has_tools else min(exchanges, default=None),
                one.passed,
                exchanges,
            )
            said = units[: state.draft.said - base]
            other = self._other(one.name, window, said, before) if self._other_kind in self._journal.kinds else None
            before = other or render_window(window, said, before)
            since = min(since, before.since)
        self._known[entry] = before, splicer
        self._known.move_to_end(entry)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return SentView(before, splicer, known, since)

    def _take_back(self, gone: Sequence[EntryId]) -> None:
        for name in gone:
            self._known.pop(name, None)

    def _behind_known(self, entry: EntryId) -> tuple[list["_Request"], EntryId | None]:
        """Return the requests up to an entry that are not remembered, and the remembered request before."""
        found: list[_Request] = []
        here: EntryId | None = entry
        while here is not None and here not in self._known:
            one = self._journal.entries.get(here) or self._journal.entry(here)
            here = one.parent
            match one.body:
                case CompactionEntry():
                    here = None
                    break
                case RequestSent():
                    found.append(_Request(one.id))
                case EpochEntry() as epoch if found:
                    found[-1] = replace(found[-1], epoch=epoch)
                case NoteEntry(kind=kind) if found and kind in _BEGINNINGS:
                    if isinstance(one.body.note, ToolsNote | ForgottenNote | BrokenNote):
                        found[-1] = replace(found[-1], begun=True)  # earlier thinking is not bound to the prompt
                case NoteEntry(kind=kind) if found and kind == _PASSED:
                    if isinstance(one.body.note, PassthroughNote):
                        found[-1] = replace(found[-1], passed=True)
        found.reverse()
        return found, here


@dataclass(frozen=True, slots=True)
class _Request:
    """A request of a branch.

    epoch: the epoch opened for it; None if absent.
    begun: True if recall tools entered with it.
    passed: True if the request before it was retried unmodified.
    """

    name: EntryId
    epoch: EpochEntry | None = None
    begun: bool = False
    passed: bool = False


@lru_cache(maxsize=64)
def binds_thinking(head: PrefixDigests, api: Api) -> bool:
    """Return whether thinking must count as bound to the prompt before."""
    return format_named(api).validity.binds_thinking and abilities(head.model or None).may_bind


@lru_cache(maxsize=64)
def carries_thinking(head: PrefixDigests, api: Api) -> bool:
    """Return whether the model sees thinking of finished turns again, in removable blocks."""
    return format_named(api).validity.binds_thinking and abilities(head.model or None).carries_thinking


# --- how a window differs ---


def render_window(
    window: SentWindow, units: Sequence[Unit], before: RenderedWindow = NOTHING_RENDERED
) -> RenderedWindow:
    """Compute how this window differs from the client's messages.

    units: the client's messages by then.
    before: the window before on the branch.
    """
    shared, fresh = news_of(window.tip, before.tip)
    first = window.said - len(units) + 1
    since = max(_said_at(shared) - first + 1, 0)
    is_kept = before.top < since
    changes = dict(before.changes) if is_kept else changes_kept(before.changes, since)
    low, top = since, before.top if is_kept else max(changes, default=-1)
    replaced = before.replaced if is_kept else sum(map(_count, changes.values()))
    for piece in fresh:
        place = piece.said - first
        if 0 <= place < len(units) and (piece.uncited or not _shows(piece.message, units[place].message)):
            change = change_of(piece, units[place])
            if change != UNCHANGED:
                known = changes.get(place, UNCHANGED)
                one = changes[place] = join_changes(known, change)
                replaced += _count(one) - _count(known)
                low, top = min(low, place), max(top, place)
        for place in _absent(piece, first, len(units)):
            changes[place] = GONE
            low, top = min(low, place), max(top, place)
    for place in without_thinking(window, units, since, before.said, changes) if window.binds or window.takes else ():
        changes[place] = replace(changes.get(place, UNCHANGED), thoughtless=True)
        low, top = min(low, place), max(top, place)
    for place in _spent_exchanges(window, units, since):
        changes[place] = replace(changes.get(place, UNCHANGED), spent=True)
        top = max(top, place)
    return RenderedWindow(window.tip, changes, window.rewritten, low, top, replaced, len(units))


def without_thinking(
    window: SentWindow, units: Sequence[Unit], since: int, known: int, changes: Mapping[int, MessageChange]
) -> list[int]:
    """Return the messages that lose their thinking with this window.

    known: messages in the request before.
    changes: differences so far.
    """
    lost: list[int] = []
    if not window.binds:
        start, end = since, count_finished([unit.message for unit in units])
    else:
        start, end = 0 if window.begun else since if window.rewritten else len(units), len(units)
        lost = foreign(
            units if start == len(units) else units[:start],
            known - window.passed,
            lambda: _earliest(changes, window.apart),
        )
    return [*lost, *(place for place in range(start, end) if units[place].message.role == "assistant")]


def _spent_exchanges(window: SentWindow, units: Sequence[Unit], since: int) -> Iterator[int]:
    """Yield the messages that stand for exchanges whose recalled texts leave with this window."""
    for place in window.exchanges if window.rewritten else ():
        if since <= place < len(units):
            calls = sum(unit.message.role == "assistant" for unit in units[place + 1 :])
            if calls >= WARM_CALLS:
                yield place


def _absent(piece: WindowPiece, first: int, count: int) -> Iterator[int]:
    """Yield the numbers of removed messages that this piece reports.

    first: number of the conversation's first message in the session.
    count: messages in the conversation.
    """
    for one in piece.absent:
        for start, end in one.said:
            yield from range(max(start - first, 0), min(end - first + 1, count))


def _earliest(changes: Mapping[int, MessageChange], apart: int | None) -> int | None:
    return min((*changes, *(() if apart is None else (apart,))), default=None)


def foreign(units: Sequence[Unit], known: int, first: Callable[[], int | None]) -> list[int]:
    """Return messages with thinking about another prompt than the present one.

    known: messages in pagein's last request; the next message answers it.
    first: returns the first message that differs from the client's; called only if needed.
    """
    found = [place for place in range(known + 1, len(units)) if units[place].thought == place]
    behind = first() if found else None
    return [] if behind is None else [place for place in found if place > behind]


def _count(change: MessageChange) -> int:
    return len(change.texts) + len(change.arguments) + len(change.servers)


def changes_kept(changes: Mapping[int, MessageChange], since: int) -> dict[int, MessageChange]:
    """Keep the changes before a message, and after it only the removal of thinking and of recalled texts."""
    return {
        place: one if place < since else MessageChange(thoughtless=one.thoughtless, spent=one.spent)
        for place, one in changes.items()
        if place < since or one.thoughtless or one.spent
    }


def _shows(message: Message, said: Message) -> bool:
    """Return whether a message shows just what the client said, so that no difference needs to be looked for."""
    return message is said or (
        len(message.blocks) == len(said.blocks)
        and all(
            one is other
            or (isinstance(one, ToolCall) and isinstance(other, ToolCall) and _called(one) == _called(other))
            or (isinstance(one, ToolResult) and isinstance(other, ToolResult) and _answered(one) == _answered(other))
            for one, other in zip(message.blocks, said.blocks, strict=True)
        )
    )


def _called(call: ToolCall) -> tuple[str, str]:
    return call.id, call.arguments


def _answered(result: ToolResult) -> tuple[str, str]:
    return result.call_id, result.text


def _said_at(found: Cell | None) -> int:
    # messages removed after a message that reports them come before the next message
    return (
        0 if found is None else max(found.piece.said, *(last for one in found.piece.absent for _, last in one.said), 0)
    )
