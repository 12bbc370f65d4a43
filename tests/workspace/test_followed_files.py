import os
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagein.errors import BadInput, StoreError
from pagein.model.references import Reference
from pagein.model.values import Fields
from pagein.model.versions import Version
from pagein.model.writes import Outcome, Query, Write
from pagein.policy.file_moves import FilePlace, moves
from pagein.store.memory.memory_store import MemoryStore
from pagein.store.random_ids import RandomIds
from pagein.workspace.folder import Folder
from pagein.workspace.followed_files import FileObjects, FollowOutcome, Rim


class Desk:
    """A folder of real files, and the objects that stand for them."""

    def __init__(self, path: Path, store: MemoryStore | None = None, home: str = "here") -> None:
        self.path = path
        self.store = store if store is not None else MemoryStore()
        ticks = count(1)
        self.files = FileObjects(Folder(str(path)), Rim(self.store, lambda: float(next(ticks)), RandomIds(), home))

    def put(self, name: str, text: str | bytes = "text\n") -> str:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(file)

    def touch(self, name: str, text: str | bytes = "text\n") -> Version:
        version = self.files.touch(self.put(name, text))
        assert version is not None
        return version

    def move(self, old: str, new: str) -> None:
        (self.path / new).parent.mkdir(parents=True, exist_ok=True)
        (self.path / old).rename(self.path / new)

    def now(self, version: Version) -> Version:
        current = self.store.current(version.id)
        assert current is not None
        return current

    def at(self, name: str) -> Version | None:
        found = self.store.objects(Query(where={"path": str(self.path / name)}))
        return found[0] if found else None


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    folder = tmp_path / "work"
    folder.mkdir()
    return Desk(folder)


def deeds(done: list[FollowOutcome]) -> list[tuple[str, str | None]]:
    return [(one.deed, str(one.version.metadata["path"]) if one.version.metadata["path"] else None) for one in done]


# --- what becomes an object ---


def test_a_file_that_is_touched_becomes_an_object(desk: Desk) -> None:
    version = desk.touch("src/a.py", "x = 1\n")
    assert (version.type, version.number, version.chars) == ("file", 1, 6)
    assert version.metadata["path"] == str(desk.path / "src/a.py")
    assert (version.metadata["file_type"], version.metadata["size"]) == ("python", 6)
    assert desk.store.content(version) == "x = 1\n"
    assert version.nickname is None


def test_touching_it_again_makes_a_version_only_where_it_changed(desk: Desk) -> None:
    first = desk.touch("a.txt", "one")
    assert desk.touch("a.txt", "one").number == 1
    second = desk.touch("a.txt", "two")
    assert (second.id, second.number) == (first.id, 2)


def test_a_file_is_one_object_by_whatever_name_it_is_reached(desk: Desk) -> None:
    first = desk.touch("a.txt")
    (desk.path / "link.txt").symlink_to("a.txt")
    again = desk.files.touch(str(desk.path / "link.txt"))
    assert again is not None
    assert again.id == first.id


def test_binary_files_have_no_content_and_are_followed_by_hash(desk: Desk) -> None:
    version = desk.touch("a.bin", b"\xff\xfe\x00")
    assert desk.store.content(version) is None
    assert version.metadata["file_type"] == "binary"
    desk.put("a.bin", b"\xff\xfe\x01")
    assert deeds(desk.files.look_again()) == [("changed", str(desk.path / "a.bin"))]
    zeros = desk.touch("a.mp4", b"\x00" * 64)
    assert (desk.store.content(zeros), zeros.metadata["file_type"]) == (None, "binary"), (
        "zero bytes are UTF-8, and no text"
    )
    assert desk.touch("a.png", b"\x89PNG\r\n\x1a\n").metadata["media_type"] == "image/png"


