"""Reads that a client's own tools made, in a conversation without files: what the model was shown, and shorter answers to what it reads again.

The version of a file is what a result showed, gutter removed (DESIGN 11).

Rules of this file
------------------
1. An answer rests on text that stands in this very request, compared line by line with the text in hand. So nobody has to know
   what else may have changed the file: what it shows now is what is told of it.
2. A result counts as what stands in the request, never as what the client sent: stubs and previews show nothing.
3. What shows a file in a way that cannot be told (a cut result, an edit without a place, lines quoted by a person) makes all that
   was shown of it earlier useless as a base. The texts themselves stay, and with them what rests on them already.
4. Who asks for the same lines again, right behind an answer that did not show them, is shown them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final, TypeAlias

from pagein.model.documents import Document
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.model.reading import Claim, FileAuthored, Invalidated, ReadServed, claim_of
from pagein.model.sharing import SharedMap
from pagein.model.spans import Spans
from pagein.policy.baseline import Baseline
from pagein.policy.clients.changes import changed
from pagein.policy.clients.files import is_plain, overlaid, path_key
from pagein.policy.clients.layouts import ShownText
from pagein.policy.clients.profile import OTHERS_OUTPUT, Profile
from pagein.policy.clients.wording import worded
from pagein.policy.exclusions import EXCLUDED, may_show_excluded
from pagein.policy.knowledge import NOTHING, Knowledge, proven
from pagein.policy.knowledge import step as with_event
from pagein.policy.reading import decide
from pagein.policy.request import DEFAULTS, Decision, ReadingSettings, ReadRequest

LEAST_SPARED: Final = 100
"""Characters that an answer must spare at least: each answer ties later decisions to the text it rests on."""

_NUMBERED: Final = re.compile(r"^[ ]*\d+(?:\t|→|: )", re.MULTILINE)

FileEvent: TypeAlias = ReadServed | FileAuthored | Invalidated


@dataclass(frozen=True, slots=True)
class Held:
    """What one call says of a file. call: "" where no call says it. text: the file by it. born: the model call before which it was said.

    gutter, before, after: as in `ShownText`, of the result as it stands.
    """

    call: str
    event: FileEvent
    text: str
    born: int
    gutter: str = ""
    before: int = 0
    after: int = 0

    @property
    def stands_for_more(self) -> bool:
        """Whether other text must bear it out."""
        return isinstance(self.event, ReadServed) and self.event.mode not in ("full", "baseline_fallback")

    @property
    def claim(self) -> Claim | None:
        """What the witness is told of the call."""
        if isinstance(self.event, Invalidated):
            return None
        return replace(claim_of(self.event), gutter=self.gutter, before=self.before, after=self.after)


@dataclass(frozen=True, slots=True)
class FileReads:
    """All that stands in the window of one file, in order, and the file as it looks by now (None: that cannot be told)."""

    chain: tuple[Held, ...] = ()
    text: str | None = None


_NO_READS: Final = FileReads()


@dataclass(frozen=True, slots=True)
class Repeat:
    """The client's own reference to an earlier read. base: the call of that read. born: the model call before which it was said."""

    base: str
    born: int


