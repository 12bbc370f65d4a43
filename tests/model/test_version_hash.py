import hashlib
import json
from dataclasses import replace

import pytest

from pagein.errors import BadInput, BadName
from pagein.model.names import ContentHash
from pagein.model.references import Reference
from pagein.model.version_hash import (
    SealedDraft,
    metadata_view,
    object_hash_of,
    pinned_hashes_of,
    version_of,
    view_hash_of,
)
from pagein.model.versions import Draft, Provenance, Version, Writer
from pagein.testing.object_store import HARD_FIELDS, a_file, object_number

pytestmark = pytest.mark.damages_store

WRITER = Writer("system")


def sealed(**changes: object) -> SealedDraft:
    draft = Draft(
        id=object_number(1),
        type="file",
        content="text",
        metadata={"path": "/a", "file_type": "text", "extra": 1},
        additional={"short_summary": "brief"},
        nickname="name",
        provenance=Provenance("/a", "human", (Reference("parent"),)),
    )
    return SealedDraft.of(replace(draft, **changes))  # type: ignore[arg-type]


def version(one: SealedDraft) -> Version:
    return one.version(sequence=3, number=2, at=1.5, writer=WRITER)


def shown(one: SealedDraft) -> dict[str, object]:
    return dict(metadata_view(version(one)))


def test_hashes_are_made_as_the_format_says() -> None:
    # computed here from the words of the specification alone, and not by our own code
    record = {
        "id": object_number(1),
        "type": "file",
        "nickname": "name",
        "locked": False,
        "deleted": False,
        "view": None,
        "provenance": {"origin": "/a", "generator": "human", "parent_refs": [{"$ref": {"id": "parent"}}]},
        "metadata": {"path": "/a", "file_type": "text", "extra": 1},
        "content": hashlib.sha256(b"text").hexdigest(),
        "additional": {"short_summary": hashlib.sha256(b'"brief"').hexdigest()},
    }
    view = [
        ["id", object_number(1)],
        ["type", "file"],
        ["path", "/a"],
        ["file_type", "text"],
        ["char_count", 4],
        ["nickname", "name"],
    ]

    def tagged(tag: str, value: object) -> str:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(f"pagein {tag} 1\n{text}".encode()).hexdigest()

    one = sealed()
    assert one.content_hash is not None
    assert one.content_hash.hex == hashlib.sha256(b"text").hexdigest()
    assert one.object_hash.hex == tagged("object", record)
    assert one.metadata_view_hash.hex == tagged("view", view)


@pytest.mark.parametrize(
    ("change", "view"),
    [
        ({"content": "next"}, False),
        ({"content": "longer text"}, True),
        ({"content": ""}, True),
        ({"metadata": {"path": "/a", "file_type": "text", "extra": 2}}, False),
        ({"metadata": {"path": "/b", "file_type": "text", "extra": 1}}, True),
        ({"additional": {"short_summary": "other"}}, False),
        ({"nickname": None}, True),
        ({"locked": True}, False),
        ({"deleted": True}, True),
        ({"provenance": Provenance("/a", "human")}, False),
        ({"view": ("id", "extra")}, True),
        ({"type": "note"}, True),
        ({"id": object_number(2)}, True),
    ],
)
def test_what_changes_shows_in_the_hashes_that_cover_it(change: dict[str, object], view: bool) -> None:  # noqa: FBT001 -- a column
    before, after = sealed(), sealed(**change)
    assert before.object_hash != after.object_hash
    assert (before.metadata_view_hash != after.metadata_view_hash) == view
    assert (before.content_hash != after.content_hash) == ("content" in change)


def test_no_hash_depends_on_place_in_time_or_writer() -> None:
    one = sealed()
    early = one.version(sequence=1, number=1, at=0.0, writer=Writer())
    late = version(one)
    for name in ("content_hash", "metadata_view_hash", "object_hash", "record"):
        assert getattr(early, name) == getattr(late, name)
    assert late.object_hash == object_hash_of(late.record) == one.object_hash
    assert view_hash_of(late) == late.metadata_view_hash == one.metadata_view_hash


def test_an_empty_content_has_a_hash_and_none_has_none() -> None:
    assert sealed(content="").content_hash == ContentHash.of(b"")
    assert sealed(content=None).content_hash is None


