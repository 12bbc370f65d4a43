"""References of stored objects, as a model follows them, and as the library gives them."""

from dataclasses import replace

import pytest
from tests.store.search.remembered_sessions import Remembered, answered
from tests.tools.recall_sessions import Room

from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.recall.reference_graph import Selection
from pagein.engine.session import Session
from pagein.errors import HostError, NotRecallable
from pagein.model.links import Resolution
from pagein.model.names import ContentHash
from pagein.model.references import Reference
from pagein.model.versions import Draft, Version
from pagein.model.writes import Query
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.testing.object_drafts import object_number
from pagein.tools.calls import Call
from pagein.tools.catalogue import answer


def ask(to: Session, tool: str, /, **arguments: object) -> ReadResult:
    return answer(to, tool, Call(arguments))


@pytest.fixture
def one(room: Room) -> Remembered:
    """A session with a call that changed a file."""
    store = SqliteStore(room.store)
    one = Remembered(store, "0199-login")
    one.say("make it a day", answered("I look first"))
    one.go_on(one.call("toolu_1", "Bash", {"command": "grep -n expires auth.py"}, "3: expires = 3600", place=1))
    one.file(1, "/w/auth.py", "expires = 3600\n", deed="read")
    one.file(1, "/w/auth.py", "expires = 86400\n")
    store.close()
    return one


def note(one: Remembered, number: int, content: str, *links: tuple[str, Reference], **more: object) -> Version:
    """A note as the notes of a folder are stored."""
    said = tuple({"text": text, "to": to, "line": 1} for text, to in links)
    metadata = {"path": f"/w/n{number}.md", "file_type": "markdown", "links": said}
    return one.put(Draft(id=object_number(7000 + number), type="note", content=content, metadata=metadata, **more))  # type: ignore[arg-type]


def test_a_session_is_told_with_its_title(room: Room, one: Remembered) -> None:
    head = ask(room.session(), "expand", id=one.session).text.split("\n")[0]
    assert head.startswith(f"session {one.session}@")
    assert "session_id=0199-login" in head


def test_the_calls_of_a_chat_are_told_with_the_version_that_it_pinned(room: Room, one: Remembered) -> None:
    session = room.session()
    told = ask(session, "expand", id=one.chat, under="/additional/turns.1.1", type="toolcall")
    [head, line] = told.text.split("\n")
    assert head.startswith(f"chat {one.chat}@2: session_ref=[[{one.session}]], turn_count=1")
    assert line.startswith(
        "/additional/turns.1.1/0/steps/1/toolcall/object -> toolcall toolu_1@1: tool=Bash, args_display="
    )
    assert line.endswith("status=ok (pinned, verified)")
    whole = ask(session, "expand", id=one.chat, type="toolcall", fields=["content", "args"])
    assert "  content:\n3: expires = 3600\n  args:\n{\n" in whole.text
    assert '"command": "grep -n expires auth.py"' in whole.text


def test_what_refers_to_an_object_is_told_backwards(room: Room, one: Remembered) -> None:
    session = room.session()
    told = ask(session, "expand", id="toolu_1", direction="in").text
    assert f"1  chat {one.chat}@2:" in told
    assert f"{one.chat}@2/additional/turns.1.1/0/steps/1/toolcall/object -> toolu_1@1 (pinned)" in told
    far = ask(session, "expand", id=one.session, steps=3).text
    assert f"1  chat {one.chat}@2:" in far
    assert "2  toolcall toolu_1@1:" in far


@pytest.mark.damages_store
def test_a_pinned_version_that_differs_from_its_hashes_is_told(room: Room, one: Remembered) -> None:
    store = SqliteStore(room.store)
    one.store = store
    made = store.current(object_number(9001))
    assert made is not None
    wrong = replace(made.pin(), content=ContentHash.of(b"another"))
    note(one, 1, "see", ("a", Reference(made.id, wrong)), ("b", Reference("no-such-note")), nickname="plan")
    store.close()
    told = ask(room.session(), "expand", id="plan", fields=["content"]).text
    assert f"/metadata/links/0/to -> {made.id}: hashes disagree" in told
    assert "/metadata/links/1/to -> no-such-note: no such object" in told
    assert "86400" not in told


