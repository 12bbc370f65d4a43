"""Store content on eviction and return it on recall; the store comes first, then the stub."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pagein.engine.log.evicted_texts import EvictedTexts, bytes_of
from pagein.errors import StoreError
from pagein.model.entries import PagedOut, ThinkingObject
from pagein.model.messages import ToolResult
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, Origin, StoredObject
from pagein.policy.eviction.argument_masks import ArgumentRules, mask_arguments
from pagein.policy.eviction.residency import Resident
from pagein.policy.privacy.erased_texts import ErasedTexts
from pagein.policy.stubs.paste_stubs import name_repeat, shorten_paste
from pagein.policy.stubs.previews import Previews, preview
from pagein.policy.stubs.recall_ways import Way
from pagein.policy.stubs.result_stubs import AFTER_ONE_REQUEST, description, stub
from pagein.ports import BlobStore

TOOLCALL: Final = "toolcall"
CHAT: Final = "chat"
THINKING: Final = "thinking"
SAID: Final = "said-"
"""Prefix of the names of texts and turns, used in place of a call id."""
_ATTEMPTS: Final = 4


@dataclass(frozen=True, slots=True)
class EvictionCandidate:
    """A result that the policy evicts.

    resident: its place in the window and its form.
    result: its text; for arguments (`Resident.form`) the arguments are the text.
    tool: name of its tool.
    shown_once: True if only the request before showed it.
    """

    resident: Resident
    result: ToolResult
    tool: str
    shown_once: bool = False


@dataclass(frozen=True, slots=True)
class PreviewCandidate:
    """A large output that is about to enter the window as a preview.

    result, tool, tokens: the output, the name of its tool, its estimated tokens.
    place: numbers of its message in the request and of its block in the message.
    """

    result: ToolResult
    tool: str
    tokens: int
    place: tuple[int, int]


@dataclass(frozen=True, slots=True)
class StandIn:
    """A result that is about to enter the window as another text.

    entering: the result.
    text: the text in its place.
    short: the stub for a later eviction; "" to make a stub from the result.
    """

    entering: PreviewCandidate
    text: str
    short: str = ""


class Pager:
    """Store evicted content and recall it by id, for a workspace.

    forgettings: returns the number of erasure orders in this store. Raises StoreError.
    """

    def __init__(self, blobs: BlobStore, workspace: str) -> None:
        self._blobs = blobs
        self.forgettings = blobs.forgettings
        self._workspace = workspace
        self._texts = EvictedTexts(blobs, workspace)

    def page_out(
        self,
        session: str,
        leaving: Sequence[EvictionCandidate],
        way: Way,
        rules: ArgumentRules | None = None,
        pastes: int = 0,
    ) -> tuple[PagedOut, ...]:
        """Store results, and return their stubs in the same order. Raises StoreError; then nothing was evicted.

        The text behind a preview is stored already, with its stub.

        way: how the model recalls.
        rules: settings for masked arguments.
        pastes: least length of a user text that is evicted, in characters.
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
                self._store(session, [(each.result, each.tool, each.resident.tokens) for each in whole], kind),
                strict=True,
            )
        }
        return tuple(
            _page_preview(one.resident, one.resident.kept)
            if one.resident.kept
            else _page_out(one, stored[id(one)], way, rules, pastes)
            for one in leaving
        )

    def keep_said(self, session: str, name: str, text: str, tokens: int) -> StoredObject:
        """Store the text of messages that are evicted whole. Raises StoreError; then the messages must stay."""
        return self._store(session, [(ToolResult(name, text), "", tokens)], CHAT)[0]

    def preview(
        self, session: str, entering: Sequence[PreviewCandidate], settings: Previews, way: Way
    ) -> tuple[PagedOut, ...]:
        """Store results, and return their previews in the same order. Raises StoreError."""
        stored = self._store(session, [(one.result, one.tool, one.tokens) for one in entering])
        return tuple(_make_preview(one, kept, settings, way) for one, kept in zip(entering, stored, strict=True))

    def stand_in(self, session: str, entering: Sequence[StandIn], way: Way) -> tuple[PagedOut, ...]:
        """Store results, and return the texts in their place, in the same order. Raises StoreError."""
        results = [one.entering for one in entering]
        stored = self._store(session, [(one.result, one.tool, one.tokens) for one in results])
        return tuple(_standing_in(one, kept, way) for one, kept in zip(entering, stored, strict=True))

    def repeat(self, session: str, entering: Sequence[PreviewCandidate], way: Way) -> tuple[PagedOut, ...]:
        """Store earlier texts, and return their stubs, in the same order. Raises StoreError."""
        stored = self._store(session, [(one.result, one.tool, one.tokens) for one in entering], CHAT)
        stubs = [
            name_repeat(str(kept.id), one.tokens, one.result.text, way)
            for one, kept in zip(entering, stored, strict=True)
        ]
        return tuple(
            replace(_standing_in(StandIn(one, text), kept, way), part="text", short="")
            for one, text, kept in zip(entering, stubs, stored, strict=True)
        )

    def keep_thinking(self, session: str, epoch: int, text: str, tokens: int) -> ThinkingObject:
        """Store thinking that an epoch evicts. Raises StoreError; then the thinking must stay."""
        result = ToolResult(f"{THINKING}-{epoch}", text)
        (stored,) = self._store(session, [(result, THINKING, tokens)], THINKING)
        return ThinkingObject(str(stored.id), stored.content, tokens, len(text))

    def secret(self) -> bytes:
        """Return the key of this store. Raises StoreError."""
        return self._blobs.secret()

    def forgotten(self) -> ErasedTexts:
        """Return the erased texts. Raises StoreError."""
        return ErasedTexts(self._blobs.secret(), self._blobs.tombstones())

    def is_made_here(self, name: ObjectId) -> bool:
        """Return whether this store made an id. Raises StoreError."""
        return self._texts.is_made_here(name)

    def _store(
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
        """Return the exact text that was evicted under this id. Raises NotRecallable with the reason, or StoreError."""
        return self._texts.recall(object_id)

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


def text_name(text: str) -> str:
    """Return the name of an evicted user text, used in place of a call id."""
    return f"{SAID}{ContentHash.of(bytes_of(text)).hex[:16]}"


def _page_out(
    one: EvictionCandidate, stored: StoredObject, way: Way, rules: ArgumentRules | None, pastes: int
) -> PagedOut:
    match one.resident.form:
        case "result" | "server":
            return _page_result(one, stored, way)
        case "text":
            standing = shorten_paste(str(stored.id), one.resident.tokens, one.result.text, pastes, way)
            return replace(_page_result(one, stored, way), stub=standing, part="text")
        case _:
            return _mask_arguments(one, stored, way, rules or ArgumentRules())


def _mask_arguments(one: EvictionCandidate, stored: StoredObject, way: Way, rules: ArgumentRules) -> PagedOut:
    """Mask arguments: replaced text now, the rest at a later eviction."""
    resident, arguments = one.resident, one.result.text
    name = str(stored.id)
    whole = mask_arguments(arguments, name, one.tool, rules, way, written=True)
    half = whole
    if resident.form == "replaced":
        half = mask_arguments(arguments, name, one.tool, rules, way, written=False)
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


def _page_result(one: EvictionCandidate, stored: StoredObject, way: Way) -> PagedOut:
    resident, text = one.resident, one.result.text
    return PagedOut(
        call_id=one.result.call_id,
        object_id=str(stored.id),
        content=stored.content,
        tokens=resident.tokens,
        chars=len(text),
        stub=stub(stored.id, one.tool, resident.tokens, description(text) + AFTER_ONE_REQUEST * one.shown_once, way),
        message=resident.message,
        block=resident.block,
        why=resident.why,
    )


def _page_preview(resident: Resident, kept: PagedOut) -> PagedOut:
    """Evict a preview. The new stub stands for the whole stored text."""
    return replace(kept, stub=kept.short, short="", message=resident.message, block=resident.block, why=resident.why)


def _make_preview(one: PreviewCandidate, stored: StoredObject, settings: Previews, way: Way) -> PagedOut:
    shown = preview(str(stored.id), one.tool, one.tokens, one.result.text, settings, way)
    return _standing_in(StandIn(one, shown.text), stored, way)


def _standing_in(one: StandIn, stored: StoredObject, way: Way) -> PagedOut:
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
        short=one.short or stub(stored.id, entering.tool, entering.tokens, description(text), way),
    )
