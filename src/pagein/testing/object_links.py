"""The contract of every ObjectStore about references and queries, as tests."""

# ruff: noqa: S101 -- these are tests that ship, with literal expectations

import pytest

from pagein.errors import BadInput
from pagein.model.links import Missing, Resolution, UnresolvedReference
from pagein.model.names import ContentHash
from pagein.model.references import Pin, Reference
from pagein.model.values import NO_FIELDS
from pagein.model.versions import Draft, Provenance, Version, Writer
from pagein.model.writes import EVERYTHING, Query, Write, Written
from pagein.ports import ObjectStore
from pagein.testing.object_drafts import a_file, object_number, put


class ReferenceContract:
    """References: their places, their current targets, their backlinks."""

    def test_references_stand_anywhere_and_are_listed_by_their_place(self, store: ObjectStore) -> None:
        to = [Reference(f"t{number}") for number in range(14)]
        version = put(
            store,
            Draft(
                id=object_number(1),
                type="chat",
                metadata={"links": to[:11], "a/b": {"~": to[11]}},
                additional={"turns": [{"steps": [{"call": to[12]}]}]},
                provenance=_derivation_from(to[13]),
            ),
        )
        links = store.references(version)
        assert [(link.path, link.reference) for link in links] == [
            ("/additional/turns/0/steps/0/call", to[12]),
            ("/metadata/a~1b/~0", to[11]),
            *((f"/metadata/links/{number}", to[number]) for number in range(11)),
            ("/provenance/parent_refs/0", to[13]),
        ]
        assert not any(link.resolved for link in links)
        assert store.current(version.id) == version

    def test_every_part_of_a_reference_survives(self, store: ObjectStore) -> None:
        target = put(store, a_file(1))
        references = (
            Reference("name \0 \ud800", None, "short_summary", "about"),
            target.static("content", "derived_from"),
            Reference(object_number(2), Pin(1.25, target.object_hash, target.metadata_view_hash, None)),
            Reference("long " * 1_000),
        )
        version = put(store, Draft(id=object_number(3), type="note", metadata={"links": references}))
        assert tuple(link.reference for link in store.references(version)) == references
        assert [link.reference for link in store.backlinks("long " * 1_000)] == [references[3]]

    def test_what_is_not_there_resolves_once_it_is(self, store: ObjectStore) -> None:
        elsewhere = Reference(object_number(1))
        version = put(store, Draft(id=object_number(2), type="note", metadata={"to": [elsewhere, Reference("plan")]}))
        assert [link.resolved for link in store.references(version)] == [False, False]
        assert store.resolve(elsewhere) == UnresolvedReference(elsewhere, "no such object")
        target = put(store, Draft(id=object_number(1), type="note", nickname="plan"))
        assert [link.resolved for link in store.references(version)] == [True, True]
        assert store.resolve(elsewhere) == Resolution(elsewhere, target, "id")
        assert store.resolve(Reference("plan")) == Resolution(Reference("plan"), target, "nickname")

    def test_dynamic_means_the_newest_and_static_the_one_it_was_made_for(self, store: ObjectStore) -> None:
        made = [put(store, a_file(1, text), at=at) for at, text in ((1.0, "a"), (2.0, "b"), (3.0, "c"))]
        dynamic = Reference(object_number(1))
        assert store.resolve(dynamic) == Resolution(dynamic, made[2], "id")
        for version in made:
            assert store.resolve(version.static()) == Resolution(version.static(), version, "time")

    def test_a_static_reference_with_a_wrong_time_is_found_by_its_hashes(self, store: ObjectStore) -> None:
        made = [put(store, a_file(1, text), at=at) for at, text in ((5.0, "a"), (5.0, "b"), (2.0, "c"))]
        first = made[0].static()
        assert store.resolve(first) == Resolution(first, made[0], "hash")
        assert made[1].pin().at == made[0].pin().at
        early = Reference(
            object_number(1), Pin(0.5, made[1].object_hash, made[1].metadata_view_hash, made[1].content_hash)
        )
        assert store.resolve(early) == Resolution(early, made[1], "hash")

    def test_of_versions_with_the_same_hashes_a_wrong_time_leads_to_the_newest(self, store: ObjectStore) -> None:
        made = [put(store, a_file(1, text), at=5.0) for text in ("a", "b", "a", "c")]
        assert made[0].pin() == made[2].pin()
        assert store.resolve(made[0].static()) == Resolution(made[0].static(), made[2], "hash")

    def test_a_static_reference_never_means_another_version(self, store: ObjectStore) -> None:
        version = put(store, a_file(1))
        pin = version.pin()
        other = ContentHash.of(b"other")
        cases: dict[Reference, Missing] = {
            Reference(version.id, Pin(pin.at, other, pin.view, pin.content)): "no such version",
            Reference(version.id, Pin(pin.at, pin.object, other, pin.content)): "hashes disagree",
            Reference(version.id, Pin(pin.at, pin.object, pin.view, None)): "hashes disagree",
            Reference(object_number(2), pin): "no such object",
        }
        assert {one: store.resolve(one) for one in cases} == {
            one: UnresolvedReference(one, why) for one, why in cases.items()
        }

    def test_a_static_reference_to_a_later_version_resolves_once_it_is_there(self, store: ObjectStore) -> None:
        scratch = put(store, a_file(1, "later"), at=7.0)
        pin = scratch.pin()
        put(store, Draft(id=object_number(2), type="note", metadata={"to": Reference(object_number(5), pin)}))
        (link,) = store.references(store.log()[1])
        assert not link.resolved
        to_come = put(store, a_file(5, "soon"), at=8.0)
        note = put(store, Draft(id=object_number(3), type="note", metadata={"to": to_come.static()}))
        assert [link.resolved for link in store.references(note)] == [True]
        assert not store.references(store.log()[1])[0].resolved

    def test_backlinks_are_of_newest_versions_or_of_all(self, store: ObjectStore) -> None:
        target = put(store, Draft(id=object_number(1), type="note", nickname="plan"))
        dynamic, by_name, static = Reference(target.id), Reference("plan"), target.static()
        old = put(store, Draft(id=object_number(2), type="note", metadata={"a": dynamic, "b": [by_name, static]}))
        new = put(store, Draft(id=object_number(2), type="note", metadata={"b": [static, by_name]}))
        other = put(store, Draft(id=object_number(3), type="note", metadata={"c": dynamic}))

        def links_to_target(**wanted: object) -> list[tuple[int, str, Reference]]:
            found = store.backlinks(target.id, **wanted)  # type: ignore[arg-type]
            return [(link.source.sequence, link.path, link.reference) for link in found]

        newest = [
            (other.sequence, "/metadata/c", dynamic),
            (new.sequence, "/metadata/b/0", static),
            (new.sequence, "/metadata/b/1", by_name),
        ]
        older = [
            (old.sequence, "/metadata/a", dynamic),
            (old.sequence, "/metadata/b/0", by_name),
            (old.sequence, "/metadata/b/1", static),
        ]
        assert links_to_target() == newest
        assert links_to_target(ever=True) == newest + older
        assert links_to_target(pinned=target.object_hash) == [newest[1]]
        assert links_to_target(pinned=target.object_hash, ever=True) == [newest[1], older[2]]
        assert links_to_target(pinned=ContentHash.of(b"none")) == []
        assert store.backlinks("plan") == store.backlinks(target.id)
        assert store.backlinks(other.id) == ()

    def test_backlinks_by_nickname_go_with_the_nickname(self, store: ObjectStore) -> None:
        put(store, Draft(id=object_number(1), type="note", metadata={"to": Reference("plan")}))
        assert len(store.backlinks("plan")) == 1
        holder = put(store, Draft(id=object_number(2), type="note", nickname="plan"))
        assert len(store.backlinks(holder.id)) == 1
        put(store, Draft(id="plan", type="toolcall"))
        assert store.backlinks(holder.id) == ()
        assert len(store.backlinks("plan")) == 1

    def test_objects_may_refer_to_themselves_and_in_circles(self, store: ObjectStore) -> None:
        for number in range(3):
            to = [Reference(object_number((number + 1) % 3)), Reference(object_number(number))]
            put(store, Draft(id=object_number(number), type="note", metadata={"to": to}))
        assert all(link.resolved for version in store.log() for link in store.references(version))
        assert [link.source.id for link in store.backlinks(object_number(0))] == [object_number(2), object_number(0)]


