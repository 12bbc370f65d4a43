"""Paging out and recalling: content is stored first, then the stub may be sent."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pagein.errors import BadName, MissingBlob, NotRecallable, StoreError
from pagein.model.entries import PagedOut, ThinkingObject
from pagein.model.messages import ToolResult
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, Origin, StoredObject
from pagein.policy.eviction.argument_masks import ArgumentRules, mask_arguments
from pagein.policy.eviction.residency import Resident
from pagein.policy.privacy.erasure import ErasedTexts
from pagein.policy.stubs.paste_stubs import shorten_paste
from pagein.policy.stubs.previews import Previews, preview
from pagein.policy.stubs.result_stubs import description, stub
from pagein.ports import BlobStore

TOOLCALL: Final = "toolcall"
CHAT: Final = "chat"
THINKING: Final = "thinking"
SAID: Final = "said-"
"""How the names of texts and turns begin, which stand where results have the id of their call."""
_ATTEMPTS: Final = 4


@dataclass(frozen=True, slots=True)
class EvictionCandidate:
    """A result that the policy wants paged out, and the name of its tool. Of arguments (`Resident.form`) the text is what they are."""

    resident: Resident
    result: ToolResult
    tool: str


@dataclass(frozen=True, slots=True)
class PreviewCandidate:
    """A big output that is about to enter the window as a preview. place: of its message and block in the request."""

    result: ToolResult
    tool: str
    tokens: int
    place: tuple[int, int]


@dataclass(frozen=True, slots=True)
class StandIn:
    """A result that is about to enter as another text. short: the stub that takes its place one day, "" for one made of the result."""

    entering: PreviewCandidate
    text: str
    short: str = ""


class Pager:
    """Pages content out to a store and recalls it by id, for one workspace."""

    def __init__(self, blobs: BlobStore, workspace: str) -> None:
        self._blobs = blobs
        self._workspace = workspace

    def page_out(
        self, session: str, leaving: Sequence[EvictionCandidate], rules: ArgumentRules | None = None, pastes: int = 0
    ) -> tuple[PagedOut, ...]:
        """Store these results, and say what stands for them, in the same order. Raises StoreError; then nothing has left.

        A preview is not stored: what it stands for is, and its stub was written with it. rules: of arguments that leave. pastes: from
        how many characters on texts of the user's leave.
        """
        kinds = {CHAT: list[EvictionCandidate](), TOOLCALL: list[EvictionCandidate]()}
        for one in leaving:
            if one.resident.kept is None:
                kinds[CHAT if one.resident.form == "text" else TOOLCALL].append(one)
        stored = {
            id(one): kept
            for kind, whole in kinds.items()
            for one, kept in zip(
                whole,
                self._stored(session, [(each.result, each.tool, each.resident.tokens) for each in whole], kind),
                strict=True,
            )
        }
        return tuple(
            _page_preview(one.resident, one.resident.kept)
            if one.resident.kept
            else _page_out(one, stored[id(one)], rules, pastes)
            for one in leaving
        )

    def keep_said(self, session: str, name: str, text: str, tokens: int) -> StoredObject:
        """Store what was said in messages that leave whole. Raises StoreError; then they may not leave."""
        return self._stored(session, [(ToolResult(name, text), "", tokens)], CHAT)[0]

    def preview(self, session: str, entering: Sequence[PreviewCandidate], settings: Previews) -> tuple[PagedOut, ...]:
        """Store these results, and say what previews stand for them, in the same order. Raises StoreError."""
        stored = self._stored(session, [(one.result, one.tool, one.tokens) for one in entering])
        return tuple(_make_preview(one, kept, settings) for one, kept in zip(entering, stored, strict=True))

    def stand_in(self, session: str, entering: Sequence[StandIn]) -> tuple[PagedOut, ...]:
        """Store these results, and say what enters in their place, in the same order. Raises StoreError."""
        results = [one.entering for one in entering]
        stored = self._stored(session, [(one.result, one.tool, one.tokens) for one in results])
        return tuple(_standing_in(one, kept) for one, kept in zip(entering, stored, strict=True))

    def keep_thinking(self, session: str, epoch: int, text: str, tokens: int) -> ThinkingObject:
        """Store what was thought, as it leaves with this epoch. Raises StoreError; then it may not leave."""
        result = ToolResult(f"{THINKING}-{epoch}", text)
        (stored,) = self._stored(session, [(result, THINKING, tokens)], THINKING)
        return ThinkingObject(str(stored.id), stored.content, tokens, len(text))

    def secret(self) -> bytes:
        """The key of this store. Raises StoreError where it cannot be asked."""
        return self._blobs.secret()

    def forgettings(self) -> int:
        """How often something was ordered to be forgotten in this store. Raises StoreError."""
        return self._blobs.forgettings()

    def forgotten(self) -> ErasedTexts:
        """The texts that were. Raises StoreError."""
        return ErasedTexts(self._blobs.secret(), self._blobs.tombstones())

    def is_made_here(self, name: ObjectId) -> bool:
        """Whether this store made an id. Raises StoreError where it cannot be asked."""
        return name.is_made_with(self._blobs.secret())

    def _stored(
        self, session: str, results: Sequence[tuple[ToolResult, str, int]], kind: str = TOOLCALL
    ) -> tuple[StoredObject, ...]:
        if not results:
            return ()
        secret = self._blobs.secret()
        attempts = [0] * len(results)
        for _ in range(_ATTEMPTS):
            objects = [
                self._object(session, one, kind, secret, attempt)
                for one, attempt in zip(results, attempts, strict=True)
            ]
            taken = self._blobs.put_objects(objects)
            if not taken:
                return tuple(stored for stored, _ in objects)
            attempts = [attempt + (stored.id in taken) for attempt, (stored, _) in zip(attempts, objects, strict=True)]
        raise StoreError(f"object ids of session {session!r} are taken by other content, {_ATTEMPTS} times in a row")

    def recall(self, object_id: str) -> str:
        """The text that was paged out under this id, exactly. Raises NotRecallable, saying why, or StoreError."""
        try:
            name = ObjectId.parse(object_id.strip())
        except BadName as problem:
            raise NotRecallable(str(problem)) from problem
        stored = self._blobs.find(name)
        if stored is None:
            raise NotRecallable(self._why_unknown(name))
        if stored.workspace != self._workspace:
            raise NotRecallable(f"{name} belongs to another workspace; recall it from a session there")
        try:
            content = self._blobs.get(stored.content)
        except MissingBlob as problem:
            raise NotRecallable(f"{name} has expired: its content is no longer kept") from problem
        return text_of(content)

    def _object(
        self, session: str, one: tuple[ToolResult, str, int], kind: str, secret: bytes, attempt: int
    ) -> tuple[StoredObject, bytes]:
        result, tool, tokens = one
        content = bytes_of(result.text)
        name = ContentHash.of(content)
        origin = Origin(session, result.call_id)
        object_id = ObjectId.of(name, origin, secret, attempt)
        about = description(result.text)
        label = f"{tool}: {about}" if tool else about
        stored = StoredObject(object_id, name, kind, self._workspace, origin, label, tokens, len(result.text))
        return stored, content

    def _why_unknown(self, name: ObjectId) -> str:
        if name.is_made_with(self._blobs.secret()):
            return f"{name} has expired: this store made it and no longer keeps it"
        if self._blobs.elsewhere(name):
            return f"{name} belongs to another workspace; recall it from a session there"
        return f"{name} never existed in this store"


def bytes_of(text: str) -> bytes:
    """Text as it is stored. Lone surrogates, which hosts do produce, survive."""
    return text.encode("utf-8", "surrogatepass")


def text_of(content: bytes) -> str:
    """What `bytes_of` stored."""
    return content.decode("utf-8", "surrogatepass")


def text_name(text: str) -> str:
    """The name under which a text of the user's leaves, where results have the id of their call."""
    return f"{SAID}{ContentHash.of(bytes_of(text)).hex[:16]}"