@dataclass(frozen=True, slots=True)
class ClientReads:
    """What the reads of a conversation have shown, at one point of it. Made by steps that share what they keep.

    calls: those that nobody answered yet. path_of: the file of each call that stands in a chain. asked: the call that made each
    read last, by its arguments; repeats: what the client itself answered with a reference to an earlier read, with that read.
    gone: calls of such reads whose results left the window. turns: messages of the model so far.
    """

    known: Knowledge = NOTHING
    files: SharedMap[FileReads] = field(default_factory=SharedMap)
    calls: SharedMap[ToolCall] = field(default_factory=SharedMap)
    path_of: SharedMap[str] = field(default_factory=SharedMap)
    asked: SharedMap[str] = field(default_factory=SharedMap)
    repeats: SharedMap[Repeat] = field(default_factory=SharedMap)
    gone: frozenset[str] = frozenset()
    turns: int = 0

    def claims(self) -> dict[str, Claim]:
        """What each call of the window stands for, for the witness."""
        held = (one for file in self.files.values() for one in file.chain)
        return {one.call: claim for one in held if one.call and (claim := one.claim) is not None}

    def stored(self, version: ContentHash) -> bytes | None:
        """The text of a version, as the conversation told it."""
        for file in self.files.values():
            for one in file.chain:
                if not isinstance(one.event, Invalidated) and one.event.version == version:
                    return one.text.encode()
        return None

    def resting_on(self, leaving: Iterable[str]) -> frozenset[str]:
        """Calls whose answers are not proven once the results of these have left; none of these themselves."""
        gone = frozenset(leaving)
        paths = {path for call in gone if (path := self.path_of.get(call)) is not None}
        found = (_unproven(one for one in self.files[path].chain if one.call not in gone) for path in sorted(paths))
        return frozenset[str]().union(*found)

    def held_by_young(self, last: int) -> frozenset[str]:
        """Calls whose results must stay, because an answer, ours or the client's, that was born behind call `last` may rest on them."""
        held = {one.base for one in self.repeats.values() if one.born > last} - self.gone
        for file in self.files.values():
            if any(one.stands_for_more and one.born > last for one in file.chain):
                held.update(one.call for one in file.chain if one.call)
        return frozenset(held)

    def fetch(self, path: str, version: ContentHash) -> bytes | None:
        """The text of a version of this file."""
        for one in reversed(self.files.get(path, _NO_READS).chain):
            if not isinstance(one.event, Invalidated) and one.event.version == version:
                return one.text.encode()
        return None


START: Final = ClientReads()


@dataclass(frozen=True, slots=True)
class Reader:
    """What rereads are decided by: the client, the bounds of the read policy, and the files whose content is never stored."""

    profile: Profile
    settings: ReadingSettings = DEFAULTS
    excluded: tuple[str, ...] = EXCLUDED
    least_spared: int = LEAST_SPARED


@dataclass(frozen=True, slots=True)
class Answer:
    """What may stand in place of a result. text: the whole result. markers: the lines of it that are ours."""

    text: str
    markers: tuple[str, ...]


# --- what is said ---


def with_message(
    state: ClientReads, reader: Reader, message: Message, stands: Mapping[str, str] | None = None
) -> ClientReads:
    """The state after one more message. stands: by call, the text that stands in the request where it is not the client's."""
    if message.role == "assistant":
        calls = state.calls
        for block in message.blocks:
            if isinstance(block, ToolCall):
                calls = calls.put(block.id, block)
        return replace(state, calls=calls, turns=state.turns + 1)
    for block in message.blocks:
        if isinstance(block, ToolResult):
            state = with_result(state, reader, block, (stands or {}).get(block.call_id, block.text))
        elif isinstance(block, Text) and message.role == "user":
            state = _quoted(state, block.text)
    return state


def with_result(state: ClientReads, reader: Reader, result: ToolResult, stands: str) -> ClientReads:
    """The state after one result, in whose place `stands` stands in the request."""
    call = state.calls.get(result.call_id)
    if call is None:
        return state
    state = replace(state, calls=state.calls.without(call.id))
    profile = reader.profile
    if profile.is_repeat(call, result):
        base = state.asked.get(_asked(call))
        state = state if base is None else replace(state, repeats=state.repeats.put(call.id, Repeat(base, state.turns)))
        if stands == result.text:
            return state
        result = replace(result, text=stands)  # shows what was put there
    elif profile.failed(call, result):
        return state
    meaning = profile.meaning(call)
    if meaning == OTHERS_OUTPUT or call.id in state.path_of:
        return state
    if all(access.op == "read" for access in meaning.accesses):
        return _read(state, reader, call, result, stands)
    return _written(state, reader, call, stands == result.text)


