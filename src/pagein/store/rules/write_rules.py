"""Decide the outcome of a write.

Stores fetch the facts and carry out the decision; the order of checks is the same for every store.
"""

from dataclasses import dataclass
from typing import TypeAlias

from pagein.model.names import ContentHash
from pagein.model.version_hash import SealedDraft
from pagein.model.versions import Version
from pagein.model.writes import NEW, Change, Refusal, Write, WriteRefusal, Written


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier request with the same id.

    asked: the object hash it asked for
    version: the version it was answered with
    change: the kind of change it was answered with
    """

    asked: ContentHash
    version: Version
    change: Change


@dataclass(frozen=True, slots=True)
class WriteFacts:
    """Stored facts relevant to a write.

    earlier: the earlier request with the same id
    current: the object's newest version
    holder: id of the object whose newest version has the draft's nickname
    """

    earlier: Earlier | None
    current: Version | None
    holder: str | None


@dataclass(frozen=True, slots=True)
class AppendVersion:
    """Decision: create a version with this number."""

    number: int
    change: Change


@dataclass(frozen=True, slots=True)
class RememberedAnswer:
    """Decision: create no version, but remember the request with this answer."""

    answer: Written


Decision: TypeAlias = WriteRefusal | Written | RememberedAnswer | AppendVersion


def decide(write: Write, sealed: SealedDraft, facts: WriteFacts) -> Decision:
    """Apply the checks of `ObjectStore.write` in order.

    A result of type `Written` repeats the answer to an earlier request.
    """
    draft, current, earlier = write.draft, facts.current, facts.earlier
    if draft.type == "session" and not _is_session_id(draft.metadata.get("session_id")):
        return WriteRefusal("invalid_session_id", current)
    if earlier is not None:
        same = earlier.asked == sealed.object_hash
        return (
            Written(earlier.version, earlier.change, repeated=True) if same else WriteRefusal("request_reused", current)
        )
    if why := _conflict(write, facts):
        return WriteRefusal(why, current)
    if current is None:
        return AppendVersion(1, "created")
    if current.object_hash == sealed.object_hash:
        return RememberedAnswer(Written(current, "unchanged"))
    return AppendVersion(current.number + 1, "updated")


def _conflict(write: Write, facts: WriteFacts) -> Refusal | None:
    current = facts.current
    if write.expected is not None and write.expected != (NEW if current is None else current.number):
        return "version_conflict"
    if current is not None and current.type != write.draft.type:
        return "type_changed"
    held = {} if current is None else current.additional
    if any(held.get(name) != digest for name, digest in write.draft.carried.items()):
        return "version_conflict"
    return "nickname_taken" if facts.holder not in (None, write.draft.id) else None


def _is_session_id(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
