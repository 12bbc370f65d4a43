"""An engine with watched sessions: every sent request is checked against the laws, by code that shares no decision with
the engine.

What the watch knows is what was said to the session and what came out of it. It keeps its own account of the request, of what each
call's result was, and of what pagein put in its place; and reads the store through recall, as a model would.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Final

import pytest

from pagein.engine.engine import Engine, Settings
from pagein.engine.log.journal import Journal
from pagein.engine.log.request_draft import UNANSWERED, pieces_since
from pagein.engine.log.state import START, Rules, State
from pagein.engine.log.state_fold import step
from pagein.engine.prepared_request import OPEN_GATE, Gate, WindowRequest
from pagein.engine.reads.read_resources import Outside
from pagein.engine.reads.testimony import make_testimony
from pagein.engine.session import Session
from pagein.errors import MissingBlob
from pagein.model.codec import decode_entry, encode_entry
from pagein.model.entries import CompactionEntry, Entry, EntryId, MessageEntry, PagedOut, RequestSent
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.policy.audit.witness import witness
from pagein.policy.clients.window_files import FileChains
from pagein.ports import BlobStore, TokenCounter
from pagein.providers.validity import Api
from pagein.providers.wire import Checker, check_messages, render
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.workspace.folder import Folder

APIS: Final[tuple[Api, ...]] = ("anthropic", "openai_chat", "openai_responses")
_SHORT: Final = (
    120  # messages; longer requests are rendered whole only now and then, for the work grows with their square
)
_OFTEN: Final = 40
_ID: Final = re.compile(r"\[pagein: (pg-[0-9a-f]+-[0-9a-f]+) \|")
_SECRET: Final = re.compile(
    r"""(?:^|[\s"'/=\\])(?:\.env(?:\.\w+)?|[\w-]+\.(?:pem|p12|pfx)|id_rsa|\.npmrc|\.netrc)(?=$|[\s"'\\;|&)])"""
)


@dataclass
class Laws:
    """What was said in a session, what left it, and what was seen to be wrong with that: nothing, or the test fails."""

    engine: Engine
    blobs: BlobStore
    forks: bool = False
    requests: int = 0
    paged: int = 0
    answered: int = 0
    rewritten: int = 0
    bytes_compared: int = 0
    request: list[Message] = field(default_factory=list)
    secret: set[str] = field(default_factory=set)
    originals: dict[str, set[str]] = field(default_factory=dict)
    arguments: dict[str, set[str]] = field(default_factory=dict)
    masked: int = 0
    issued: dict[str, set[str]] = field(default_factory=dict)
    objects: dict[str, str] = field(default_factory=dict)
    _checker: Checker = field(default_factory=Checker)
    _sent: dict[EntryId, tuple[int, list[Message]]] = field(default_factory=dict)
    _bytes: dict[EntryId, dict[Api, list[bytes]]] = field(default_factory=dict)
    _samples: dict[EntryId, list[Message]] = field(default_factory=dict)

    def heard(self, message: Message) -> None:
        for block in message.blocks:
            if isinstance(block, ToolCall):
                self.arguments.setdefault(block.id, set()).add(block.arguments)
            if isinstance(block, ToolCall) and _SECRET.search(block.arguments):
                self.secret.add(block.id)
            if isinstance(block, ToolResult):
                self.originals.setdefault(block.call_id, set()).add(block.text)

    def left(self, session: Session, prepared: WindowRequest) -> None:
        """A request left: hold it to every law that can be told from it."""
        assert prepared.failure is None
        self.requests += 1
        self.request = [*self.request[: prepared.keep], *prepared.tail]
        for one in (*prepared.previewed, *(prepared.opened.paged if prepared.opened is not None else ())):
            self._gone(one)
        self.rewritten += prepared.opened is not None
        self._valid(prepared)
        reads = session.window_files.client
        for message in self.request[prepared.keep :]:
            self._lossless(message, reads)
        self._proven(session, reads)
        self._frozen(session, prepared)

    def _gone(self, one: PagedOut) -> None:
        """Lossless: what left is stored before anybody sees its stub. Private: and it may be stored."""
        self.paged += 1
        assert one.call_id not in self.secret, "what may show an excluded file was paged out (law 9)"
        text = self.engine.recall(one.object_id)
        said = self.arguments if one.part == "arguments" else self.originals
        self.masked += one.part == "arguments"
        assert text in said[one.call_id], "what is recalled is not what was said (law 1)"
        assert self.objects.setdefault(one.object_id, text) == text
        self.issued.setdefault(one.call_id, set()).add(one.stub)

    def _valid(self, prepared: WindowRequest) -> None:
        assert self._checker.check(prepared.keep, prepared.tail) == [], "a provider would refuse it (law 3)"
        if len(self.request) <= _SHORT or self.requests % _OFTEN == 0:
            assert check_messages(self.request) == [], "a provider would refuse it (law 3)"

    def _lossless(self, message: Message, reads: FileChains) -> None:
        """Each result is what was said, or what stands for it; and what stands for it leads to what was said, or is proven."""
        for block in message.blocks:
            if isinstance(block, ToolCall):
                self._asked(block)
            if not isinstance(block, ToolResult) or block.call_id not in self.originals:
                continue
            whole = self.originals[block.call_id]
            if block.text in whole or block.text == UNANSWERED:  # of a branch that ended before the result
                continue
            assert block.text in self.issued.get(block.call_id, ()), "neither what was said nor what stands for it"
            found = _ID.search(block.text)
            if found is None:
                assert block.call_id in reads.path_of, "what stands for a result neither names it nor is borne out"
                self.answered += 1
                continue
            original = self.engine.recall(found[1])
            assert original in whole
            if "[the end:]\n" in block.text:
                assert original.startswith(block.text[: found.start()].removesuffix("\n"))
                assert original.endswith(block.text.rpartition("[the end:]\n")[2])

    def _asked(self, call: ToolCall) -> None:
        """A call is what the model said, or the same but for texts in it, each of which names what it stands for."""
        whole = self.arguments.get(call.id, {call.arguments})
        if call.arguments in whole:
            return
        assert call.arguments in self.issued.get(call.id, ()), "neither what was called nor what stands for it"
        names = set(_ID.findall(call.arguments))
        original = next(self.engine.recall(name) for name in names if self.engine.recall(name) in whole)
        for said, shown in _leaves(json.loads(original), json.loads(call.arguments)):
            assert said == shown or _ID.search(str(shown)), "something else changed in a call"

    def _proven(self, session: Session, reads: FileChains) -> None:
        """The witness reads the request and the journal's claims: markers and diffs, where there are any."""
        told = make_testimony(session.evidence, self.request if session.evidence.files.path_of else (), self._stored)
        assert told.objections(self._stored) == (), "a marker or diff is not borne out (law 2)"
        if self.answered and (len(self.request) <= _SHORT or self.requests % _OFTEN == 0):
            assert witness(self.request, reads.claims(), reads.versions().get) == (), (
                "an answer is not borne out (law 2)"
            )

    def _frozen(self, session: Session, prepared: WindowRequest) -> None:
        """In an epoch the bytes of a request extend those of its parent on the branch, in every wire format."""
        leaf = session.leaf
        assert leaf is not None
        parent, dropped = _parent(session, leaf)
        if parent is not None and parent in self._sent:
            epoch, before = self._sent[parent]
            if prepared.opened is None and not dropped:
                assert prepared.epoch == epoch, "an epoch that nobody opened (law 4)"
            if prepared.epoch == epoch:
                assert self.request[: len(before)] == before, "the request does not extend its parent (law 4)"
            elif prepared.opened is not None and not dropped:
                frontier = min(prepared.opened.frontier, len(before))
                assert self.request[:frontier] == before[:frontier], "changed in front of the frontier (law 4)"
        self._compare(leaf, parent, prepared.epoch)
        if not self.forks:
            self._sent.clear()
        self._sent[leaf] = prepared.epoch, list(self.request)
        if len(self._samples) < _OFTEN and (len(self.request) <= _SHORT or self.requests % _OFTEN == 0):
            self._samples[leaf] = list(self.request)

    def _compare(self, leaf: EntryId, parent: EntryId | None, epoch: int) -> None:
        if len(self.request) > _SHORT and self.requests % _OFTEN > 1:  # two in a row now and then
            self._bytes.clear()
            return
        now = {api: _items(self.request, api) for api in APIS}
        if parent in self._bytes and self._sent.get(parent, (None,))[0] == epoch:
            for api in APIS:
                before = self._bytes[parent][api]
                assert now[api][: len(before)] == before, f"{api}: the bytes do not extend those of the parent (law 4)"
                self.bytes_compared += 1
        if not self.forks:
            self._bytes.clear()
        self._bytes[leaf] = now

    def end(self, session: "WatchedSession") -> None:
        """The session is over: everything can still be had, nothing private was kept, and the journal alone tells the same."""
        for object_id, text in self.objects.items():
            assert self.engine.recall(object_id) == text, "it cannot be recalled any more (law 1)"
        elsewhere = {text for call, texts in self.originals.items() if call not in self.secret for text in texts}
        for call in self.secret:
            for text in self.originals.get(call, set()) - elsewhere:
                with pytest.raises(MissingBlob):
                    self.blobs.get(ContentHash.of(text.encode("utf-8", "surrogatepass")))
        self._branch_local(session)

    def _branch_local(self, session: "WatchedSession") -> None:
        """Fold the state anew, from the journal as it would be kept: at every request it is what it was."""
        again: Journal[State] = Journal(START, lambda state, body: step(state, body, session.rules))
        for entry in session.journal:
            kept = decode_entry(encode_entry(entry))
            assert isinstance(kept, Entry)
            again.add(kept)
        for leaf, request in self._samples.items():
            folded = [session.shown(piece.message) for piece in pieces_since(again.state_at(leaf).sent, 0)]
            assert folded == request, "law 6"
        if session.leaf is not None:
            assert _told(again.state_at(session.leaf)) == _told(session.journal.state_at(session.leaf)), "law 6"

    def _stored(self, version: ContentHash) -> bytes | None:
        try:
            return self.blobs.get(version)
        except MissingBlob:
            return None


class WatchedSession(Session):
    """A session that tells its watch what is said to it and what it makes of that. It forgets nothing, so that it can be folded anew."""

    laws: Laws
    rules: Rules

    def shown(self, message: Message) -> Message:
        """A message of the journal with what was withheld of it."""
        return self._log.privacy.shows(message)

    def append(self, message: Message, *, name: EntryId | None = None) -> EntryId:
        self.laws.heard(message)
        entry = super().append(message, name=name)
        body = self.journal.entry(entry).body
        if isinstance(body, MessageEntry) and body.message is not message:
            self.laws.heard(body.message)  # an answer that its place would not bear out is said in full
        return entry

    def advance(self, at: float | None = None, gate: Gate = OPEN_GATE) -> WindowRequest:
        prepared = super().advance(at, gate)
        self.laws.left(self, prepared)
        return prepared

    def forget(self) -> None:
        return


class WatchedEngine(Engine):
    """An engine on a real store whose every session is watched."""

    def __init__(
        self, store: Path, *, counter: TokenCounter, settings: Settings, home: Path | None = None, forks: bool = False
    ) -> None:
        blobs = SqliteStore(store)
        outside = (
            None if home is None else Outside(blobs, lambda path: Folder(path, settings.excluded), str(home), _never)
        )
        super().__init__(blobs=blobs, counter=counter, settings=settings, workspace="laws", outside=outside)
        self._home = home
        self._chosen = settings
        self.laws = Laws(self, blobs, forks)
        self.watched: WatchedSession | None = None

    def session(
        self, name: str, workspace: str | PathLike[str] | None = None, model: str | None = None
    ) -> WatchedSession:
        if self.watched is None:
            self.watched = WatchedSession(name, self._parts(), begin=self._begin_session, again=self.session)
            self.watched.laws = self.laws
            self.watched.rules = Rules(self._chosen.residency, self._chosen.excluded)
            if self._home is not None:
                self.watched.work_in(str(self._home))
        return self.watched

    def close(self) -> None:
        if self.watched is not None:
            self.laws.end(self.watched)
        super().close()


def _leaves(said: object, shown: object) -> Iterator[tuple[object, object]]:
    """What stands at the ends of two values of the same shape, side by side."""
    assert type(said) is type(shown), "a call lost its shape"
    if isinstance(said, dict) and isinstance(shown, dict):
        assert list(said) == list(shown), "a call lost its shape"
        for key, one in said.items():
            yield from _leaves(one, shown[key])
    elif isinstance(said, list) and isinstance(shown, list):
        assert len(said) == len(shown), "a call lost its shape"
        for one, other in zip(said, shown, strict=True):
            yield from _leaves(one, other)
    else:
        yield said, shown


def _never() -> float:
    return 0.0


def _parent(session: Session, leaf: EntryId) -> tuple[EntryId | None, bool]:
    """The request before this one on its branch, and whether the host compacted in between."""
    dropped = False
    entry: Entry = session.journal.entry(leaf)
    while entry.parent is not None:
        entry = session.journal.entry(entry.parent)
        if isinstance(entry.body, RequestSent):
            return entry.id, dropped
        dropped = dropped or isinstance(entry.body, CompactionEntry)
    return None, dropped


def _items(request: list[Message], api: Api) -> list[bytes]:
    """A request body as the bytes of its blocks, in the order of the prompt; what stands outside of the messages is one more.

    Anthropic joins messages of one role that follow one another, so there a block with its role is what is compared.
    """
    body = render(request, api, model="a-model")
    items = body.pop("input" if api == "openai_responses" else "messages")
    if api == "anthropic":
        items = [[item["role"], block] for item in items for block in item["content"]]
    return [json.dumps(body, sort_keys=True).encode(), *(json.dumps(item).encode() for item in items)]


def _told(state: State) -> tuple[object, ...]:
    """What decides the next request."""
    ready = state.draft.ready
    return (
        [piece.message for piece in pieces_since(ready.tip, 0)],
        list(state.standing.all()),
        (state.standing.old_tokens, state.standing.old_gain, state.standing.rent(1.0)),
        (state.epoch, state.account, state.floor, state.scale, state.sent_at, state.now),
    )