def answer(state: ClientReads, reader: Reader, result: ToolResult) -> Answer | None:
    """What may stand in place of a result that comes next, None where the result itself is best."""
    call = state.calls.get(result.call_id)
    if call is None or may_show_excluded(call, reader.excluded):
        return None
    shown = reader.profile.shown(call, result)
    path = None if shown is None else path_key(shown.path)
    if shown is None or path is None or call.id in state.path_of or _is_asked_again(state, path, shown):
        return None
    decision = _decision(state, reader, path, shown)
    told = None if decision is None else worded(decision, shown, result.text)
    if decision is None or told is None or shown.size(result.text) - len(told.text) < reader.least_spared:
        return None
    return Answer(shown.replaced(result.text, told.text), told.markers)


def lost_base(state: ClientReads, reader: Reader, result: ToolResult) -> str | None:
    """The call whose result a client's own marker refers to and that has left the window; None for any other result."""
    call = state.calls.get(result.call_id)
    if call is None or not reader.profile.is_repeat(call, result):
        return None
    base = state.asked.get(_asked(call))
    return base if base in state.gone else None


def _asked(call: ToolCall) -> str:
    return f"{call.name}\0{call.arguments}"


def _is_asked_again(state: ClientReads, path: str, shown: ShownText) -> bool:
    chain = state.files.get(path, _NO_READS).chain
    last = chain[-1] if chain else None
    return (
        last is not None
        and isinstance(last.event, ReadServed)
        and last.stands_for_more
        and (last.event.first, last.event.last) == (shown.first, shown.last)
    )


def _decision(state: ClientReads, reader: Reader, path: str, shown: ShownText) -> Decision | None:
    text = overlaid(state.files.get(path, _NO_READS).text, shown)
    if not is_plain(text):
        return None
    document = Document.of(text.encode(), path=shown.path, key=path)
    baseline = Baseline("\n".join(shown.lines), "", shown.first, len(shown.lines), text.count("\n") + 1)
    request = ReadRequest(document, shown.path, shown.first, shown.last, baseline)
    return decide(request, state.known.of(path), lambda version: state.fetch(path, version), reader.settings)


def _read(state: ClientReads, reader: Reader, call: ToolCall, result: ToolResult, stands: str) -> ClientReads:
    profile = reader.profile
    if profile.meaning(call).op == "read":
        state = replace(state, asked=state.asked.put(_asked(call), call.id))
    shown = profile.shown(call, result)
    if shown is None:
        # something of these files stands there now, and nobody can tell which lines
        return reduce(_forgotten, (access.path for access in profile.meaning(call).accesses), state)
    path = path_key(shown.path)
    text = overlaid(state.files.get(path, _NO_READS).text, shown)
    if not is_plain(text):
        return _forgotten(state, path)
    if stands == result.text:
        event: ReadServed | None = _whole(path, text, shown)
    else:
        event = _answered(state, reader, path, shown, result, stands)
    if event is None:
        return _with_text(state, path, text)
    held = Held(call.id, event, text, state.turns, shown.gutter, shown.before, shown.after)
    return _with_held(state, path, held)


def _whole(path: str, text: str, shown: ShownText) -> ReadServed:
    size, total = len(text.encode()), text.count("\n") + 1
    emitted = Spans.of((shown.first, shown.last))
    return ReadServed(
        path, "full", ContentHash.of(text.encode()), total, shown.first, shown.last, size, emitted=emitted
    )


def _answered(
    state: ClientReads, reader: Reader, path: str, shown: ShownText, result: ToolResult, stands: str
) -> ReadServed | None:
    """The answer that stands there, if it is the one that would be given; None for a stub, a preview, or whatever else."""
    decision = _decision(state, reader, path, shown)
    told = None if decision is None else worded(decision, shown, result.text)
    if decision is None or told is None or shown.replaced(result.text, told.text) != stands:
        return None
    return decision.event


