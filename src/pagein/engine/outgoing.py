"""The bytes of a request that was placed: what its branch holds, spliced into what the client sent, and checked.

Rules of this file
------------------
1. Where nothing is replaced, inserted or offered, the client's bytes go out, the very same.
2. What was decided for a request must not make a provider refuse it that would have taken the client's own (law 3). Each
   message that was spliced keeps its shape, and all that is not as in the request before on its branch is held to every rule;
   a small request as a whole.
3. Where an epoch was opened, a mark of ours stands in front of the first result that may leave next, if the client marks at all
   and leaves room (M14). It lasts as long as the client's last one, so that none stands in front of a longer one (M15).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pagein.engine.chain import Transcript
from pagein.engine.exchanges import Exchanges, with_exchanges
from pagein.engine.fallback import LastSent, fallback_bytes
from pagein.engine.folds import Fold
from pagein.engine.heads import Head
from pagein.engine.journal import Journal
from pagein.engine.places import Places
from pagein.engine.rendering import cut
from pagein.engine.showing import Showing
from pagein.engine.splicing import Splicer
from pagein.engine.state import State
from pagein.errors import HostError
from pagein.model.codec import decode_json
from pagein.model.entries import EntryId
from pagein.model.messages import Block, ToolCall, ToolResult
from pagein.providers.caches.marks import MAX_MARKS
from pagein.providers.marking import Address, Changes
from pagein.providers.validity import Api, check_body
from pagein.providers.wire.marked import with_marks
from pagein.providers.wire.request import Envelope, WireRequest, decode

_CHECKED_WHOLE: Final = 64 << 10
_SAID_BEFORE: Final = b'{"role":"user","content":"what was said before"}'
_MARK: Final = b'"cache_control"'
_MAY_CARRY: Final = ("tool_use", "tool_result")


@dataclass(frozen=True, slots=True)
class Bytes:
    """A request as it goes out. items: its messages. replaced: results that stand as something else; used: the messages it was rendered for.

    news: what of its messages, and of the client's, is not as in the request before it on its branch, and what that rests on.
    """

    body: bytes
    items: Sequence[bytes] = ()
    replaced: int = 0
    used: int = 0
    why: str = ""
    news: tuple[Sequence[bytes], Sequence[bytes]] = ((), ())


class Outgoing:
    """Renders the requests of one session. marks: whether marks of ours are added to the client's. Called by one thread at a time."""

    def __init__(self, journal: Journal[State], heads: Fold[Head], places: Places, *, marks: bool = True) -> None:
        self._journal = journal
        self._places = places
        self._marks = marks
        self._showing = Showing(journal, heads)
        self._exchanges = Exchanges()

    def rendered(self, original: bytes, envelope: Envelope, script: Transcript, entry: EntryId) -> Bytes:
        """The request that stands at this entry. original: the client's, with the tools that are offered beside its own; envelope: of that."""
        found = self._showing.at(entry, script.units, script.api)
        shown, stood = found.rendered, self._exchanges.of(script, self._places)
        splicer, made = found.splicer, with_exchanges(shown.changes, stood)
        goes_on = splicer.basis is not None and splicer.basis[0] is found.before and splicer.basis[1] == stood
        splicer.basis = None
        since = found.since if goes_on else 0
        items: Sequence[bytes] = splicer.items(script, made, since)
        splicer.basis = shown, stood
        start = _answered_from(script, since)
        news = items[splicer.count(start) :], script.raws[start:]
        if shown.rewritten and self._marks and script.api == "anthropic" and len(items) == len(script.items):
            items = self._marked(envelope, items, self._frontier(script, entry))
        body = envelope.body(items) if made else original
        return Bytes(body, items, shown.replaced, len(script.units), news=news)

    def hold(self, envelope: Envelope, made: Bytes) -> None:
        """Raises HostError where a provider would refuse this request, and not the client's own. Costs what is new in it.

        envelope: of the client's.
        """
        if len(made.body) <= _CHECKED_WHOLE:
            broken, theirs = _broken(made.body, envelope.api), envelope.body(envelope.items)
        else:
            ours, said = made.news
            in_front = [] if len(ours) == len(made.items) else [_SAID_BEFORE]
            broken = _broken(envelope.body([*in_front, *ours]), envelope.api)
            theirs = envelope.body([*in_front, *said])
        if broken:
            broken -= _broken(theirs, envelope.api)
        if broken:
            raise HostError(f"the rendered request would be refused by {', '.join(sorted(broken))}")

    def rendered_last(self, original: bytes, script: Transcript, failure: str) -> Bytes | None:
        """The request as its branch was rendered last, with what the client said since as it came. None where it was the client's own."""
        for count in range(len(script.units), 0, -1):
            unit = script.units[count - 1]
            sent = self._places.sent(unit.name)
            if sent is None:
                continue
            end = unit.first + unit.count
            before = script.cut(count)
            shown = self._showing.at(sent, before.units, script.api).rendered
            made = with_exchanges(shown.changes, self._exchanges.of(before, self._places))
            if not made:
                return None
            last = LastSent(Splicer().items(before, made), end)
            found = fallback_bytes(failure, decode(original, script.api), last)
            replaced = shown.replaced if found.used == "last" else 0
            return Bytes(found.request.body(), found.request.items, replaced, count, "; ".join(found.reasons))
        return None

    def _frontier(self, script: Transcript, entry: EntryId) -> Address | None:
        """The block in front of the first result that may leave one day."""
        state = self._journal.state_at(entry)
        first = next(iter(state.standing.all()), None)
        cell = None if first is None else cut(state.sent, first.message + 1)
        if first is None or cell is None:
            return None
        place = cell.piece.said - (state.draft.said - len(script.units) + 1)
        if not 0 < place < len(script.units):
            return None
        item = script.units[place].first
        blocks = script.items[item].message.blocks
        at = next((at for at, one in enumerate(blocks) if _is_of(one, first.call_id)), 0)
        return (item, at - 1) if at else (item - 1, len(script.items[item - 1].message.blocks) - 1)

    def _marked(self, envelope: Envelope, items: Sequence[bytes], place: Address | None) -> Sequence[bytes]:
        count = b"".join((*items, *envelope.fields.values())).count(_MARK)
        last = next((raw for raw in reversed(items) if _MARK in raw), None)
        if place is None or last is None or not 0 < count < MAX_MARKS or _MARK in items[place[0]]:
            return items
        mark = next((part["cache_control"] for part in _parts(last) if "cache_control" in part), None)
        target = dict(enumerate(_parts(items[place[0]]))).get(place[1])
        if not isinstance(mark, dict) or target is None or target.get("type") not in _MAY_CARRY:
            return items
        request = WireRequest(envelope.api, b"", {}, tuple(items), (), ())
        return with_marks(request, Changes(envelope.api, {place: mark})).items


def _answered_from(script: Transcript, since: int) -> int:
    """The item with which that begins which messages from this one on may answer: the last thing that the model said before."""
    units = script.units
    place = min(since, len(units)) - 1
    while place > 0 and units[place].message.role != "assistant":
        place -= 1
    return units[place].first if place > 0 else 0


def _broken(body: bytes, api: Api) -> set[str]:
    """The rules of its provider that a request breaks."""
    return {one.rule for one in check_body(_values(body), api)}


def _is_of(block: Block, call: str) -> bool:
    """Whether a block is a call of this id, or its result."""
    return (isinstance(block, ToolResult) and block.call_id == call) or (
        isinstance(block, ToolCall) and block.id == call
    )


def _parts(raw: bytes) -> list[dict[str, Any]]:
    """The blocks of a message, those that are none as empty ones."""
    content = _values(raw).get("content")
    return [one if isinstance(one, dict) else {} for one in content] if isinstance(content, list) else []


def _values(body: bytes) -> Mapping[str, object]:
    value = decode_json(body)
    return value if isinstance(value, dict) else {}
