"""The bytes of a request that was placed: what its branch holds, spliced into what the client sent, and checked.

Rules of this file
------------------
1. Where nothing is replaced, inserted or offered, the client's bytes go out, the very same.
2. What was decided for a request must not make a provider refuse it that would have taken the client's own (law 3).
3. Where an epoch was opened, a mark of ours stands at the edit frontier, if the client marks at all and leaves room (M14).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pagein.engine.chain import Transcript
from pagein.engine.exchanges import with_exchanges
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
from pagein.model.messages import ToolResult
from pagein.providers.marking import Address, Wishes, changes
from pagein.providers.validity import Api, check_body
from pagein.providers.wire import spans
from pagein.providers.wire.marked import with_marks
from pagein.providers.wire.request import Envelope, WireRequest, decode


@dataclass(frozen=True, slots=True)
class Bytes:
    """A request as it goes out. items: its messages. replaced: results that stand as something else; used: the messages it was rendered for."""

    body: bytes
    items: Sequence[bytes] = ()
    replaced: int = 0
    used: int = 0
    why: str = ""


class Outgoing:
    """Renders the requests of one session. marks: whether marks of ours are added to the client's. Called by one thread at a time."""

    def __init__(self, journal: Journal[State], heads: Fold[Head], places: Places, *, marks: bool = True) -> None:
        self._journal = journal
        self._places = places
        self._marks = marks
        self._showing = Showing(journal, heads)

    def rendered(self, original: bytes, envelope: Envelope, script: Transcript, entry: EntryId) -> Bytes:
        """The request that stands at this entry. original: the client's, with the tools that are offered beside its own; envelope: of that."""
        shown, splicer = self._showing.at(entry, script.units, script.api)
        made = with_exchanges(script, shown.changes, self._places)
        items: Sequence[bytes] = splicer.items(script, made)
        if any(one.stands or one.notes for one in made.values()):
            items = spans.items(spans.array_of(items), "messages")
        fields = envelope.fields
        if shown.rewritten and self._marks and script.api == "anthropic" and len(items) == len(script.items):
            fields, items = self._marked(envelope, items, self._frontier(script, entry))
        return Bytes(envelope.body(items, fields) if made else original, items, shown.replaced, len(script.units))

    def hold(self, original: bytes, made: Bytes, api: Api) -> None:
        """Raises HostError where a provider would refuse this request, and not the client's own."""
        broken = {one.rule for one in check_body(_values(made.body), api)}
        if broken:
            broken -= {one.rule for one in check_body(_values(original), api)}
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
            before = replace(script, items=script.items[:end], units=script.units[:count])
            shown, _ = self._showing.at(sent, before.units, script.api)
            made = with_exchanges(before, shown.changes, self._places)
            if not made:
                return None
            last = LastSent(Splicer().items(before, made), end)
            found = fallback_bytes(failure, decode(original, script.api), last)
            replaced = shown.replaced if found.used == "last" else 0
            return Bytes(found.request.body(), found.request.items, replaced, count, "; ".join(found.reasons))
        return None

    def _frontier(self, script: Transcript, entry: EntryId) -> Address | None:
        """The first result that may leave one day."""
        state = self._journal.state_at(entry)
        first = next(iter(state.standing.all()), None)
        cell = None if first is None else cut(state.sent, first.message + 1)
        if first is None or cell is None:
            return None
        place = cell.piece.said - (state.draft.said - len(script.units) + 1)
        if not 0 <= place < len(script.units):
            return None
        item = script.units[place].first
        blocks = script.items[item].message.blocks
        return next(
            (
                (item, at)
                for at, block in enumerate(blocks)
                if isinstance(block, ToolResult) and block.call_id == first.call_id
            ),
            None,
        )

    def _marked(
        self, envelope: Envelope, items: Sequence[bytes], frontier: Address | None
    ) -> tuple[Mapping[str, bytes], Sequence[bytes]]:
        fields = envelope.fields
        if frontier is None or not any(b'"cache_control"' in raw for raw in (*items, *fields.values())):
            return fields, items
        body = _values(envelope.body(items))
        made = changes(body, envelope.api, Wishes(frontier))
        request = with_marks(WireRequest(envelope.api, b"", fields, tuple(items), (), ()), made)
        return request.fields, request.items


def _values(body: bytes) -> Mapping[str, object]:
    value = decode_json(body)
    return value if isinstance(value, dict) else {}
