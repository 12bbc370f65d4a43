"""Splice the differences of a window into the client's bytes. A spliced message is computed once and remembered.

Rules of this file
------------------
1. Redacted content (law 9) is sent as the client sent it. Its message in the window is found by name, and the name
   comes from the client's own bytes: so the text is not needed to continue.
2. A spliced message keeps its shape: only results, arguments, thinking and words of the user's change.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pagein.engine.intake.message_chain import Item, Transcript, Unit, alike, digest_of
from pagein.engine.send.message_changes import MessageChange
from pagein.errors import HostError
from pagein.model.json_text import array_items, array_of
from pagein.model.messages import Block, Message, Text, Thinking, ToolCall, ToolResult
from pagein.policy.eviction.argument_masks import same_but_texts
from pagein.providers.validity import Api
from pagein.providers.wire.message_texts import MessageTexts
from pagein.providers.wire.request_body import (
    message_of,
    with_arguments,
    with_notes,
    with_texts,
    with_words,
    without_blocks,
)
from pagein.providers.wire.tool_offers import with_answers


@dataclass(frozen=True, slots=True)
class HiddenExchange:
    """A recall exchange that the client saw as a single message.

    actual: the messages in its place.
    answers: pagein's results to prepend to the next message.
    tools: names of the deferred tools that were found in it.
    spent, spent_answers: the same messages and results once the recalled texts have left the window.
    """

    actual: tuple[bytes, ...]
    answers: tuple[bytes, ...] = ()
    tools: frozenset[str] = frozenset()
    spent: tuple[bytes, ...] = ()
    spent_answers: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class _SpliceResult:
    """A spliced message, with its source bytes and change."""

    raw: bytes
    change: MessageChange
    parts: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class SpliceMemory:
    """A spliced message in a snapshot, with the digest of its source bytes."""

    digest: str
    change: MessageChange
    parts: tuple[bytes, ...]


class Splicer:
    """Splice changes into the bytes of requests. A result is computed once and remembered."""

    def __init__(self) -> None:
        self.basis: tuple[object, Mapping[int, HiddenExchange]] | None = None  # the last rendering
        self._raws: Sequence[bytes] = ()
        self._items: list[bytes] = []
        self.ends: list[int] = []  # number of messages to send up to each of the client's
        self._made: dict[int, _SpliceResult] = {}
        self._kept: Mapping[int, SpliceMemory] = {}

    def restore(self, basis: tuple[object, Mapping[int, HiddenExchange]], kept: Mapping[int, SpliceMemory]) -> None:
        """Continue from another process, with the last rendering and the spliced messages."""
        self.basis, self._kept = basis, kept

    def snapshot_values(self) -> dict[int, SpliceMemory]:
        """Return the spliced messages, for `restore`."""
        made = {at: SpliceMemory(digest_of(one.raw), one.change, tuple(one.parts)) for at, one in self._made.items()}
        return {**self._kept, **made}

    def items(self, script: Transcript, changes: Mapping[int, MessageChange], since: int = 0) -> list[bytes]:
        """Return the messages of a request with these changes.

        since: first message whose change may differ from the last call.
        """
        units, raws = script.units, script.raws
        start = min(alike(raws, self._raws), units[since].first if since < len(units) else len(raws))
        place = max(bisect_right(units, start, key=_first) - 1, 0)
        start = min(start, units[place].first) if units and start >= script.head else 0
        ends = self.ends[:start]
        items = self._items[: ends[-1] if ends else 0]
        for raw in raws[start : script.head]:
            items.append(raw)
            ends.append(len(items))
        for unit_place in range(place if start else 0, len(units)):
            unit, change = units[unit_place], changes.get(unit_place)
            for at in range(unit.first, unit.first + unit.count):
                items += (raws[at],) if change is None else self._parts(at, unit, change, script)
                ends.append(len(items))
        self._raws, self._items, self.ends = raws, items, ends
        return items

    def _parts(self, at: int, unit: Unit, change: MessageChange, script: Transcript) -> Sequence[bytes]:
        """Return the messages to send for a message with its change: none, one or several."""
        raw = script.raws[at]
        known = self._made.get(at)
        if known is None or known.raw != raw or known.change != change:
            kept = self._kept.get(at)
            if kept is not None and kept.change == change and kept.digest == digest_of(raw):
                parts: Sequence[bytes] = kept.parts
            else:
                made = _splice_unit(at, unit, change, script)
                is_one = bool(made) and not change.stands and not change.notes
                parts = (made,) if is_one else tuple(array_items(array_of([made] if made else []), "messages"))
            known = self._made[at] = _SpliceResult(raw, change, parts)
        return known.parts


def _first(unit: Unit) -> int:
    return unit.first


def _splice_unit(at: int, unit: Unit, change: MessageChange, script: Transcript) -> bytes:
    if change.gone:
        return b""
    if change.stands:
        stands = [_masked_in(one, change, script.api, at) for one in change.stands]
        return b",".join(_thoughtless(stands, script.api) if change.thoughtless else stands) * (at == unit.first)
    item = script.items[at]
    made, blocks = item.raw, item.message.blocks
    if change.thoughtless:
        gone = [place for place, block in enumerate(blocks) if isinstance(block, Thinking)]
        made = without_blocks(made, script.api, gone) if gone else made
    places = {
        place: change.texts[block.call_id]
        for place, block in enumerate(blocks)
        if isinstance(block, ToolResult) and block.call_id in change.texts
    }
    if places or change.arguments:
        made = with_texts(made, script.api, places) if places else made
        made = _in_shape(_masked_in(made, change, script.api, at), item, script.api, at)
    if change.servers or change.uncited:
        made = _served(made, change.servers, script, at)
    made = _with_words(made, change.words, script.api, at) if change.words is not None else made
    made = with_answers(made, script.api, change.answers) if change.answers else made
    is_last = at == unit.first + unit.count - 1
    return with_notes(made, script.api, change.notes) if change.notes and is_last else made


def _served(raw: bytes, stubs: Mapping[str, str], script: Transcript, at: int) -> bytes:
    """Replace results of the provider's own tools in a message, and remove its citations. Raises HostError if anything
    else in the message would change.
    """
    form = script.format.requests.server_results
    if form is None:
        return raw
    blocks = message_of(raw, script.api, at)[1].blocks
    texts = {
        place: stubs[one.call_id] if place == one.place else ""
        for one in form.results(blocks)
        if one.call_id in stubs
        for place in one.places
    }
    made = form.with_stubs(raw, texts)
    wanted = [
        Text(texts[place]) if place in texts else block for place, block in enumerate(blocks) if texts.get(place, " ")
    ]
    if list(message_of(made, script.api, at)[1].blocks) != wanted:
        raise HostError(f"message {at} lost its shape when results of the provider's tools in it were replaced")
    return made


def _with_words(raw: bytes, words: MessageTexts, api: Api, at: int) -> bytes:
    """Replace the user's words in a message. Raises HostError if anything else in the message would change."""
    made = with_words(raw, api, words)
    ours, theirs = (message_of(one, api, at)[1].blocks for one in (made, raw))
    others = [[one for one in blocks if not isinstance(one, Text)] for blocks in (ours, theirs)]
    texts = [words.texts.get(place, one.text) for place, one in enumerate(theirs) if isinstance(one, Text)]
    told = "".join(one.text for one in ours if isinstance(one, Text))
    wanted = [one for one in (words.front, *texts, words.behind) if one]
    if others[0] != others[1] or told not in ("".join(wanted), "\n\n".join(wanted)):
        raise HostError(f"message {at} lost its shape when words of the user's in it were replaced")
    return made


