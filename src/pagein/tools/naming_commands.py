"""Implement `pagein name` and `view` as functions with plain results.

The result shapes are stable: each is printed as a JSON object under `--json`, described in docs/reference/answers.md.
"""

import re
from typing import Any, Final, TypeAlias

from pagein.engine.recall.named_objects import Paths, as_given, exact_object, find_object, find_version, title_of
from pagein.errors import BadInput
from pagein.memory.indexer import Indexer
from pagein.memory.object_orders import ObjectOrder, give_order
from pagein.memory.object_writer import IndexedStore
from pagein.model.memory_notes import ObjectNameNote, ObjectViewNote
from pagein.model.versions import Version
from pagein.model.writes import Written
from pagein.tools.store_commands import describe_version

Answer: TypeAlias = dict[str, Any]
_LIKE_A_VERSION: Final = re.compile(r".+@[0-9.]+", re.DOTALL)
_OF_EVERY_OBJECT: Final = ("id", "type", "nickname", "char_count", "content", "locked", "deleted", "view", "provenance")


def name(store: IndexedStore, target: str, nickname: str | None, *, at: float, paths: Paths = as_given) -> Answer:
    """Give an object a nickname. None removes the nickname.

    at: seconds since 1970

    Shape: that of an object, and `{"was": the nickname before, or null}`. Raises BadInput for a name that already means another object.
    """
    meant = find_object(store, target, paths)
    if nickname is not None:
        if _LIKE_A_VERSION.fullmatch(nickname):
            raise BadInput(
                f"{nickname[:80]!r} is no nickname, because it reads like a version of {nickname.rpartition('@')[0]!r}"
            )
        holder = exact_object(store, nickname, paths)
        if holder is not None and holder.id != meant.id:
            raise BadInput(_taken(nickname, holder))
    done = _order(store, ObjectNameNote(meant.id, nickname), meant, at)
    return {**describe_version(done), "was": meant.nickname}


def _taken(nickname: str, holder: Version) -> str:
    remedy = ""
    if holder.nickname == nickname:
        remedy = f"; `pagein name {holder.id} --remove` takes it away there"
    return f"{nickname[:80]!r} already means {holder.type} {title_of(holder)[:80]!r} ({holder.id}){remedy}"


def shown_view(store: IndexedStore, target: str, *, paths: Paths = as_given) -> Answer:
    """Return an object with its view, in the shape of an object."""
    return describe_version(find_version(store, target, paths=paths))


def view(
    store: IndexedStore, target: str, fields: tuple[str, ...] | None, *, at: float, paths: Paths = as_given
) -> Answer:
    """Choose the fields of an object's view. None restores the fields of the object's type.

    Shape: that of an object. Raises BadInput for a field that the object does not have.
    """
    meant = find_object(store, target, paths)
    there = (*_OF_EVERY_OBJECT, *sorted(meant.metadata), *sorted(meant.additional))
    if missing := [one for one in fields or () if one not in there]:
        raise BadInput(f"{meant.id} has no field {missing[0][:40]!r}; it has {', '.join(there)}")
    return describe_version(_order(store, ObjectViewNote(meant.id, fields), meant, at))


def _order(store: IndexedStore, order: ObjectOrder, meant: Version, at: float) -> Version:
    outcome = give_order(store, order, at, Indexer(store).catch_up)
    if isinstance(outcome, Written):
        return outcome.version
    why = "it is gone" if outcome is None else outcome.why
    raise BadInput(f"the order about {meant.id} was not carried out: {why}")
