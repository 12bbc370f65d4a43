"""The contract of every ObjectStore about versions and writes, as tests."""

# ruff: noqa: S101, PLR2004 -- these are tests that ship, with literal expectations

from dataclasses import replace

import pytest

from pagein.errors import MissingBlob
from pagein.model.names import ContentHash
from pagein.model.references import Reference
from pagein.model.values import canonical, frozen_fields
from pagein.model.versions import Draft, Writer, deletion
from pagein.model.writes import NEW, Query, Write, WriteRefusal, Written
from pagein.ports import ObjectStore
from pagein.testing.object_drafts import HARD_FIELDS, HARD_TEXTS, a_file, object_number, put, refusal_reason, send


class VersionContract:
    """Versions: a written version can be read back for ever, in order."""

    @pytest.mark.parametrize("content", HARD_TEXTS, ids=range(len(HARD_TEXTS)))
    def test_content_comes_back_as_it_was(self, store: ObjectStore, content: str | None) -> None:
        version = put(store, a_file(1, content))
        assert store.content(version) == content
        assert version.chars == len(content or "")
        assert (version.content_hash is None) == (content is None)
        assert store.current(version.id) == version

    def test_many_contents_are_loaded_in_order_with_a_failure_for_a_missing_one(self, store: ObjectStore) -> None:
        versions = [
            put(store, a_file(number, text)) for number, text in enumerate(("one\n", "two\n" * 99, "", "one\n"))
        ]
        names = [one.content_hash for one in versions if one.content_hash is not None]
        assert list(store.load(names)) == [b"one\n", b"two\n" * 99, b"", b"one\n"]
        missing, known = store.load([ContentHash.of(b"never stored"), names[0]])
        assert isinstance(missing, MissingBlob)
        assert known == b"one\n"
        assert list(store.load([])) == []

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

    def test_a_carried_field_stays_as_it_was_with_its_references(self, store: ObjectStore) -> None:
        target = put(store, a_file(2))
        page = {"to": Reference(target.id)}
        first = put(store, Draft(id=object_number(1), type="chat", additional={"a/1": page, "b": "1"}))
        carried = Draft(
            id=object_number(1), type="chat", additional={"b": "2", "c": page}, carried={"a/1": first.additional["a/1"]}
        )
        second = put(store, carried)
        whole = Draft(id=object_number(3), type="chat", additional={"a/1": page, "b": "2", "c": page})
        assert second.additional == put(store, whole).additional
        assert canonical(store.additional(second, "a/1")) == canonical(frozen_fields(page))
        assert [link.path for link in store.references(second)] == ["/additional/a~11/to", "/additional/c/to"]
        assert [link.path for link in store.references(first)] == ["/additional/a~11/to"]
        without = Draft(id=object_number(1), type="chat", carried={"a/1": second.additional["a/1"]})
        assert [link.path for link in store.references(put(store, without))] == ["/additional/a~11/to"]
        third = put(store, Draft(id=object_number(1), type="chat", additional={"a/1": "gone"}))
        assert store.references(third) == ()
        assert [link.path for link in store.references(second)] == ["/additional/a~11/to", "/additional/c/to"]

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

    def test_versions_written_out_of_the_order_of_their_times_are_found_by_time(self, store: ObjectStore) -> None:
        made = [put(store, a_file(1, str(place)), at=at) for place, at in enumerate((20.0, 10.0, 30.0, 10.0, 25.0))]
        wanted = {9.0: None, 10.0: made[3], 19.0: made[3], 24.0: made[0], 29.0: made[4], 1e300: made[2]}
        assert {at: store.as_of(object_number(1), at) for at in wanted} == wanted
        assert store.current(object_number(1)) == made[4]
        assert store.latest_versions(object_number(1)) == (made[2], made[4], made[0], made[3], made[1])
        assert store.latest_versions(object_number(1), 2) == (made[2], made[4])
        assert store.latest_versions("nobody") == ()

    def test_clocks_that_go_backwards_do_not_change_the_order(self, store: ObjectStore) -> None:
        early, late = put(store, a_file(1, "first"), at=100.0), put(store, a_file(1, "second"), at=50.0)
        assert store.current(early.id) == late
        assert [version.number for version in store.history(early.id)] == [1, 2]
        assert store.as_of(early.id, 60.0) == late
        assert store.as_of(early.id, 100.0) == early

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
        needed = [ContentHash.of(data) for data in (b"one", b"two", b'"three"')]
        assert store.contents() == (frozenset(needed), 3)
        assert store.contents(2) == (frozenset(), 3)
        assert store.contents(3) == (frozenset(), 3)