def _masked_in(raw: bytes, change: MessageChange, api: Api, at: int) -> bytes:
    """Replace the arguments of calls in a message."""
    if not change.arguments:
        return raw
    blocks = enumerate(message_of(raw, api, at)[1].blocks)
    calls = {place: one.id for place, one in blocks if isinstance(one, ToolCall) and one.id in change.arguments}
    return with_arguments(raw, api, {place: change.arguments[call] for place, call in calls.items()}) if calls else raw


def _in_shape(made: bytes, item: Item, api: Api, at: int) -> bytes:
    """Return the message if only results, arguments and thinking differ from the client's. Raises HostError otherwise."""
    if not _alike(message_of(made, api, at)[1], item.message):
        raise HostError(f"message {at} lost its shape when results or arguments in it were replaced")
    return made


def _alike(made: Message, said: Message) -> bool:
    ours, theirs = ([block for block in one.blocks if not isinstance(block, Thinking)] for one in (made, said))
    same = made.role == said.role and len(ours) == len(theirs)
    return same and all(_same(one, other) for one, other in zip(ours, theirs, strict=True))


def _same(made: Block, said: Block) -> bool:
    match made, said:
        case ToolResult(), ToolResult():
            return replace(made, text="", images=()) == replace(said, text="", images=())
        case ToolCall(), ToolCall():
            same = replace(made, arguments="") == replace(said, arguments="")
            return same and (made.arguments == said.arguments or same_but_texts(made.arguments, said.arguments))
        case _:
            return made == said


def _thoughtless(items: Sequence[bytes], api: Api) -> Iterator[bytes]:
    """Yield the messages of an exchange without thinking."""
    for place, raw in enumerate(items):
        blocks = message_of(raw, api, place)[1].blocks
        gone = [index for index, block in enumerate(blocks) if isinstance(block, Thinking)]
        yield without_blocks(raw, api, gone) if gone else raw