class QueryContract:
    """Queries: newest versions by their metadata."""

    def test_objects_are_found_by_type_and_fields_newest_first(self, store: ObjectStore) -> None:
        put(store, a_file(1, path="/old"))
        one, two = (
            put(store, a_file(1, path="/a/1", tags=["x", "y"], size=1)),
            put(store, a_file(2, path="/a/2", tags=["y"])),
        )
        note = put(store, Draft(id=object_number(3), type="note", content="text", metadata={"tags": "y", "size": 1.0}))
        cases: list[tuple[Query, list[Version]]] = [
            (Query(), [note, two, one]),
            (Query(types=frozenset({"file"})), [two, one]),
            (Query(types=frozenset({"file", "note"})), [note, two, one]),
            (Query(where={"path": "/old"}), []),
            (Query(where={"path": "/a/1"}), [one]),
            (Query(where={"tags": "y"}), [note, two, one]),
            (Query(where={"tags": "y", "size": 1}), [one]),
            (Query(where={"size": 1.0}), [note]),
            (Query(where={"tags": ("x", "y")}), [one]),
            (Query(where={"content_hash": ContentHash.of(b"text").hex}), [note, two, one]),
            (Query(under=("path", "/a/")), [two, one]),
            (Query(under=("path", "/a/2")), [two]),
            (Query(under=("path", "/b")), []),
            (Query(ending=("path", "/1")), [one]),
            (Query(ending=("path", "a/1")), [one]),
            (Query(ending=("path", "/x/a/1")), []),
            (Query(beginning=note.id[:9]), [note, two, one]),
            (Query(beginning=note.id), [note]),
            (Query(beginning=note.id + "0"), []),
            (Query(limit=2), [note, two]),
            (Query(limit=2, before=two.sequence), [one]),
            (Query(limit=0), []),
        ]
        for query, wanted in cases:
            assert list(store.objects(query)) == wanted, query

    def test_objects_are_found_by_time_nickname_and_session(self, store: ObjectStore) -> None:
        made = []
        for number in range(3):
            draft = Draft(id=object_number(number), type="note", nickname=f"n{number}")
            writer = Writer(session=f"s{number % 2}")
            outcome = store.write(Write(f"r{number}", draft, 10.0 * number, writer=writer))
            assert isinstance(outcome, Written)
            made.append(outcome.version)
        assert store.objects(Query(since=10.0)) == (made[2], made[1])
        assert store.objects(Query(until=10.0)) == (made[1], made[0])
        assert store.objects(Query(since=5, until=15)) == (made[1],)
        assert store.objects(Query(where={"nickname": "n2"})) == (made[2],)
        assert store.objects(Query(where={"session": "s0"})) == (made[2], made[0])
        assert store.objects(Query(where={"session": None})) == ()

    def test_objects_are_listed_by_the_times_of_their_newest_versions(self, store: ObjectStore) -> None:
        late, early = put(store, a_file(1, "x"), at=20.0), put(store, a_file(2, "x"), at=10.0)
        same = put(store, a_file(3, "x"), at=10.0)
        assert store.objects(Query(by_time=True)) == (late, same, early)
        assert store.objects(Query(by_time=True, limit=1, until=15)) == (same,)
        assert store.objects(Query()) == (same, early, late)

    def test_long_and_awkward_values_are_found(self, store: ObjectStore) -> None:
        texts = ["/" + "d" * 5_000 + "/a", "/" + "d" * 5_000 + "/b", "zero \0 \ud800 \\", 'quote "', "ü/%_", "ü~\x7f"]
        made = [put(store, a_file(number, path=text)) for number, text in enumerate(texts)]
        for text, version in zip(texts, made, strict=True):
            assert store.objects(Query(where={"path": text})) == (version,)
        assert store.objects(Query(under=("path", "/" + "d" * 600))) == (made[1], made[0])
        assert store.objects(Query(under=("path", "ü"))) == (made[5], made[4])
        for text, version in zip(texts[2:], made[2:], strict=True):
            assert version in store.objects(Query(ending=("path", text[1:])))
            assert store.objects(Query(ending=("path", f"?{text}"))) == ()
        assert store.objects(Query(under=("path", "zero \0 \ud800"))) == (made[2],)
        assert len(store.objects(EVERYTHING)) == len(texts)

    def test_a_negative_limit_is_refused(self, store: ObjectStore) -> None:
        with pytest.raises(BadInput):
            store.objects(Query(limit=-1))

    def test_fields_that_were_dropped_are_not_found(self, store: ObjectStore) -> None:
        put(store, a_file(1, tag="x"))
        put(store, Draft(id=object_number(1), type="file", metadata=NO_FIELDS))
        assert store.objects(Query(where={"tag": "x"})) == ()
        assert store.objects(Query(where={"path": "/folder/1.txt"})) == ()


def _derivation_from(parent: Reference) -> Provenance:
    return Provenance("somewhere", "agent", (parent,))