def _page_out(one: EvictionCandidate, stored: StoredObject, rules: ArgumentRules | None, pastes: int) -> PagedOut:
    match one.resident.form:
        case "result":
            return _page_result(one, stored)
        case "text":
            standing = shorten_paste(str(stored.id), one.resident.tokens, one.result.text, pastes)
            return replace(_page_result(one, stored), stub=standing, part="text")
        case _:
            return _mask_arguments(one, stored, rules or ArgumentRules())


def _mask_arguments(one: EvictionCandidate, stored: StoredObject, rules: ArgumentRules) -> PagedOut:
    """Arguments leave: the text that was replaced at least, and the rest later."""
    resident, arguments = one.resident, one.result.text
    name = str(stored.id)
    whole = mask_arguments(arguments, name, one.tool, rules, written=True)
    half = mask_arguments(arguments, name, one.tool, rules, written=False) if resident.form == "replaced" else whole
    return PagedOut(
        call_id=one.result.call_id,
        object_id=name,
        content=stored.content,
        tokens=resident.tokens,
        chars=len(arguments),
        stub=half,
        message=resident.message,
        block=resident.block,
        short=whole if half != whole else "",
        part="arguments",
    )


def _page_result(one: EvictionCandidate, stored: StoredObject) -> PagedOut:
    resident, text = one.resident, one.result.text
    return PagedOut(
        call_id=one.result.call_id,
        object_id=str(stored.id),
        content=stored.content,
        tokens=resident.tokens,
        chars=len(text),
        stub=stub(stored.id, one.tool, resident.tokens, description(text)),
        message=resident.message,
        block=resident.block,
    )


def _page_preview(resident: Resident, kept: PagedOut) -> PagedOut:
    """The preview leaves too: a stub stands for the whole that is kept."""
    return replace(kept, stub=kept.short, short="", message=resident.message, block=resident.block)


def _make_preview(one: PreviewCandidate, stored: StoredObject, settings: Previews) -> PagedOut:
    shown = preview(str(stored.id), one.tool, one.tokens, one.result.text, settings)
    return _standing_in(StandIn(one, shown.text), stored)


def _standing_in(one: StandIn, stored: StoredObject) -> PagedOut:
    entering = one.entering
    text = entering.result.text
    message, block = entering.place
    return PagedOut(
        call_id=entering.result.call_id,
        object_id=str(stored.id),
        content=stored.content,
        tokens=entering.tokens,
        chars=len(text),
        stub=one.text,
        message=message,
        block=block,
        short=one.short or stub(stored.id, entering.tool, entering.tokens, description(text)),
    )