def test_a_view_of_its_own_may_show_a_summary_and_a_default_view_spelled_out_is_the_same() -> None:
    spelled_out = ("id", "type", "path", "file_type", "char_count", "nickname")
    assert sealed(view=spelled_out).metadata_view_hash == sealed().metadata_view_hash
    summary = sealed(view=("short_summary", "content", "missing", "provenance"))
    assert shown(summary)["short_summary"] == ContentHash.of(b'"brief"')
    assert shown(summary)["content"] == ContentHash.of(b"text")
    assert shown(summary)["missing"] is None
    other = sealed(view=("short_summary", "content", "missing", "provenance"), additional={"short_summary": "x"})
    assert summary.metadata_view_hash != other.metadata_view_hash


def test_views_show_what_their_type_says() -> None:
    call = SealedDraft.of(
        Draft(id="call", type="toolcall", metadata={"tool": "ls", "args": {"b": 1, "a": 2}, "status": "ok"})
    )
    assert shown(call) == {
        "id": "call",
        "type": "toolcall",
        "tool": "ls",
        "args_display": '{"a":2,"b":1}',
        "status": "ok",
    }
    assert shown(SealedDraft.of(Draft(id=object_number(1), type="session"))) == {}
    assert list(shown(SealedDraft.of(Draft(id=object_number(1), type="chat")))) == [
        "id",
        "type",
        "session_ref",
        "turn_count",
    ]
    assert list(shown(SealedDraft.of(Draft(id=object_number(1), type="drawing")))) == [
        "id",
        "type",
        "nickname",
        "char_count",
    ]
    assert shown(sealed(deleted=True))["deleted"] is True


def test_a_version_says_what_its_record_says() -> None:
    one = SealedDraft.of(Draft(id=object_number(1), type="artifact", metadata=HARD_FIELDS, additional={"more": 1}))
    read = version_of(one.record, sequence=3, number=2, at=1.5, chars=0, writer=WRITER)
    assert read == version(one)
    assert SealedDraft.of(read.draft(None, {"more": 1})).object_hash == one.object_hash


@pytest.mark.parametrize("record", ["", "[]", "{}", "3", '{"id":1}', a_file(1).id])
def test_what_is_no_record_is_refused(record: str) -> None:
    with pytest.raises(BadInput):
        version_of(record, sequence=1, number=1, at=0.0, chars=0, writer=WRITER)


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": "call"},
        {"type": "no type"},
        {"nickname": ""},
        {"nickname": " blank"},
        {"nickname": "two\nlines"},
        {"nickname": "x" * 201},
        {"metadata": {"id": 1}},
        {"metadata": {"content_hash": 1}},
        {"additional": {"content": "x"}},
        {"additional": {"path": "x"}},
        {"metadata": {"x": object()}},
    ],
)
def test_what_cannot_be_an_object_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises((BadInput, BadName)):
        sealed(**wrong)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"content": None, "additional": {}, "nickname": None},
        {"content": "", "type": "note"},
        {
            "type": "toolcall",
            "id": "toolu_1",
            "metadata": {"tool": "Bash", "args": {"a": [1.5, "\ud800"]}, "status": "ok"},
        },
        {"type": "toolcall", "id": "toolu_1", "metadata": {"tool": "Bash", "args_display": 'ls "é"', "args": "x"}},
        {
            "view": (
                "$ref",
                "$$",
                "text",
                "content",
                "short_summary",
                "provenance",
                "locked",
                "deleted",
                "nobody",
                "view",
            )
        },
        {"view": (), "metadata": HARD_FIELDS},
        {"view": ("$ref", "text", "numbers", "a/b~c", "naïve", "char_count"), "metadata": HARD_FIELDS},
        {"view": ("now",), "metadata": {"now": Reference("elsewhere")}},
        {"deleted": True, "content": None},
        {"deleted": True, "content": None, "view": ("deleted", "path")},
    ],
)
def test_the_hashes_of_a_pin_are_cut_out_of_the_record(changes: dict[str, object]) -> None:
    one = version(sealed(**changes))
    assert pinned_hashes_of(one.record, one.chars) == (view_hash_of(one), one.content_hash)
    assert view_hash_of(one) == one.metadata_view_hash


@pytest.mark.parametrize("record", ["", "[]", "{}", '{"metadata":[]}', '{"id":"a"}'])
def test_nothing_is_cut_out_of_what_is_no_record(record: str) -> None:
    with pytest.raises(BadInput):
        pinned_hashes_of(record, 0)
