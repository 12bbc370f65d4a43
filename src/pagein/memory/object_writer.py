"""Write the versions of objects made from journals: each version once, however often a journal is followed."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from pagein.errors import DamagedBlob, MissingBlob
from pagein.memory.redacted_drafts import DraftRedaction
from pagein.model.derived_versions import ARCHIVED, INDEXER
from pagein.model.names import ContentHash
from pagein.model.object_names import request_name
from pagein.model.values import Value
from pagein.model.version_hash import SealedDraft
from pagein.model.versions import Draft, Version, Writer
from pagein.model.writes import Query, Write, Written
from pagein.ports import BlobStore, JournalStore, LayerStore, ObjectStore
from pagein.workspace.note_links import link_target

_LONGEST_NICKNAME: Final = 200
_FILES: Final = frozenset({"file", "note"})


class IndexedStore(BlobStore, JournalStore, ObjectStore, LayerStore, Protocol):
    """A store with journals and with the objects made from them."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a version is made.

    session, entry: the journal entry that it follows from.
    at: time of the entry, seconds since 1970.
    reason: the kind of change.
    """

    session: str
    entry: str
    at: float
    reason: str


class ObjectWriter:
    """Writes versions into a store, with the names given by people to the objects. Raises StoreError."""

    def __init__(self, store: IndexedStore) -> None:
        self.store = store
        self.written = 0
        self.redaction = DraftRedaction(store)

    def answered(self, request: str, content: str | None) -> Version | None:
        """Return the version written before for this request, if any.

        content: the content that the version is expected to have; a check compares it.
        """
        return self.answer_with(request, content)

    def known(self, request: str) -> Version | None:
        """Return the version written before for this request, if any, whatever its content."""
        return self.store.answered(request)

    def write(self, request: str, draft: Draft, cause: Cause) -> Version:
        """Return the version of this request, written before or now.

        A version that the store refuses, because another object has its id with another type, stops nothing: it is returned
        unstored, the journals are followed on, and a check tells that an entry gave no version.
        """
        draft = self.redaction.draft(draft)
        request, known = self.answer_to(request, draft, cause)
        if known is not None:
            return known
        current = self.store.current(draft.id)
        outcome = self.store.write(self._write(request, _with_names(draft, current), cause))
        if not isinstance(outcome, Written) and draft.carried:
            outcome = self.store.write(self._write(request, _with_names(self._in_full(draft), current), cause))
        if not isinstance(outcome, Written):
            return self.unstored(draft, cause)
        self.written += outcome.change != "unchanged"
        return outcome.version

    def answer_to(self, request: str, draft: Draft, cause: Cause) -> tuple[str, Version | None]:
        """Return the request under which a session writes this redacted draft, and the version written before for it, if any."""

        def is_same(known: Version) -> bool:
            given = replace(draft, nickname=known.nickname, view=known.view, locked=known.locked)
            return known.id == draft.id and SealedDraft.of(given).object_hash == known.object_hash

        return self._skip_past(request, lambda known: known.writer.session != cause.session or is_same(known))

    def answer_with(self, request: str, content: str | None) -> Version | None:
        """Return the version written before for this request, if any; of a removed journal only one with this content."""
        return self._skip_past(request, lambda known: self.is_content(known, self.redaction.text(content)))[1]

    def _skip_past(self, request: str, is_same: Callable[[Version], bool]) -> tuple[str, Version | None]:
        """Return the first of the requests for a write that no other version from a removed journal answers, and its answer.

        A client may tell the same entries again after the journal of its session was removed, at other times. What differs then is written
        by another request, so that the earlier version stays.
        """
        while (known := self.known(request)) is not None and known.writer.kind == ARCHIVED and not is_same(known):
            request = request_name("again", request)
        return request, known

    @staticmethod
    def is_content(version: Version, content: str | None) -> bool:
        """Return whether a version has this content, redacted."""
        data = None if content is None else content.encode("utf-8", "surrogatepass")
        return version.content_hash == (None if data is None else ContentHash.of(data))

    def _write(self, request: str, draft: Draft, cause: Cause) -> Write:
        return Write(request, draft, cause.at, writer=self.by(cause))

    def unstored(self, draft: Draft, cause: Cause) -> Version:
        """Return the version of a draft without storing the version. Its number is 0."""
        return SealedDraft.of(draft).version(sequence=0, number=0, at=cause.at, writer=self.by(cause))

    def text(self, version: str) -> str | None:
        """Return the stored text of this hash; None for a lost one, or for bytes that are no text."""
        try:
            return self.store.get(ContentHash(version)).decode()
        except (MissingBlob, DamagedBlob, UnicodeDecodeError):
            return None

    @staticmethod
    def by(cause: Cause) -> Writer:
        """Return the writer of a version."""
        return Writer(INDEXER, cause.reason, cause.session)

    def _in_full(self, draft: Draft) -> Draft:
        """Return a draft without carried fields: another branch of the session has other pages now."""
        wanted = {digest: name for name, digest in draft.carried.items()}
        values: dict[str, Value] = {}
        for version in reversed(self.store.history(draft.id)):
            for name, digest in version.additional.items():
                if wanted.get(digest) == name and name not in values:
                    values[name] = self.store.additional(version, name)
            if len(values) == len(wanted):
                break
        return replace(draft, carried={}, additional={**values, **draft.additional})

    def free_name(self, name: str) -> str | None:
        """Return a note's name as a nickname, unless it is no nickname or another object has it."""
        told = name.strip()
        is_nickname = 0 < len(told) <= _LONGEST_NICKNAME and len(told.splitlines()) == 1
        return told if is_nickname and self.store.current(told) is None else None

    def target_of(self, home: str) -> Callable[[str, str], str]:
        """Return the function that finds the object behind a link in a note."""
        return lambda target, path: link_target(self.store, home, target, path)

    def file_at(self, home: str, path: str) -> Version | None:
        """Return the newest version of the file at a path, or of the last deleted file there."""
        for where in ({"path": path}, {"last_path": path}):
            query = Query(types=_FILES, where={"home": home, **where}, deleted=None, limit=1)
            found = self.store.objects(query)
            if found:
                return found[0]
        return None


def _with_names(draft: Draft, current: Version | None) -> Draft:
    """Return the draft with the name, the view and the lock of the object."""
    if current is None:
        return draft
    nickname = draft.nickname if current.nickname is None else current.nickname
    return replace(draft, nickname=nickname, view=current.view, locked=current.locked)