def test_links_of_a_shown_note_are_told_with_what_they_name(room: Room, one: Remembered) -> None:
    store = SqliteStore(room.store)
    one.store = store
    target = note(one, 2, "keep it short\n", nickname="rules")
    text = "See [[rules]] and [[old/plan|the plan]], not [[nowhere]].\nAgain [[rules]].\n"
    note(one, 3, text, ("old/plan", Reference(target.id)), nickname="start")
    store.close()
    told = ask(room.session(), "peek", id="start").text
    shown = f"note {target.id}@1: path=/w/n2.md, file_type=markdown, char_count=14, nickname=rules (newest)"
    assert (
        told == f"{text}\n[[[rules]] is {shown}]\n[[[old/plan]] is {shown}]\n[[[nowhere]] is nowhere: no such object]"
    )


def test_links_of_an_expanded_note_are_told_with_what_they_name(room: Room, one: Remembered) -> None:
    store = SqliteStore(room.store)
    one.store = store
    note(one, 5, "Nothing yet.\n", nickname="ci")
    build = note(
        one, 6, "See [[ci]] and [[gone]].\n", ("ci", Reference("ci")), ("gone", Reference("gone")), nickname="build"
    )
    note(one, 7, "[[build]]\n", ("build", Reference("build")), nickname="index")
    store.close()
    told = ask(room.session(), "expand", id="index", fields=["content"]).text
    assert f"-> note {build.id}@1: " in told
    assert "  content:\nSee [[ci]] and [[gone]].\n\n  [[[ci]] is note " in told
    assert told.endswith("  [[[gone]] is gone: no such object]")


def test_brackets_of_a_script_are_no_links(room: Room, one: Remembered) -> None:
    store = SqliteStore(room.store)
    one.store = store
    note(one, 8, "short\n", nickname="rules")
    one.file(2, "/w/run.sh", "if [[ -n $HOME ]]; then echo [[rules]]; fi\n")
    store.close()
    told = ask(room.session(), "peek", id=object_number(9002)).text
    assert "-n $HOME ]] is" not in told
    assert "[[[rules]] is note " in told


def test_many_references_come_by_pages(room: Room, one: Remembered) -> None:
    store = SqliteStore(room.store)
    one.store = store
    note(one, 4, "many", *((f"n{number}", Reference(f"n{number}")) for number in range(120)), nickname="many")
    store.close()
    session = room.session()
    seen: list[str] = []
    skip: object = 0
    while skip is not None:
        told = ask(session, "expand", id="many", skip=skip)
        seen += [line for line in told.text.split("\n") if " -> " in line]
        skip = told.details["next"]
    assert [line.split(" -> ")[1] for line in seen] == [f"n{number}: no such object" for number in range(120)]


@pytest.mark.usefixtures("one")
def test_what_cannot_be_followed_is_told(room: Room) -> None:
    session = room.session()
    assert "no stored object or version has the name 'nobody'" in ask(session, "expand", id="nobody").text
    assert "no stored object or version" in ask(session, "expand", id="toolu_1@9").text
    assert "direction is one of out, in, both" in ask(session, "expand", id="toolu_1", direction="up").text
    assert "steps is from 1 to 5" in ask(session, "expand", id="toolu_1", steps=9).text
    assert ask(session, "expand").text == "Missing required parameter: id"


def test_the_library_has_the_objects_of_a_store(room: Room, one: Remembered) -> None:
    session = room.session()
    objects = session.objects
    chat = objects.get(one.chat)
    assert objects.get(f"{one.chat}@1").number == 1
    assert [version.number for version in objects.history(one.chat)] == [1, 2]
    assert [version.id for version in objects.find(Query(types=frozenset({"file"})))] == [object_number(9001)]
    file = objects.get(f"{object_number(9001)}@1")
    assert objects.content(file) == "expires = 3600\n"
    assert objects.field(objects.get("toolu_1"), "args") is not None
    calls = objects.select(chat, Selection(types=frozenset({"toolcall"})))
    assert calls == tuple(link for link in objects.references(chat) if link.reference.target == "toolu_1")
    assert [one.values for one in objects.expand(calls)] == [(("content", "3: expires = 3600"),)]
    assert isinstance(objects.resolve(calls[0].reference), Resolution)
    assert {back.source.id for back in objects.backlinks("toolu_1")} == {one.chat}
    assert {node.version.type for node in objects.walk([chat], steps=1).nodes} == {"chat", "toolcall", "session"}
    with pytest.raises(NotRecallable, match="nobody"):
        objects.history("nobody")


def test_a_session_that_stands_alone_has_no_objects(room: Room) -> None:
    from pagein.engine.engine import Engine

    with Engine(blobs=SqliteStore(room.store), counter=room.session()._parts.counter) as engine:
        with pytest.raises(HostError):
            _ = engine.session("x").objects
        assert ask(engine.session("x"), "expand", id="x").is_error