def test_a_file_that_is_too_large_is_known_without_its_content(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagein.workspace.followed_files._LARGEST", 10)
    small = Desk(desk.path, desk.store)
    version = small.touch("big.txt", "x" * 11)
    assert (version.chars, version.content_hash, version.metadata["size"]) == (0, None, 11)
    small.put("big.txt", "y" * 11)
    assert [one.deed for one in small.files.look_again()] == ["changed"]


@pytest.mark.parametrize("name", [".env", ".env.local", "deploy.pem", "id_rsa", ".npmrc"])
def test_what_must_not_be_stored_never_becomes_an_object(desk: Desk, name: str) -> None:
    path = desk.put(name, "SECRET=1")
    assert desk.files.touch(path) is None
    assert desk.files.discover([path]) == []
    (desk.path / "harmless.txt").symlink_to(name)
    assert desk.files.touch(str(desk.path / "harmless.txt")) is None
    assert list(desk.store.names()) == []


def test_a_file_that_is_not_there_is_said_in_the_hosts_words(desk: Desk) -> None:
    with pytest.raises(BadInput, match="ENOENT"):
        desk.files.touch(str(desk.path / "none.txt"))


def test_a_listed_file_is_known_by_name_and_never_replaces_what_is_known(desk: Desk) -> None:
    known = desk.touch("a.txt", "content")
    [first, second] = desk.files.discover([str(desk.path / "a.txt"), desk.put("b.txt", "unread")])
    assert (first.id, first.number) == (known.id, 1)
    assert (second.metadata["unread"], desk.store.content(second)) == (True, None)
    assert desk.files.look_again() == []
    read = desk.touch("b.txt", "unread")
    assert (read.id, read.number) == (second.id, 2)
    assert "unread" not in read.metadata
    assert desk.store.content(read) == "unread"


# --- what happens to them ---


def test_versions_tell_whether_somebody_wrote_them_or_they_were_found(desk: Desk) -> None:
    version = desk.touch("a.txt", "one")
    assert version.writer.kind == "client"
    desk.put("a.txt", "two")
    desk.files.look_again()
    assert desk.now(version).writer.kind == "watcher"


def test_changes_while_nobody_watched_are_found_by_hash_and_not_by_clock(desk: Desk) -> None:
    changed, same = desk.touch("a.txt", "one"), desk.touch("b.txt", "two")
    about = (desk.path / "a.txt").stat()
    desk.put("a.txt", "ONE")
    os.utime(desk.path / "a.txt", ns=(about.st_atime_ns, about.st_mtime_ns))
    os.utime(desk.path / "b.txt")
    assert deeds(desk.files.look_again()) == [("changed", str(desk.path / "a.txt"))]
    assert desk.store.content(desk.now(changed)) == "ONE"
    assert desk.now(same).number == 1
    assert desk.files.look_again() == []


def test_deletion_is_a_version_and_the_history_stays(desk: Desk) -> None:
    version = desk.touch("a.txt", "one")
    (desk.path / "a.txt").unlink()
    assert deeds(desk.files.look_again()) == [("deleted", None)]
    gone = desk.now(version)
    assert (gone.number, gone.deleted, gone.content_hash, gone.metadata["path"]) == (2, True, None, None)
    assert desk.store.content(desk.store.history(version.id)[0]) == "one"
    assert desk.files.look_again() == []


def test_a_file_that_moves_is_the_same_object(desk: Desk) -> None:
    version = desk.touch("a.txt", "one")
    desk.move("a.txt", "deep/er/b.txt")
    [moved] = desk.files.look_again()
    assert (moved.deed, moved.before, moved.version.id) == ("moved", str(desk.path / "a.txt"), version.id)
    now = desk.now(version)
    assert (now.number, now.content_hash) == (2, version.content_hash)
    assert now.metadata["path"] == str(desk.path / "deep/er/b.txt")


def test_a_folder_that_moves_takes_its_files_along(desk: Desk) -> None:
    ids = {name: desk.touch(f"old/{name}", f"text of {name}").id for name in ("a", "b", "sub/c")}
    desk.move("old", "new")
    done = desk.files.news([str(desk.path / "old"), str(desk.path / "new")]).done
    assert {one.deed for one in done} == {"moved"}
    for name, known in ids.items():
        found = desk.at(f"new/{name}")
        assert found is not None
        assert found.id == known


def test_files_with_equal_content_are_told_apart_by_their_names(desk: Desk) -> None:
    first, second = desk.touch("one/a.txt", "same"), desk.touch("two/b.txt", "same")
    desk.move("one/a.txt", "x/a.txt")
    desk.move("two/b.txt", "x/b.txt")
    assert len(desk.files.look_again()) == 2
    assert desk.now(first).metadata["path"] == str(desk.path / "x/a.txt")
    assert desk.now(second).metadata["path"] == str(desk.path / "x/b.txt")


def test_an_empty_file_elsewhere_is_not_the_one_that_is_gone(desk: Desk) -> None:
    empty = desk.touch("a/one.py", "")
    (desk.path / "a/one.py").unlink()
    desk.put("b/two.py", "")
    assert [one.deed for one in desk.files.look_again()] == ["deleted"]
    kept = desk.touch("a/__init__.py", "")
    desk.move("a/__init__.py", "c/__init__.py")
    assert [one.version.id for one in desk.files.look_again()] == [kept.id]
    assert empty.id != kept.id


def test_a_copy_is_another_object(desk: Desk) -> None:
    version = desk.touch("a.txt", "one")
    copy = desk.touch("b.txt", "one")
    assert copy.id != version.id
    assert desk.files.look_again() == []


def test_a_note_that_names_itself_is_the_same_wherever_it_lies_and_whatever_it_says(desk: Desk) -> None:
    note = desk.touch("a.md", "---\nid: n-7\n---\nold text\n")
    (desk.path / "a.md").unlink()
    desk.put("sub/b.md", "---\nid: n-7\n---\nquite another text\n")
    assert [(one.deed, one.version.id) for one in desk.files.look_again()] == [("moved", note.id)]


def test_a_file_that_comes_back_goes_on_as_the_object_it_was(desk: Desk) -> None:
    version = desk.touch("a.txt", "one")
    (desk.path / "a.txt").unlink()
    desk.files.look_again()
    desk.put("a.txt", "two")
    done = desk.files.news([str(desk.path / "a.txt")]).done
    assert [(one.deed, one.version.id, one.version.number) for one in done] == [("returned", version.id, 3)]


def test_a_move_that_is_seen_in_two_halves_is_still_a_move(desk: Desk) -> None:
    for halves in (("a", "b"), ("b", "a")):
        name = "-".join(halves)
        version = desk.touch(f"{name}/a", f"text {name}")
        desk.move(f"{name}/a", f"{name}/b")
        for half in halves:
            desk.files.news([str(desk.path / name / half)])
        assert desk.now(version).metadata["path"] == str(desk.path / name / "b")
        assert not desk.now(version).deleted


def test_a_file_that_is_gone_for_a_moment_is_not_deleted(desk: Desk) -> None:
    version = desk.touch("a.txt", "one")
    (desk.path / "a.txt").unlink()
    news = desk.files.news([str(desk.path / "a.txt")], patient=True)
    assert (news.done, news.doubtful) == ([], (str(desk.path / "a.txt"),))
    assert desk.now(version).number == 1


def test_a_file_that_is_moved_to_a_name_that_must_not_be_stored_is_gone(desk: Desk) -> None:
    version = desk.touch("settings.txt", "TOKEN=1")
    desk.move("settings.txt", ".env")
    assert [one.deed for one in desk.files.look_again()] == ["deleted"]
    desk.put(".env", "TOKEN=2")
    assert desk.files.news([str(desk.path / ".env")]).done == []
    assert desk.now(version).number == 2


def test_files_that_cannot_be_looked_at_are_left_alone(desk: Desk) -> None:
    version = desk.touch("a.txt", "one")
    desk.path.rename(desk.path.with_name("elsewhere"))
    assert desk.files.look_again() == []
    desk.path.write_text("a file where the folder was")
    assert desk.files.look_again() == []
    assert desk.now(version).number == 1


def test_files_that_nobody_touched_stay_unknown(desk: Desk) -> None:
    assert desk.files.news([desk.put("a.txt"), desk.put("deep/b.txt")]).done == []
    assert desk.store.objects(Query()) == ()


def test_another_machine_on_the_same_store_has_files_of_its_own(desk: Desk) -> None:
    version = desk.touch("a.txt", "one")
    other = Desk(desk.path, desk.store, home="there")
    (desk.path / "a.txt").unlink()
    assert other.files.look_again() == []
    assert desk.now(version).number == 1


def test_what_others_said_about_a_file_stays_when_it_changes(desk: Desk) -> None:
    from dataclasses import replace

    version = desk.touch("a.txt", "one")
    said = replace(
        version.draft("one"), metadata=Fields({**version.metadata, "short_summary": "a file"}), nickname="my file"
    )
    desk.store.write(Write("x", said, 99.0))
    desk.put("a.txt", "two")
    [done] = desk.files.look_again()
    assert (done.version.metadata["short_summary"], done.version.nickname) == ("a file", "my file")


class _Contested(MemoryStore):
    """A store in which somebody else is always a little faster, a few times."""

    def __init__(self) -> None:
        super().__init__()
        self.rivals = 0

    def write(self, write: Write) -> Outcome:
        from dataclasses import replace

        if self.rivals and write.expected:
            self.rivals -= 1
            rival = replace(write.draft, content=f"rival {self.rivals}")
            super().write(Write(f"rival {self.rivals}", rival, write.at))
        return super().write(write)


def test_two_writers_of_one_file_lose_nothing(tmp_path: Path) -> None:
    store = _Contested()
    desk = Desk(tmp_path, store)
    version = desk.touch("a.txt", "one")
    desk.put("a.txt", "two")
    store.rivals = 2
    desk.files.look_again()
    assert [store.content(one) for one in store.history(version.id)] == ["one", "rival 1", "rival 0", "two"]
    desk.put("a.txt", "three")
    store.rivals = 99
    with pytest.raises(StoreError, match="others change it"):
        desk.files.look_again()


# --- notes ---


def test_a_note_says_in_its_metadata_what_its_text_says(desk: Desk) -> None:
    other = desk.touch("Other.md", "text")
    note = desk.touch(
        "sub/Plan.md", "---\ntags: [x]\nup: '[[Other]]'\n---\n# Plan #y\nsee [[Other#Part|that]] and [[Not yet]]\n"
    )
    assert (note.type, note.nickname, note.metadata["title"]) == ("note", "Plan", "Plan #y")
    assert note.metadata["tags"] == ("x", "y")
    found = [(link.path, link.reference.target, link.resolved) for link in desk.store.references(note)]
    assert found == [
        ("/metadata/links/0/to", other.id, True),
        ("/metadata/links/1/to", other.id, True),
        ("/metadata/links/2/to", "Not yet", False),
    ]
    link = note.metadata["links"][1]  # type: ignore[index]
    assert isinstance(link, Fields)
    assert dict(link) == {"to": Reference(other.id), "text": "Other", "headings": ("Part",), "alias": "that", "line": 6}
    assert [one.source.id for one in desk.store.backlinks(other.id)] == [note.id, note.id]


def test_a_link_to_a_note_that_is_not_there_heals_when_it_comes(desk: Desk) -> None:
    note = desk.touch("Plan.md", "[[Later]]")
    assert [link.resolved for link in desk.store.references(note)] == [False]
    later = desk.touch("deep/Later.md", "here I am")
    assert [link.resolved for link in desk.store.references(note)] == [True]
    assert [one.source.id for one in desk.store.backlinks(later.id)] == [note.id]


def test_links_by_path_mean_files_and_survive_their_moves(desk: Desk) -> None:
    code = desk.touch("src/a.py", "x")
    guide = desk.touch("docs/guide.md", "g")
    note = desk.touch("docs/Plan.md", "[[src/a.py]] [code](../src/a.py) [[guide]] [g](guide.md) [[docs/guide]]")
    targets = [link.reference.target for link in desk.store.references(note)]
    assert targets == [code.id, code.id, guide.id, guide.id, guide.id]
    desk.move("docs/guide.md", "docs/manual.md")
    desk.files.look_again()
    assert desk.now(guide).nickname == "manual"
    assert all(link.resolved for link in desk.store.references(note))


def test_a_link_means_the_note_near_it_before_one_of_that_nickname_elsewhere(desk: Desk) -> None:
    elsewhere, near = desk.touch("a/Plan.md", "1"), desk.touch("b/Plan.md", "2")
    assert elsewhere.nickname == "Plan"
    here = desk.touch("b/deep/note.md", "[[Plan]]")
    far = desk.touch("c/note.md", "[[Plan]]")
    assert [link.reference.target for link in desk.store.references(here)] == [near.id]
    assert [link.reference.target for link in desk.store.references(far)] == [elsewhere.id]


def test_two_notes_of_one_name_do_not_share_it(desk: Desk) -> None:
    first, second = desk.touch("a/Plan.md", "1"), desk.touch("b/Plan.md", "2")
    assert (first.nickname, second.nickname) == ("Plan", None)
    (desk.path / "a/Plan.md").unlink()
    desk.files.look_again()
    desk.put("b/Plan.md", "3")
    desk.files.look_again()
    assert desk.now(second).nickname == "Plan"


def test_a_note_with_strange_frontmatter_is_stored(desk: Desk) -> None:
    note = desk.touch("a.md", "---\n$ref: x\nid: [1]\nn: 99999999999999999999\ndeep: {a: [b, {c: null}]}\n---\n")
    assert note.metadata["frontmatter"] == note.metadata["frontmatter"]
    broken = desk.touch("b.md", "---\na: [\n---\ntext")
    assert "no YAML" in str(broken.metadata["problem"])


# --- the law: whatever happens to the files, the objects end up saying what is there ---


_names = st.sampled_from(["a.txt", "b.txt", "d/a.txt", "d/c.md", "e/f/a.txt"])
_contents = st.sampled_from(["", "one", "two", "---\nid: n1\n---\n", "[[a]] #t"])
_steps = st.one_of(
    st.tuples(st.just("put"), _names, _contents),
    st.tuples(st.just("move"), _names, _names),
    st.tuples(st.just("unlink"), _names, st.just("")),
    st.tuples(st.just("touch"), _names, st.just("")),
    st.tuples(st.just("look"), st.just(""), st.just("")),
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(_steps, max_size=15), by_event=st.booleans())
def test_objects_end_up_saying_what_is_there(
    tmp_path_factory: pytest.TempPathFactory, *, steps: list[tuple[str, str, str]], by_event: bool
) -> None:
    desk = Desk(tmp_path_factory.mktemp("work"))
    touched: set[str] = set()
    for step, name, other in steps:
        paths = _done(desk, step, name, other)
        if step == "touch" and paths:
            touched.add(name)
        if by_event and paths:
            desk.files.news(paths)
    desk.files.look_again()
    for version in desk.files.known_files():
        path = Path(str(version.metadata["path"]))
        assert path.read_text() == desk.store.content(version)
    for name in touched:
        if (desk.path / name).exists() and not any(step in ("move", "unlink") for step, _, _ in steps):
            assert desk.at(name) is not None
    assert desk.files.look_again() == []


def _done(desk: Desk, step: str, name: str, other: str) -> list[str]:
    file = desk.path / name
    if step == "put":
        desk.put(name, other)
        return [str(file)]
    if not name or not file.exists():
        if step == "look":
            desk.files.look_again()
        return []
    if step == "move":
        desk.move(name, other)
        return [str(file), str(desk.path / other)]
    if step == "unlink":
        file.unlink()
    else:
        desk.files.touch(str(file))
    return [str(file)]


@given(
    gone=st.lists(
        st.tuples(_names, st.sampled_from("xyz"), st.sampled_from([None, "1", "2"])), unique_by=lambda one: one[0]
    ),
    come=st.lists(
        st.tuples(_names, st.sampled_from("xyz"), st.sampled_from([None, "1", "2"])), unique_by=lambda one: one[0]
    ),
)
def test_a_move_joins_each_file_to_one_other_at_most(
    gone: list[tuple[str, str, str | None]], come: list[tuple[str, str, str | None]]
) -> None:
    old = [FilePlace(f"old/{path}", digest, 1, name) for path, digest, name in gone]
    new = [FilePlace(f"new/{path}", digest, 1, name) for path, digest, name in come]
    found = moves(old, new)
    assert len(set(found.values())) == len(found)
    assert found == moves(old[::-1], new[::-1])
    by_path = {file.path: file for file in (*old, *new)}
    for before, after in found.items():
        first, second = by_path[before], by_path[after]
        assert first.digest == second.digest or (first.note_id is not None and first.note_id == second.note_id)
