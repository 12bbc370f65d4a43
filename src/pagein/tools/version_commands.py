"""Implement `pagein history`, `show` and `diff` as functions with plain results.

The result shapes are stable: each is printed as a JSON object under `--json`, described in docs/reference/answers.md. Times
are seconds since 1970. Versions are in the order of their times.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any, Final, Protocol, TypeAlias

from pagein.engine.log.holdings import CHILD_RESULT
from pagein.engine.recall.named_objects import (
    NEWEST,
    Paths,
    VersionChoice,
    as_given,
    find_object,
    find_version,
    title_of,
    version_of_object,
)
from pagein.engine.recall.stored_chats import TurnPlace, TurnPlaces
from pagein.engine.recall.stored_fields import values_of
from pagein.errors import BadInput, BadName, NotRecallable
from pagein.model.delegation_notes import ChildResultNote
from pagein.model.derived_versions import FILES, ORDER_REASONS
from pagein.model.entries import Entry, NoteEntry
from pagein.model.links import Link, Resolution, UnresolvedReference
from pagein.model.objects import EXPIRED, ObjectId, StoredObject
from pagein.model.references import reference_to_fields
from pagein.model.values import Value
from pagein.model.versions import Version
from pagein.policy.reads.line_diff import LineChange, changes, split_lines, unified_diff
from pagein.ports import BlobStore, JournalStore, ObjectStore
from pagein.tools.store_commands import describe_version, plain

Answer: TypeAlias = dict[str, Any]
_LOOKED_AT: Final = 50
_LINES: Final = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_RANGE: Final = re.compile(r"(.+)@([0-9]{1,15})(?:(\.\.)([0-9]{1,15})?)?", re.DOTALL)


class ShownStore(ObjectStore, BlobStore, JournalStore, Protocol):
    """A store with versioned and evicted objects, and the journals that tell of them."""


# --- history ---


def history(store: ShownStore, name: str, *, limit: int | None = None, paths: Paths = as_given) -> Answer:
    """Return the versions of an object, the latest first: who wrote or saw which, when, and what the user had asked for.

    Shape: `{"id", "versions": [...], "more": whether there are more}`. A version is an object with `deed`, `known`, `spans`,
    `agent`, `chat`, `turn` and `said`.
    """
    if store.current(name) is None and _paged_object(store, name) is not None:
        raise NotRecallable(f"{name} left a window or was ingested and has no versions; `pagein show {name}` prints it")
    meant = find_object(store, name, paths)
    found = store.latest_versions(meant.id, None if limit is None else limit + 1)
    shown = found[:limit]
    spans = _spans_of_each(store, shown)
    places = TurnPlaces(store).of_each(shown)
    return {
        "id": meant.id,
        "versions": [
            {**describe_version(one), **_knowledge(one, spans.get(one.sequence)), **_origin(place, one)}
            for one, place in zip(shown, places, strict=True)
        ],
        "more": len(shown) < len(found),
    }


def knowledge_of(store: ObjectStore, version: Version) -> Answer:
    """Return how much of a file a version holds. Shape: `{"known": whole, part, name or null, "spans": [[first, last], ...]}`."""
    return _knowledge(version, _spans_of_each(store, [version]).get(version.sequence))


def _knowledge(version: Version, spans: Value) -> Answer:
    return {"known": plain(version.metadata.get("known")), "spans": plain(spans or version.metadata.get("spans") or ())}


def _spans_of_each(store: ObjectStore, versions: Sequence[Version]) -> dict[int, Value]:
    """Return the spans of versions that hold a part of a file, by sequence, if a field of its own has them. Raises StoreError."""
    names = {
        one.sequence: one.additional["spans"]
        for one in versions
        if one.metadata.get("known") == "part" and one.metadata.get("spans") is None and "spans" in one.additional
    }
    values = values_of(store, names.values())
    return {sequence: values[name] for sequence, name in names.items()}


def _origin(place: TurnPlace | None, version: Version) -> Answer:
    """Return who made a version, in which turn."""
    writer = version.writer
    nobody = {
        "session": None if writer.session == FILES else writer.session,
        "agent": None,
        "chat": None,
        "turn": None,
        "said": None,
    }
    if writer.kind == "client":  # a copy by a person's order, which keeps the metadata of the version before
        # the session is the one whose journal keeps the order, and did not give it
        return {**nobody, "session": None, "op": writer.reason if writer.reason in ORDER_REASONS else None}
    deeds = {"op": plain(version.metadata.get("op"))}
    if place is None:
        return {**nobody, **deeds}
    told = {"agent": place.agent, "chat": place.chat, "turn": place.turn, "said": place.said}
    return {"session": place.session or writer.session, **told, **deeds}


# --- show ---


def show(
    store: ShownStore,
    name: str,
    *,
    choice: VersionChoice = NEWEST,
    field: str | None = None,
    lines: str | None = None,
    paths: Paths = as_given,
) -> Answer:
    """Return a version with its content, or with another field, or with some lines of it.

    Shape: that of an object, and `{"known", "spans", "field", "content": text or null, "lines": [first, last] or null, "metadata",
    "provenance", "additional": [names], "references": [...]}`. The answer of a child model has `evidence`, too: its quotes, each with
    `place` in words and as numbers. Raises NotRecallable for an unknown object, version or field.
    """
    paged = _paged_object(store, name) if store.current(name) is None else None
    if paged is not None:
        text, lines_shown = _select_lines(store.get(paged.content).decode("utf-8", "replace"), lines)
        shown = {**_paged_out(paged), "content": text, "lines": lines_shown}
        return _with_evidence(store, paged, shown) if paged.kind == CHILD_RESULT else shown
    version = find_version(store, name, choice, paths)
    text, lines_shown = _select_lines(_text(store, version, field), lines)
    return {
        **describe_version(version),
        **knowledge_of(store, version),
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
        "references": [_link(store, link) for link in store.references(version)],
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


def _with_evidence(store: ShownStore, paged: StoredObject, shown: Answer) -> Answer:
    """Return the answer of a child model with what was asked, and its quotes with their places, from the note of it."""
    for entry in store.entries(paged.origin.session):
        note = entry.body.note if isinstance(entry, Entry) and isinstance(entry.body, NoteEntry) else None
        if isinstance(note, ChildResultNote) and note.object_id == str(paged.id):
            about = {"model": note.model, "targets": list(note.targets), "confidence": note.confidence}
            evidence = [{**asdict(one), "place": one.place} for one in note.evidence]
            return {**shown, "at": note.at, "metadata": {**shown["metadata"], **about}, "evidence": evidence}
    return shown


def _paged_out(stored: StoredObject) -> Answer:
    """Return an evicted object in the shape of a version, without record hashes and time."""
    about = {"description": stored.description, "call_id": stored.origin.call_id, "tokens": stored.tokens}
    return {
        "id": str(stored.id),
        "type": stored.kind,
        "nickname": None,
        "path": None,
        "title": stored.description,
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
        "known": None,
        "spans": [],
    }


def _range(lines: str) -> tuple[int, int]:
    found = _LINES.fullmatch(lines)
    first = int(found[1]) if found else 0
    last = int(found[2]) if found and found[2] else first
    if not 1 <= first <= last:
        raise BadInput(f"not a range of lines: {lines[:40]!r}; expected A-B with 1 <= A <= B")
    return first, last


def _link(store: ObjectStore, link: Link) -> Answer:
    """Return a reference with what it leads to, verified if it is pinned, or why it leads nowhere."""
    found = store.resolve(link.reference)
    told = {"path": link.path, **reference_to_fields(link.reference), "resolved": isinstance(found, Resolution)}
    if isinstance(found, UnresolvedReference):
        return {**told, "target": None, "why": found.why}
    target = found.version
    meant = {"id": target.id, "version": target.number, "type": target.type, "title": title_of(target)}
    return {**told, "target": meant, "why": None}


def _text(store: ObjectStore, version: Version, field: str | None) -> str | None:
    if field is None or field == "content":
        return store.content(version)
    if field not in version.additional:
        there = ", ".join(["content", *sorted(version.additional)])
        raise NotRecallable(f"{version.id} has no field {field[:40]!r} that is kept as content; it has {there}")
    value = store.additional(version, field)
    if isinstance(value, str):
        return value
    return json.dumps(plain(value), indent=2, ensure_ascii=False)


# --- diff ---


def diff(
    store: ObjectStore,
    name: str,
    *,
    read_file: Callable[[str], str],
    paths: Paths = as_given,
    folder: str = "",
) -> Answer:
    """Return the difference of two versions as a unified diff.

    name: `NAME@A..B`; `NAME@A` for A against the newest; `NAME@A..` for A against the file on disk; `NAME` for the last change
    read_file: returns the text of a file on disk
    folder: the paths in the diff are relative to it

    Shape: `{"id", "path", "old": version, "new": version, "added", "removed", "diff": text}`; a version is `{"version": number, or
    null for the file on disk, "at", "known", "spans"}`.
    """
    found = _RANGE.fullmatch(name) if store.current(name) is None else None
    meant = find_object(store, found[1] if found else name, paths)
    path = title_of(meant)
    new: Version | None
    if found is None:
        some = store.latest_versions(meant.id, _LOOKED_AT)
        change = _last_change(store, some) or _last_change(store, store.latest_versions(meant.id))
        if change is None:
            raise NotRecallable(
                f"the store knows one text of {path}, so there is no change to show; `pagein history` lists its versions"
            )
        old, new = change
    else:
        old = version_of_object(store, meant, VersionChoice(int(found[2])))
        number = VersionChoice(int(found[4])) if found[4] else NEWEST
        new = None if found[3] and not found[4] else version_of_object(store, meant, number)
    before = _content(store, old)
    after = _content(store, new) if new is not None else read_file(path)
    before, after = _closed(before, old, after), _closed(after, new, before)
    a, b = split_lines(before), split_lines(after)
    label = path.removeprefix(f"{folder.rstrip('/')}/").lstrip("/")
    made = unified_diff(a, b, label, changes(a, b), LineChange(0, len(a), 0, len(b)))
    return {
        "id": meant.id,
        "path": path,
        "old": _side(store, old),
        "new": {"version": None, "at": None, "known": "whole", "spans": []} if new is None else _side(store, new),
        "added": made.added,
        "removed": made.removed,
        "diff": made.text if made.added or made.removed else "",
    }


def _side(store: ObjectStore, version: Version) -> Answer:
    return {"version": version.number, "at": version.at, **knowledge_of(store, version)}


def _last_change(store: ObjectStore, versions: Sequence[Version]) -> tuple[Version, Version] | None:
    """Return the two latest versions with different texts, of those known whole or likely if there are two.

    versions: the latest first
    """
    texts = [one for one in versions if one.content_hash is not None]
    whole = [one for one in texts if one.metadata.get("known", "whole") in ("whole", "likely")]
    for known in (whole, texts):
        for new, old in pairwise(known):
            if new.content_hash != old.content_hash and not _differ_in_an_open_end(store, old, new):
                return old, new
    return None


def _differ_in_an_open_end(store: ObjectStore, old: Version, new: Version) -> bool:
    if not (_has_open_end(old) or _has_open_end(new)):
        return False
    before, after = store.content(old) or "", store.content(new) or ""
    return _closed(before, old, after) == _closed(after, new, before)


def _has_open_end(version: Version | None) -> bool:
    return version is not None and version.metadata.get("last_end") == "unknown"


def _closed(text: str, version: Version | None, other: str) -> str:
    """Return a text, with the last line end of `other` if its own last line end is unknown."""
    is_open = _has_open_end(version) and not text.endswith("\n")
    return f"{text}\n" if is_open and text and other.endswith("\n") else text


def _content(store: ObjectStore, version: Version) -> str:
    text = store.content(version)
    if text is None:
        why = "it was deleted by then" if version.deleted else "only its name is known"
        raise NotRecallable(f"version {version.number} of {title_of(version)} holds no text: {why}")
    return text