def _written(state: ClientReads, reader: Reader, call: ToolCall, is_shown: bool) -> ClientReads:  # noqa: FBT001 -- told once, here
    for access in reader.profile.meaning(call).accesses:
        path = path_key(access.path)
        file = state.files.get(path, _NO_READS)
        known = state.known.of(path)
        made = (
            changed(reader.profile, call, access, path, before=file.text, known=known) if access.op != "read" else None
        )
        # a call is evidence of one file; of the others it is only known that they changed
        if made is None or not is_shown or call.id in state.path_of or _is_again(state, call, access.path):
            state = _forgotten(state, access.path)
        else:
            state = _with_held(state, path, Held(call.id, made.event, made.text, state.turns))
    return state


def _is_again(state: ClientReads, call: ToolCall, path: str) -> bool:
    return state.path_of.get(call.id) == path_key(path)


def _quoted(state: ClientReads, text: str) -> ClientReads:
    """Somebody else, a person or the host, shows numbered lines: of files that are named with them, these may be."""
    if _NUMBERED.search(text) is None:
        return state
    named = [path for path in state.files if path.rpartition("/")[2] in text]
    return reduce(_forgotten, named, state)


# --- chains ---


def _with_held(state: ClientReads, path: str, held: Held) -> ClientReads:
    chain = (*state.files.get(path, _NO_READS).chain, held)
    return replace(
        state,
        known=with_event(state.known, held.event),
        files=state.files.put(path, FileReads(chain, held.text)),
        path_of=state.path_of.put(held.call, path),
    )


def _with_text(state: ClientReads, path: str, text: str) -> ClientReads:
    file = state.files.get(path, _NO_READS)
    return replace(state, files=state.files.put(path, replace(file, text=text)))


def _forgotten(state: ClientReads, given: str) -> ClientReads:
    """Nothing that was shown of this file may be a base from here on."""
    path = path_key(given)
    file = state.files.get(path)
    if file is None:
        return state
    event = Invalidated(path)
    chain = (*file.chain, Held("", event, "", state.turns))
    return replace(state, known=with_event(state.known, event), files=state.files.put(path, FileReads(chain)))


def without(state: ClientReads, calls: Iterable[str]) -> ClientReads:
    """The state once the results of these calls have left the window, and what rested on them with them."""
    gone = frozenset(calls)
    paths = sorted({path for call in gone if (path := state.path_of.get(call)) is not None})
    bases = frozenset(call for call in state.asked.values() if call in gone)
    state = replace(state, gone=state.gone | bases)
    for path in paths:
        file = state.files[path]
        chain = tuple(one for one in file.chain if one.call not in gone)
        path_of = reduce(
            lambda kept, one: kept.without(one.call), (one for one in file.chain if one.call in gone), state.path_of
        )
        folded = reduce(with_event, (one.event for one in chain), NOTHING)
        known = folded.paths.get(path)
        others = state.known.paths.without(path) if known is None else state.known.paths.put(path, known)
        state = replace(
            state,
            known=Knowledge(others, max(state.known.seq, folded.seq)),
            files=state.files.put(path, replace(file, chain=chain)),
            path_of=path_of,
        )
    return state


def _unproven(chain: Iterable[Held]) -> frozenset[str]:
    """Calls in what is left of a chain that are not borne out any more."""
    seen, wrong = NOTHING, set[str]()
    for one in chain:
        if isinstance(one.event, Invalidated):
            continue  # the texts are still there
        if isinstance(one.event, ReadServed) and not proven(seen, one.event):
            wrong.add(one.call)
        seen = with_event(seen, one.event)
    return frozenset(wrong)


def texts_of(state: ClientReads) -> Iterator[str]:
    """The files as they look by now, for those who measure."""
    yield from (file.text for file in state.files.values() if file.text is not None)
