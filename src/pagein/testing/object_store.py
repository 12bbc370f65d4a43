"""What every ObjectStore owes its callers, as tests. Subclass a contract and provide the fixture `store`."""

# ruff: noqa: S101, PLR2004 -- these are tests that ship, with literal expectations

import itertools
from collections.abc import Mapping

import pytest

from pagein.errors import BadInput
from pagein.model.identifiers import uuid7
from pagein.model.links import Missing, Resolved, Unresolved
from pagein.model.names import ContentHash
from pagein.model.references import Pin, Reference
from pagein.model.values import NO_FIELDS, canonical, frozen_fields
from pagein.model.versions import Draft, Provenance, Version, Writer, deletion
from pagein.model.writes import EVERYTHING, NEW, Outcome, Query, Refused, Write, Written
from pagein.ports import ObjectStore

HARD_TEXTS = (
    None,
    "",
    "plain\n",
    "\ufefffirst\r\nsecond\rthird\n\n",
    "zero \0 byte, lone \ud800 and \udfff halves, \U0001f600, \\u0041, back\\slash",
    "line\n" * 20_000,
)
HARD_FIELDS: Mapping[str, object] = {
    "text": "zero \0 lone \ud800 \\ \" / ~ '",
    "numbers": [0, -1, 2**62, 1.5, -0.0, 1e300, True, False, None],
    "$ref": {"id": "not a reference"},
    "$$": {"$": {"$ref": []}},
    "a/b~c": {"": [[], {}]},
    "naïve": "ü",
}


_REQUESTS = itertools.count()


def object_number(number: int) -> str:
    """An id for tests, the same for the same number."""
    return uuid7(1_700_000_000_000 + number, number.to_bytes(10, "big"))


def a_file(number: int, content: str | None = "text", *, path: str | None = None, **more: object) -> Draft:
    """A file for tests; `more` are fields of its metadata."""
    metadata = {"path": f"/folder/{number}.txt" if path is None else path, "file_type": "text", **more}
    return Draft(id=object_number(number), type="file", content=content, metadata=metadata)


def send(store: ObjectStore, draft: Draft, *, at: float = 1.0, expected: int | None = None) -> Outcome:
    """A write with a request id of its own."""
    return store.write(Write(f"request {next(_REQUESTS)}", draft, at, expected))


def put(store: ObjectStore, draft: Draft, *, at: float = 1.0) -> Version:
    """A write that must succeed."""
    outcome = send(store, draft, at=at)
    assert isinstance(outcome, Written)
    return outcome.version


def refused(outcome: Outcome) -> str:
    """Why a write was refused."""
    assert isinstance(outcome, Refused)
    return outcome.why


