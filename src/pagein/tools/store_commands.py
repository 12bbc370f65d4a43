"""Implement `pagein objects`, `search` and `backlinks` as functions with plain results.

The result shapes are stable: each is printed as a JSON object under `--json`, described in docs/reference/answers.md. Times are seconds since 1970.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from typing import Any, Final, Protocol, TypeAlias

from pagein.engine.recall.named_objects import (
    SESSIONS,
    Paths,
    VersionChoice,
    as_given,
    find_object,
    split_name,
    title_of,
    version_of_object,
)
from pagein.engine.recall.stored_chats import TurnPlace, TurnPlaces, turn_in
from pagein.errors import BadInput, BadName, NotRecallable
from pagein.model.links import Backlink
from pagein.model.names import ContentHash
from pagein.model.object_types import TYPES
from pagein.model.objects import ObjectId
from pagein.model.references import Reference, reference_to_fields
from pagein.model.search_query import Hit, Results, Search
from pagein.model.store_inventory import session_name
from pagein.model.values import Fields, Value
from pagein.model.version_hash import metadata_view
from pagein.model.versions import Version
from pagein.model.writes import Query
from pagein.policy.recall.path_filter import path_matches
from pagein.ports import BlobStore, ObjectStore, WholeStore

Answer: TypeAlias = dict[str, Any]
_PAGE: Final = 200
_NAMED: Final = 3


class NamedStore(ObjectStore, BlobStore, Protocol):
    """A store with versioned and evicted objects."""


def objects(store: WholeStore, query: Query, path: str | None = None, session: str | None = None) -> Answer:
    """Return the newest versions of the matching objects, the latest by time first, without reading content.

    Old sessions may be taken in after new ones, so this is not the order of the store.

    path: as in a search
    session: the session that wrote them, as for `session_named`

    Shape: `{"objects": [...], "next": sequence or null}`.
    """
    if session is not None:
        query = replace(query, where={**query.where, "session": session_named(store, session)})
    limit = query.limit or _PAGE
    each = objects_by_time(store, query, limit + 1 if path is None else _PAGE)
    found = list(islice((one for one in each if path is None or _lies_at(one, path)), limit + 1))
    shown = found[:limit]
    return {
        "objects": [describe_version(version) for version in shown],
        "next": shown[-1].sequence if len(found) > limit else None,
    }


def session_named(store: WholeStore, beginning: str) -> str:
    """Return the name of a session, without its sub-agents. Raises BadInput for several, and for none with what is there."""
    found = store.objects(Query(types=SESSIONS, under=("session_id", beginning), deleted=None))
    names = sorted({str(one.metadata.get("session_id")) for one in found})
    if beginning in names:
        return beginning
    if not names:  # a store may hold versions, a journal or results of a session without an object for it
        if store.objects(Query(where={"session": beginning}, deleted=None, limit=1)):
            return beginning
        return session_name(beginning, {one.name for one in store.sessions()})
    if any(not name.startswith(f"{names[0]}/") for name in names[1:]):
        raise BadInput(f"{beginning!r} is the beginning of several sessions: {', '.join(names[:_NAMED])}")
    return names[0]


def missing_types(store: ObjectStore, types: Iterable[str]) -> str:
    """Name the types without an object in the store, and the types that it has; "" if no type is missing."""
    asked, there = set(types), set[str]()
    # each query tells one more type; only the last one looks at every object
    while not asked <= there and (left := {*TYPES, *asked} - there):
        found = store.objects(Query(types=frozenset(left), deleted=None, limit=1))
        if not found:
            break
        there.add(found[0].type)
    if asked <= there:
        return ""
    missing = ", ".join(map(repr, sorted(asked - there)))
    return f"the store has no object of the type {missing}; it has {', '.join(filter(there.__contains__, TYPES)) or 'none'}"


def objects_by_time(store: ObjectStore, query: Query, size: int) -> Iterator[Version]:
    """Yield the newest versions of the matching objects, the latest by time first, behind the one with the sequence `before`.

    size: objects that are asked for at once, at first
    """
    last: tuple[float, int] | None = None
    until = query.until
    if query.before is not None:
        if query.before < 1:
            return  # nothing is older than the first version
        for version in store.log(query.before - 1, 1):
            last = version.at, query.before
            until = version.at if until is None else min(until, version.at)
    seen = set[str]()
    while True:
        page = store.objects(replace(query, before=None, until=until, by_time=True, limit=size))
        fresh = [one for one in page if one.id not in seen and (last is None or (one.at, one.sequence) < last)]
        yield from fresh
        if len(page) < size:
            return
        seen.update(one.id for one in fresh)
        until = page[-1].at
        size = size if fresh else 2 * size  # more objects than a page at the same time


def _lies_at(version: Version, path: str) -> bool:
    where = version.metadata.get("path")
    return isinstance(where, str) and path_matches(path, where)


def id_named(store: NamedStore, name: str, paths: Paths = as_given) -> str:
    """Return the id of the object, or of the evicted or ingested text, with a name or an abbreviation.

    Raises BadInput for several, and NotRecallable for an unknown name.
    """
    try:
        return find_object(store, name, paths).id
    except NotRecallable:
        with contextlib.suppress(BadName):
            if store.find(ObjectId.parse(name)) is not None:
                return name
        raise


def search(search_: Callable[[Search], Results], asked: Search) -> Answer:
    """Return a page of hits. Shape: `{"hits": [...], "next", "timed_out", "looked_into", "unsearched": [...]}`."""
    results = search_(asked)
    return {
        "hits": [_hit(hit) for hit in results.hits],
        "next": results.next,
        "timed_out": results.timed_out,
        "looked_into": results.looked_into,
        "unsearched": [asdict(one) for one in results.unsearched],
    }


def backlinks(
    store: ObjectStore,
    name: str,
    *,
    pinned: str | None = None,
    ever: bool = False,
    limit: int | None = None,
    paths: Paths = as_given,
) -> Answer:
    """Return the references to an object, or to an unused name, the latest first: what touched it, in which turn.

    name: with a version, as in `NAME@3`, only static references to this version
    pinned: only static references to the version with this object hash
    ever: from every version, not only from newest versions

    Shape: `{"target", "backlinks": [...], "more": whether there are more}`.
    """
    name_of_version = None if pinned is None else ContentHash.parse(pinned)
    alone, number = split_name(store, name)
    try:
        target = find_object(store, alone, paths)
    except NotRecallable:
        if number is not None:
            raise
        target = None
    if number is not None and target is not None:
        name_of_version = version_of_object(store, target, VersionChoice(number)).object_hash
    most = None if limit is None else limit + 1
    found = store.backlinks(alone if target is None else target.id, pinned=name_of_version, ever=ever, most=most)
    shown = [*map(_backlink, found[:limit], _turn_places(store, found[:limit]))]
    return {"target": alone if target is None else target.id, "backlinks": shown, "more": len(shown) < len(found)}


# --- shapes ---


def describe_version(version: Version) -> Answer:
    """Return a version without content. `view` is the object's display form while its content is not loaded."""
    path = version.metadata.get("path")
    return {
        "id": version.id,
        "type": version.type,
        "nickname": version.nickname,
        "path": path if isinstance(path, str) else None,
        "title": title_of(version),
        "version": version.number,
        "sequence": version.sequence,
        "at": version.at,
        "chars": version.chars,
        "deleted": version.deleted,
        "locked": version.locked,
        "session": version.writer.session,
        "writer": version.writer.kind,
        "content_hash": None if version.content_hash is None else version.content_hash.hex,
        "metadata_view_hash": version.metadata_view_hash.hex,
        "object_hash": version.object_hash.hex,
        "view": {name: one.hex if isinstance(one, ContentHash) else plain(one) for name, one in metadata_view(version)},
    }


