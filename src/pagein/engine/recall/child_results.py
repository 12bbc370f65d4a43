"""What delegation needs of a session: texts of targets, and a place for the answers of children.

Rules of this file
------------------
1. An answer is stored before it is journaled, and journaled before anyone is told its id (law 1).
2. An answer with a key is not stored, and a key in a question is left out of its title (law 9).
3. What children were asked about counts as recently recalled, as if the model had peeked at it.
"""

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from pagein.engine.log.holdings import CHILD_RESULT, TOOLCALL
from pagein.engine.log.trajectory import Trajectory
from pagein.engine.recall.ingest import IngestStore, Owner
from pagein.engine.recall.stored_objects import StoredObjects
from pagein.errors import BadName, NotRecallable, StoreError
from pagein.model.delegation_notes import ChildResultNote, DelegationKind, QuoteNote
from pagein.model.identifiers import RANDOM_BYTES, uuid7
from pagein.model.journal_notes import RecallNote
from pagein.model.objects import ObjectId, Origin
from pagein.policy.privacy.exclusions import keys_in, without

_TITLE: Final = 100
_QUOTE: Final = 200


class TargetTexts(Owner, Protocol):
    """The session, as far as targets and answers need it."""

    def text(self, name: str) -> str:
        """Return the text of an object. Raises NotRecallable and StoreError."""
        ...


@dataclass(frozen=True, slots=True)
class TargetText:
    """The text of a target.

    object_id: its id, without a version's number. version: None for an object without versions.
    title: name of its file, if it has one; else what it is, in a few words.
    reference: id of the object with versions that it is, or was made from; None if there is none.
    """

    object_id: str
    version: int | None
    text: str
    title: str = ""
    reference: str | None = None

    @property
    def name(self) -> str:
        """The id, with the number of the version if there is one."""
        return self.object_id if self.version is None else f"{self.object_id}@{self.version}"


@dataclass(frozen=True, slots=True)
class ChildResultDraft:
    """An answer that is to be stored. question: the instructions. Further as in `ChildResultNote`."""

    call: str
    kind: DelegationKind
    question: str
    answer: str
    model: str
    targets: tuple[str, ...]
    references: tuple[str, ...]
    at: float
    confidence: str = ""
    evidence: tuple[QuoteNote, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The location of an answer. object_id: for recalls. artifact: id of the artifact with the answer; "" without one."""

    object_id: str
    artifact: str = ""


class ChildResults:
    """Texts of targets and stored answers of a session. Thread-safe as the session is.

    objects: objects with versions; None if there are none.
    trajectory: log of calls; None for no log.
    """

    def __init__(
        self, owner: TargetTexts, keeper: IngestStore, objects: StoredObjects | None, trajectory: Trajectory | None
    ) -> None:
        self._owner = owner
        self._keeper = keeper
        self._objects = objects
        self._trajectory = trajectory

    def target(self, name: str) -> TargetText:
        """Return the text of a target, by id or name. Raises NotRecallable with the reason, and StoreError."""
        asked = name.strip(" \t\r\n\"'`")  # models may add quotes
        with contextlib.suppress(BadName):
            stored = self._keeper.blobs.find(ObjectId.parse(asked))
            if stored is not None:
                call = stored.origin.call_id
                reference = call if stored.kind == TOOLCALL else None
                title = call.removeprefix("file:") if call.startswith("file:") else stored.description
                return TargetText(asked, None, self._owner.text(asked), title, reference)
        text = self._owner.text(asked)
        if self._objects is None:
            return TargetText(asked, None, text)
        try:
            version = self._objects.get(asked)
        except NotRecallable:
            return TargetText(asked, None, text)
        path = version.metadata.get("path")
        return TargetText(version.id, version.number, text, path if isinstance(path, str) else version.type, version.id)

    def tokens(self, text: str) -> int:
        """Return the estimated tokens of a text."""
        return int(self._keeper.counter.count(text)) + 1

    def keep(self, draft: ChildResultDraft) -> StoredAnswer | None:
        """Store an answer. Returns None for an answer with unstorable text. Raises StoreError."""
        if keys_in(draft.answer):
            return None
        artifact = _artifact_id(self._owner.session, draft.call) if draft.kind == "extract" else ""
        title = " ".join(without(draft.question, keys_in(draft.question)).split())[:_TITLE]
        origin = Origin(self._owner.session, f"child:{draft.call}")
        with self._owner.turn():
            stored = self._keeper.keep_text(origin, CHILD_RESULT, title, draft.answer)
            note = ChildResultNote(
                str(stored.id),
                draft.call,
                draft.kind,
                stored.content.hex,
                stored.tokens,
                stored.chars,
                title,
                draft.model,
                draft.targets,
                draft.references,
                artifact,
                draft.at,
                draft.confidence,
                tuple(replace(one, quote=_kept_quote(one.quote)) for one in draft.evidence),
            )
            self._owner.note(note)
        return StoredAnswer(str(stored.id), artifact)

    def mark_warm(self, kind: DelegationKind, names: Sequence[str], call_id: str) -> str | None:
        """Record that objects were queried. Return the reason if the store refuses, else None.

        call_id: the host's own call, whose result counts as recently recalled, too.
        """
        recall = RecallNote(kind, tuple(names), call_id)
        try:
            with self._owner.turn():
                self._owner.note(recall)
        except StoreError as problem:
            self._owner.note(recall)  # holds in memory at once; the next `keep` stores it
            return f"{type(problem).__name__}: {problem}"
        return None

    def log(self, record: Mapping[str, object]) -> None:
        """Append a record to the log, if there is one. Never raises."""
        if self._trajectory is not None:
            self._trajectory.append({**record, "session": self._owner.session})


def _kept_quote(quote: str) -> str:
    """Return a quote as it is journaled: short, without keys, and without half a surrogate pair, which no journal can hold."""
    kept = without(quote, keys_in(quote)).encode("utf-8", "replace").decode()
    return kept if len(kept) <= _QUOTE else f"{kept[:_QUOTE]}..."


def _artifact_id(session: str, call: str) -> str:
    """Return the id of the object of an answer. Digits of a hash stand in the place of its time, which a rebuild need not know."""
    digest = hashlib.sha256(f"artifact:{len(session)}:{session}:{call}".encode("utf-8", "surrogatepass")).digest()
    return uuid7(int.from_bytes(digest[-6:], "big"), digest[:RANDOM_BYTES])