class VersionContract:
    """Versions: what was written comes back, for ever, in its order."""

    @pytest.mark.parametrize("content", HARD_TEXTS, ids=range(len(HARD_TEXTS)))
    def test_content_comes_back_as_it_was(self, store: ObjectStore, content: str | None) -> None:
        version = put(store, a_file(1, content))
        assert store.content(version) == content
        assert version.chars == len(content or "")
        assert (version.content_hash is None) == (content is None)
        assert store.current(version.id) == version

    def test_fields_of_every_kind_come_back_as_they_were(self, store: ObjectStore) -> None:
        draft = Draft(id=object_number(1), type="artifact", metadata=HARD_FIELDS, additional={"more": HARD_FIELDS})
        version = put(store, draft)
        found = store.current(draft.id)
        assert found == version
        assert canonical(found.metadata) == canonical(frozen_fields(HARD_FIELDS))
        assert canonical(store.additional(found, "more")) == canonical(frozen_fields(HARD_FIELDS))
        assert store.additional(found, "missing") is None

    def test_an_additional_field_has_a_hash_of_its_own(self, store: ObjectStore) -> None:
        first = put(store, Draft(id=object_number(1), type="note", content="c", additional={"a": "1", "b": "1"}))
        second = put(store, Draft(id=object_number(1), type="note", content="c", additional={"a": "2", "b": "1"}))
        assert first.additional["b"] == second.additional["b"]
        assert first.additional["a"] != second.additional["a"]
        assert first.content_hash == second.content_hash
        assert first.object_hash != second.object_hash
        assert store.additional(first, "a") == "1"

    def test_a_tool_call_keeps_the_id_of_the_provider(self, store: ObjectStore) -> None:
        name = "call_\ud800|fc\\é\0 9"
        version = put(store, Draft(id=name, type="toolcall", content="out"))
        assert version.id == name
        assert store.current(name) == version

    def test_versions_count_within_the_object_and_over_the_store(self, store: ObjectStore) -> None:
        made = [put(store, a_file(number, text)) for number, text in ((1, "a"), (2, "a"), (1, "b"), (2, "c"), (1, "d"))]
        assert [version.number for version in made] == [1, 1, 2, 2, 3]
        assert [version.sequence for version in made] == [1, 2, 3, 4, 5]
        assert store.history(object_number(1)) == (made[0], made[2], made[4])
        assert [store.content(version) for version in made] == ["a", "a", "b", "c", "d"]
        assert store.version(object_number(2), 2) == made[3]
        assert store.version(object_number(2), 3) is None
        assert store.version("nobody", 1) is None
        assert store.history("nobody") == ()
        assert store.current("nobody") is None

    def test_the_log_has_every_version_once_in_order(self, store: ObjectStore) -> None:
        made = tuple(put(store, a_file(number % 3, str(number))) for number in range(7))
        assert store.log() == made
        assert store.log(2, 3) == made[2:5]
        assert store.log(7) == ()
        assert store.log(0, 0) == store.log(0, -1) == ()

    def test_as_of_is_the_last_version_that_was_not_later(self, store: ObjectStore) -> None:
        made = [put(store, a_file(1, str(at)), at=at) for at in (10.0, 20.0, 20.0, 30.5)]
        wanted = {9.9: None, 10.0: made[0], 19.0: made[0], 20.0: made[2], 30.4: made[2], 31.0: made[3]}
        assert {at: store.as_of(object_number(1), at) for at in wanted} == wanted
        assert store.as_of("nobody", 99.0) is None

    def test_clocks_that_go_backwards_do_not_change_the_order(self, store: ObjectStore) -> None:
        early, late = put(store, a_file(1, "first"), at=100.0), put(store, a_file(1, "second"), at=50.0)
        assert store.current(early.id) == late
        assert [version.number for version in store.history(early.id)] == [1, 2]
        assert store.as_of(early.id, 60.0) == late
        assert store.as_of(early.id, 100.0) == late

    def test_writing_what_is_there_makes_no_version(self, store: ObjectStore) -> None:
        first = put(store, a_file(1))
        again = send(store, a_file(1), at=9.0)
        assert again == Written(first, "unchanged")
        assert store.log() == (first,)

    def test_what_comes_back_is_a_version_of_its_own(self, store: ObjectStore) -> None:
        made = [put(store, a_file(1, text)) for text in ("a", "b", "a")]
        assert made[0].object_hash == made[2].object_hash
        assert [version.number for version in made] == [1, 2, 3]

    def test_deletion_is_a_version_and_the_object_may_come_back(self, store: ObjectStore) -> None:
        named = Draft(id=object_number(1), type="file", content="c", metadata={"path": "/p"}, nickname="name")
        first = put(store, named)
        gone = put(store, deletion(first))
        assert (gone.deleted, gone.content_hash, gone.metadata["path"], gone.number) == (True, None, None, 2)
        assert store.current(first.id) == gone
        assert store.current("name") is None
        assert store.content(first) == "c"
        assert store.objects(Query()) == ()
        assert store.objects(Query(deleted=True)) == (gone,)
        back = put(store, named)
        assert store.objects(Query()) == (back,)
        assert store.current("name") == back

    def test_objects_are_locked_as_their_type_says_or_they_themselves(self, store: ObjectStore) -> None:
        drafts = [Draft(id=object_number(place), type=type_) for place, type_ in enumerate(("chat", "file"))]
        drafts.append(Draft(id=object_number(9), type="file", locked=True, view=("id", "extra")))
        made = [put(store, draft) for draft in drafts]
        assert [version.locked for version in made] == [True, False, True]
        assert [version.view for version in store.log()] == [None, None, ("id", "extra")]

    def test_who_wrote_is_told_and_does_not_make_a_difference(self, store: ObjectStore) -> None:
        writer = Writer("watcher", "moved \0", "session \ud800")
        outcome = store.write(Write("one", a_file(1), 1.0, writer=writer))
        assert isinstance(outcome, Written)
        assert outcome.version.writer == writer
        assert store.log()[0].writer == writer
        assert send(store, a_file(1)) == Written(outcome.version, "unchanged")

    def test_nothing_lost_is_needed_and_nothing_needed_is_forgotten(self, store: ObjectStore) -> None:
        put(store, a_file(1, "one"))
        put(store, Draft(id=object_number(1), type="file", content="two", additional={"summary": "three"}))
        put(store, Draft(id=object_number(2), type="file"))
        needed = sorted(ContentHash.of(data) for data in (b"one", b"two", b'"three"'))
        assert list(store.contents()) == needed