def _hit(hit: Hit) -> Answer:
    match = asdict(hit.match)
    return {
        **asdict(hit.where),
        "field": hit.field,
        "turn": None if hit.place is None else hit.place.turn,
        "step": None if hit.place is None else hit.place.step,
        "speaker": None if hit.place is None else hit.place.speaker,
        **match,
        "before": list(match["before"]),
        "after": list(match["after"]),
    }


def _backlink(link: Backlink, place: TurnPlace | None) -> Answer:
    source = link.source
    path = source.metadata.get("path")
    return {
        "id": source.id,
        "type": source.type,
        "nickname": source.nickname,
        "path": path if isinstance(path, str) else None,
        "version": source.number,
        "sequence": source.sequence,
        "at": source.at,
        "place": link.path,
        "reference": reference_to_fields(link.reference),
        "title": title_of(source),
        "session": source.writer.session if place is None else place.session,
        "agent": None if place is None else place.agent,
        "turn": None if place is None else place.turn,
        "said": None if place is None else place.said,
        "status": plain(source.metadata.get("status")),
    }


def _turn_places(store: ObjectStore, links: Sequence[Backlink]) -> list[TurnPlace | None]:
    """Return the turns in which the sources of references were made; of a reference in a chat, the turn with it."""
    places = TurnPlaces(store)
    made = iter(places.of_each([one.source for one in links if one.source.type != "chat"]))
    return [
        places.place_in(one.source, turn_in(one.path)) if one.source.type == "chat" else next(made) for one in links
    ]


def plain(value: Value | Mapping[str, Value]) -> Any:  # noqa: ANN401 - JSON
    """Return a value in JSON types; a reference becomes `{"$ref": {...}}`."""
    match value:
        case Reference():
            return {"$ref": reference_to_fields(value)}
        case tuple():
            return [plain(one) for one in value]
        case Fields():
            return {name: plain(one) for name, one in value.items()}
    return value