class WriteContract:
    """Writes: the checks, their order, and no trace of a refused write."""

    def test_a_request_sent_again_is_answered_as_before(self, store: ObjectStore) -> None:
        write = Write("one", a_file(1), 1.0, NEW)
        assert store.answered("one") is None
        first = store.write(write)
        put(store, a_file(1, "later"))
        assert isinstance(first, Written)
        assert store.write(write) == Written(first.version, "created", repeated=True)
        assert store.answered("one") == first.version
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
        assert refusal_reason(store.write(Write("one", other, 1.0, 77))) == "request_reused"

    def test_a_session_needs_its_id_before_all_else(self, store: ObjectStore) -> None:
        store.write(Write("one", a_file(1), 1.0))
        for fields in ({}, {"session_id": " \t"}, {"session_id": None}, {"session_id": 3}):
            draft = Draft(id=object_number(3), type="session", metadata=fields)
            assert refusal_reason(store.write(Write("one", draft, 1.0, 5))) == "invalid_session_id"
        assert store.current(object_number(3)) is None
        put(store, Draft(id=object_number(3), type="session", metadata={"session_id": "s"}))

    def test_a_write_that_carries_a_field_the_newest_version_has_otherwise_is_refused(self, store: ObjectStore) -> None:
        first = put(store, Draft(id=object_number(1), type="chat", additional={"a": "1"}))
        second = put(store, Draft(id=object_number(1), type="chat", additional={"a": "2"}))
        carried = Draft(id=object_number(1), type="chat", carried={"a": first.additional["a"]})
        assert send(store, carried) == WriteRefusal("version_conflict", second)
        assert refusal_reason(send(store, replace(carried, id=object_number(2)))) == "version_conflict"

    def test_a_write_that_expects_another_version_is_refused(self, store: ObjectStore) -> None:
        assert refusal_reason(send(store, a_file(1), expected=1)) == "version_conflict"
        first = put(store, a_file(1))
        for expected in (NEW, 2):
            assert send(store, a_file(1, "x"), expected=expected) == WriteRefusal("version_conflict", first)
        second = send(store, a_file(1, "x"), expected=1)
        assert isinstance(second, Written)
        assert second.version.number == 2
        # the conflict counts although the draft would change nothing
        assert refusal_reason(send(store, a_file(1, "x"), expected=1)) == "version_conflict"

    def test_an_object_keeps_its_type(self, store: ObjectStore) -> None:
        put(store, a_file(1))
        note = Draft(id=object_number(1), type="note", content="text")
        assert refusal_reason(send(store, note)) == "type_changed"
        assert refusal_reason(send(store, note, expected=4)) == "version_conflict"

    def test_a_nickname_has_one_holder_at_a_time(self, store: ObjectStore) -> None:
        def note_with(number: int, nickname: str | None) -> Draft:
            return Draft(id=object_number(number), type="note", nickname=nickname)

        first = put(store, note_with(1, "plan \\ é"))
        assert refusal_reason(send(store, note_with(2, "plan \\ é"))) == "nickname_taken"
        assert store.current("plan \\ é") == first
        put(store, note_with(1, None))
        second = put(store, note_with(2, "plan \\ é"))
        assert store.current("plan \\ é") == second
        assert refusal_reason(send(store, note_with(1, "plan \\ é"))) == "nickname_taken"

    def test_an_id_goes_before_a_nickname(self, store: ObjectStore) -> None:
        put(store, Draft(id=object_number(1), type="note", nickname="call-1"))
        call = put(store, Draft(id="call-1", type="toolcall", content="out"))
        assert store.current("call-1") == call

    def test_what_was_refused_left_nothing_and_may_be_sent_again(self, store: ObjectStore) -> None:
        write = Write("one", Draft(id=object_number(1), type="file", metadata={"to": Reference("x")}), 1.0, 1)
        assert refusal_reason(store.write(write)) == "version_conflict"
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