class WriteContract:
    """Writes: what is decided, in which order, and that what is refused leaves nothing."""

    def test_a_request_sent_again_is_answered_as_before(self, store: ObjectStore) -> None:
        write = Write("one", a_file(1), 1.0, NEW)
        first = store.write(write)
        put(store, a_file(1, "later"))
        assert isinstance(first, Written)
        assert store.write(write) == Written(first.version, "created", repeated=True)
        assert len(store.log()) == 2

    def test_a_request_that_changed_nothing_is_remembered_too(self, store: ObjectStore) -> None:
        first = put(store, a_file(1))
        write = Write("same", a_file(1), 2.0)
        assert store.write(write) == Written(first, "unchanged")
        put(store, a_file(1, "later"))
        assert store.write(write) == Written(first, "unchanged", repeated=True)

    def test_a_request_with_another_draft_is_refused_before_all_else(self, store: ObjectStore) -> None:
        store.write(Write("one", a_file(1), 1.0))
        other = Draft(id=object_number(1), type="note", content="x", nickname="taken")
        put(store, Draft(id=object_number(2), type="note", nickname="taken"))
        assert refused(store.write(Write("one", other, 1.0, 77))) == "request_reused"

    def test_a_session_needs_its_id_before_all_else(self, store: ObjectStore) -> None:
        store.write(Write("one", a_file(1), 1.0))
        for fields in ({}, {"session_id": " \t"}, {"session_id": None}, {"session_id": 3}):
            draft = Draft(id=object_number(3), type="session", metadata=fields)
            assert refused(store.write(Write("one", draft, 1.0, 5))) == "invalid_session_id"
        assert store.current(object_number(3)) is None
        put(store, Draft(id=object_number(3), type="session", metadata={"session_id": "s"}))

    def test_a_write_that_expects_another_version_is_refused(self, store: ObjectStore) -> None:
        assert refused(send(store, a_file(1), expected=1)) == "version_conflict"
        first = put(store, a_file(1))
        for expected in (NEW, 2):
            assert send(store, a_file(1, "x"), expected=expected) == Refused("version_conflict", first)
        second = send(store, a_file(1, "x"), expected=1)
        assert isinstance(second, Written)
        assert second.version.number == 2
        # the conflict counts although the draft would change nothing
        assert refused(send(store, a_file(1, "x"), expected=1)) == "version_conflict"

    def test_an_object_keeps_its_type(self, store: ObjectStore) -> None:
        put(store, a_file(1))
        note = Draft(id=object_number(1), type="note", content="text")
        assert refused(send(store, note)) == "type_changed"
        assert refused(send(store, note, expected=4)) == "version_conflict"

    def test_a_nickname_has_one_holder_at_a_time(self, store: ObjectStore) -> None:
        def named(number: int, nickname: str | None) -> Draft:
            return Draft(id=object_number(number), type="note", nickname=nickname)

        first = put(store, named(1, "plan \\ é"))
        assert refused(send(store, named(2, "plan \\ é"))) == "nickname_taken"
        assert store.current("plan \\ é") == first
        put(store, named(1, None))
        second = put(store, named(2, "plan \\ é"))
        assert store.current("plan \\ é") == second
        assert refused(send(store, named(1, "plan \\ é"))) == "nickname_taken"

    def test_an_id_goes_before_a_nickname(self, store: ObjectStore) -> None:
        put(store, Draft(id=object_number(1), type="note", nickname="call-1"))
        call = put(store, Draft(id="call-1", type="toolcall", content="out"))
        assert store.current("call-1") == call

    def test_what_was_refused_left_nothing_and_may_be_sent_again(self, store: ObjectStore) -> None:
        write = Write("one", Draft(id=object_number(1), type="file", metadata={"to": Reference("x")}), 1.0, 1)
        assert refused(store.write(write)) == "version_conflict"
        assert store.log() == ()
        assert store.backlinks("x") == ()
        assert store.current(object_number(1)) is None
        first = store.write(Write("one", a_file(1), 1.0, NEW))
        assert isinstance(first, Written)
        assert first.version.sequence == 1

    @pytest.mark.parametrize("problem", [ValueError("stop"), OSError("stop"), KeyboardInterrupt("stop")])
    def test_what_the_caller_raises_in_between_comes_out_as_it_is(
        self, store: ObjectStore, problem: BaseException
    ) -> None:
        with pytest.raises(type(problem), match="stop"):
            _write_and_raise(store, problem)
        assert store.log() == ()

    def test_what_is_done_exclusively_is_kept_whole_or_not_at_all(self, store: ObjectStore) -> None:
        first = put(store, Draft(id=object_number(1), type="file", nickname="n", metadata={"to": Reference("x")}))
        with pytest.raises(ValueError, match="stop"):
            _write_and_raise(store, ValueError("stop"))
        assert store.log() == (first,)
        assert store.current("n") == first
        assert len(store.backlinks("x")) == 1
        assert store.objects(Query(where={"path": "/moved"})) == ()
        with store.exclusive():
            put(store, a_file(1, "kept"))
            second = store.write(Write("lost too", a_file(2, "another"), 1.0))
        assert isinstance(second, Written)
        assert (second.version.sequence, second.repeated) == (3, False)


