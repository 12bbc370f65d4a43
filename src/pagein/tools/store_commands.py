"""Implement `pagein objects`, `history`, `show`, `search` and `backlinks` as functions with plain results.

The result shapes are stable: each is printed as a JSON object under `--json`, described in docs/search.md. Times are seconds since 1970.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, Final, Protocol, TypeAlias

from pagein.errors import BadInput, BadName, NotRecallable
from pagein.model.links import Backlink, Link
from pagein.model.names import ContentHash
from pagein.model.objects import EXPIRED, ObjectId, StoredObject
from pagein.model.references import Reference, reference_to_fields
from pagein.model.search_query import Hit, Results, Search
from pagein.model.values import Fields, Value
from pagein.model.version_hash import metadata_view
from pagein.model.versions import Version
from pagein.model.writes import Query
from pagein.policy.recall.path_filter import path_matches
from pagein.ports import BlobStore, ObjectStore

Answer: TypeAlias = dict[str, Any]
_PAGE: Final = 200
_LINES: Final = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def objects(store: ObjectStore, query: Query, path: str | None = None) -> Answer:
    """Return the newest versions of the matching objects, newest first, without reading content.

    path: as in a search

    Shape: `{"objects": [...], "next": sequence or null}`.
    """
    limit = query.limit or _PAGE
    found: list[Version] = []
    before = query.before
    while len(found) <= limit:
        page = store.objects(replace(query, before=before, limit=limit + 1 if path is None else _PAGE))
        found += [version for version in page if path is None or _lies_at(version, path)]
        if not page or path is None:
            break
        before = page[-1].sequence
    shown = found[:limit]
    return {
        "objects": [describe_version(version) for version in shown],
        "next": shown[-1].sequence if len(found) > limit else None,
    }


def _lies_at(version: Version, path: str) -> bool:
    where = version.metadata.get("path")
    return isinstance(where, str) and path_matches(path, where)


def history(store: "ShownStore", name: str) -> Answer:
    """Return every version of an object, newest first. Shape: `{"id", "versions": [...]}`."""
    if store.current(name) is None and _paged_object(store, name) is not None:
        raise NotRecallable(f"{name} left a window or was ingested and has no versions; `pagein show {name}` prints it")
    meant = _find_version(store, name)
    return {"id": meant.id, "versions": [describe_version(version) for version in reversed(store.history(meant.id))]}


class ShownStore(ObjectStore, BlobStore, Protocol):
    """A store with versioned and evicted objects."""


def show(
    store: ShownStore,
    name: str,
    *,
    number: int | None = None,
    at: float | None = None,
    field: str | None = None,
    lines: str | None = None,
) -> Answer:
    """Return a version with its content, or with another field, or with some lines of it.

    Shape: that of an object, and `{"field", "content": text or null, "lines": [first, last] or null, "metadata", "provenance",
    "additional": [names], "references": [...]}`. Raises NotRecallable for an unknown object, version or field.
    """
    paged = _paged_object(store, name) if store.current(name) is None else None
    if paged is not None:
        text, lines_shown = _select_lines(store.get(paged.content).decode("utf-8", "replace"), lines)
        return {**_paged_out(paged), "content": text, "lines": lines_shown}
    meant = _find_version(store, name)
    version = _version(store, meant, number, at)
    text, lines_shown = _select_lines(_text(store, version, field), lines)
    return {
        **describe_version(version),
        "field": field or "content",
        "content": text,
        "lines": lines_shown,
        "metadata": plain(version.metadata),
        "provenance": {
            "origin": version.provenance.origin,
            "generator": version.provenance.generator,
            "parents": [reference_to_fields(parent) for parent in version.provenance.parents],
        },
        "additional": sorted(version.additional),
        "references": [_link(link) for link in store.references(version)],
    }


def _select_lines(text: str | None, lines: str | None) -> tuple[str | None, list[int] | None]:
    """Return the selected lines of a text with their range; the full text if `lines` is None."""
    if lines is None:
        return text, None
    first, last = _range(lines)
    return None if text is None else "\n".join(text.split("\n")[first - 1 : last]), [first, last]


def _paged_object(store: ShownStore, name: str) -> StoredObject | None:
    try:
        found = store.find(ObjectId.parse(name))
    except BadName:
        return None
    return None if found is None or found.kind == EXPIRED else found


def _paged_out(stored: StoredObject) -> Answer:
    """Return an evicted object in the shape of a version, without record hashes and time."""
    about = {"description": stored.description, "call_id": stored.origin.call_id, "tokens": stored.tokens}
    return {
        "id": str(stored.id),
        "type": stored.kind,
        "nickname": None,
        "path": None,
        "version": 1,
        "sequence": None,
        "at": None,
        "chars": stored.chars,
        "deleted": False,
        "locked": False,
        "session": stored.origin.session,
        "writer": "system",
        "content_hash": stored.content.hex,
        "metadata_view_hash": None,
        "object_hash": None,
        "view": {"id": str(stored.id), "type": stored.kind, **about},
        "field": "content",
        "metadata": {**about, "workspace": stored.workspace},
        "provenance": {"origin": stored.origin.call_id, "generator": "tool", "parents": []},
        "additional": [],
        "references": [],
    }


def _range(lines: str) -> tuple[int, int]:
    found = _LINES.fullmatch(lines)
    first = int(found[1]) if found else 0
    last = int(found[2]) if found and found[2] else first
    if not 1 <= first <= last:
        raise BadInput(f"not a range of lines: {lines[:40]!r}; expected A-B with 1 <= A <= B")
    return first, last


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


def backlinks(store: ObjectStore, name: str, *, pinned: str | None = None, ever: bool = False) -> Answer:
    """Return the references to an object, or to an unused name. Shape: `{"target", "backlinks": [...]}`.

    pinned: only static references to the version with this object hash
    ever: from every version, not only from newest versions
    """
    name_of_version = None if pinned is None else ContentHash.parse(pinned)
    found = store.backlinks(name, pinned=name_of_version, ever=ever)
    return {"target": name, "backlinks": [_backlink(one) for one in found]}


# --- shapes ---


def describe_version(version: Version) -> Answer:
    """Return a version without content. `view` is the object's display form while its content is not loaded."""
    path = version.metadata.get("path")
    return {
        "id": version.id,
        "type": version.type,
        "nickname": version.nickname,
        "path": path if isinstance(path, str) else None,
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


def _link(link: Link) -> Answer:
    return {"path": link.path, **reference_to_fields(link.reference), "resolved": link.resolved}


def _backlink(link: Backlink) -> Answer:
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
    }


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


# --- resolving names ---


def _find_version(store: ObjectStore, name: str) -> Version:
    found = store.current(name)
    if found is None:
        raise NotRecallable(f"no object has the id or nickname {name[:80]!r}; `pagein objects` lists what there is")
    return found


def _version(store: ObjectStore, meant: Version, number: int | None, at: float | None) -> Version:
    if number is None and at is None:
        return meant
    if number is not None:
        found = store.version(meant.id, number)
        asked = f"version {number}"
    else:
        found = store.as_of(meant.id, at if at is not None else 0.0)
        asked = "version from before that time"
    if found is None:
        raise NotRecallable(f"{meant.id} has no {asked}; its versions are 1 to {meant.number}")
    return found


def _text(store: ObjectStore, version: Version, field: str | None) -> str | None:
    if field is None or field == "content":
        return store.content(version)
    if field not in version.additional:
        there = ", ".join(["content", *sorted(version.additional)])
        raise NotRecallable(f"{version.id} has no field {field[:40]!r} that is kept as content; it has {there}")
    value = store.additional(version, field)
    if isinstance(value, str):
        return value
    import json

    return json.dumps(plain(value), indent=2, ensure_ascii=False)