def _write_and_raise(store: ObjectStore, problem: BaseException) -> None:
    with store.exclusive():
        put(store, a_file(1, "lost", path="/moved"))
        store.write(Write("lost too", a_file(2), 1.0))
        raise problem


class ReferenceContract:
    """References: where they stand, what they mean now, who refers to what."""

    def test_references_stand_anywhere_and_are_listed_by_their_place(self, store: ObjectStore) -> None:
        to = [Reference(f"t{number}") for number in range(14)]
        version = put(
            store,
            Draft(
                id=object_number(1),
                type="chat",
                metadata={"links": to[:11], "a/b": {"~": to[11]}},
                additional={"turns": [{"steps": [{"call": to[12]}]}]},
                provenance=_derived(to[13]),
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
        assert store.resolve(elsewhere) == Unresolved(elsewhere, "no such object")
        target = put(store, Draft(id=object_number(1), type="note", nickname="plan"))
        assert [link.resolved for link in store.references(version)] == [True, True]
        assert store.resolve(elsewhere) == Resolved(elsewhere, target, "id")
        assert store.resolve(Reference("plan")) == Resolved(Reference("plan"), target, "nickname")

    def test_dynamic_means_the_newest_and_static_the_one_it_was_made_for(self, store: ObjectStore) -> None:
        made = [put(store, a_file(1, text), at=at) for at, text in ((1.0, "a"), (2.0, "b"), (3.0, "c"))]
        dynamic = Reference(object_number(1))
        assert store.resolve(dynamic) == Resolved(dynamic, made[2], "id")
        for version in made:
            assert store.resolve(version.static()) == Resolved(version.static(), version, "time")

    def test_a_static_reference_with_a_wrong_time_is_found_by_its_hashes(self, store: ObjectStore) -> None:
        made = [put(store, a_file(1, text), at=at) for at, text in ((5.0, "a"), (5.0, "b"), (2.0, "c"))]
        first = made[0].static()
        assert store.resolve(first) == Resolved(first, made[0], "hash")
        assert made[1].pin().at == made[0].pin().at
        early = Reference(
            object_number(1), Pin(0.5, made[1].object_hash, made[1].metadata_view_hash, made[1].content_hash)
        )
        assert store.resolve(early) == Resolved(early, made[1], "hash")

    def test_of_versions_with_the_same_hashes_a_wrong_time_leads_to_the_newest(self, store: ObjectStore) -> None:
        made = [put(store, a_file(1, text), at=5.0) for text in ("a", "b", "a", "c")]
        assert made[0].pin() == made[2].pin()
        assert store.resolve(made[0].static()) == Resolved(made[0].static(), made[2], "hash")

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
        assert {one: store.resolve(one) for one in cases} == {one: Unresolved(one, why) for one, why in cases.items()}

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

        def told(**wanted: object) -> list[tuple[int, str, Reference]]:
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
        assert told() == newest
        assert told(ever=True) == newest + older
        assert told(pinned=target.object_hash) == [newest[1]]
        assert told(pinned=target.object_hash, ever=True) == [newest[1], older[2]]
        assert told(pinned=ContentHash.of(b"none")) == []
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
    """Queries: newest versions by what their metadata says."""

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

    def test_long_and_awkward_values_are_found(self, store: ObjectStore) -> None:
        texts = ["/" + "d" * 5_000 + "/a", "/" + "d" * 5_000 + "/b", "zero \0 \ud800 \\", 'quote "', "ü/%_", "ü~\x7f"]
        made = [put(store, a_file(number, path=text)) for number, text in enumerate(texts)]
        for text, version in zip(texts, made, strict=True):
            assert store.objects(Query(where={"path": text})) == (version,)
        assert store.objects(Query(under=("path", "/" + "d" * 600))) == (made[1], made[0])
        assert store.objects(Query(under=("path", "ü"))) == (made[5], made[4])
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


class ObjectStoreContract(VersionContract, WriteContract, ReferenceContract, QueryContract):
    """What every ObjectStore owes its callers."""


def _derived(parent: Reference) -> Provenance:
    return Provenance("somewhere", "agent", (parent,))
