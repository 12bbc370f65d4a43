"""The tools and commands for objects: their exact answers, and what the pools are after them."""

import json
from contextlib import closing
from pathlib import Path

import pytest
from tests.tools.recall_sessions import Room

import pagein
from pagein.engine.engine import Settings
from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.errors import BadInput
from pagein.memory.file_sightings import NewNote, journal_notes
from pagein.model.journal_notes import ClientNote, SystemPromptNote
from pagein.model.memory_notes import SessionPlaceNote
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.model.pool_notes import PoolAct, PoolNote
from pagein.policy.layouts.pool_lines import metadata_line
from pagein.policy.pools.pool_values import PoolRules
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.tools import naming_commands, pin_commands, pool_commands
from pagein.tools.calls import Call
from pagein.tools.catalogue import RECALL, answer, guidance, offer_tools
from pagein.tools.pools import POOL_TOOLS


def ask(session: Session, tool: str, **arguments: object) -> ReadResult:
    return answer(session, tool, Call(arguments), pools=True)


def work(session: Session, call_id: str, output: str = "out", tool: str = "bash", arguments: str = "{}") -> None:
    session.append(Message("assistant", (ToolCall(call_id, tool, arguments),)))
    session.append(Message("tool", (ToolResult(call_id, output, tool),)))


def says(session: Session, words: str = "Go on.") -> None:
    session.append(Message("user", (Text(words),)))


def active(session: Session) -> list[str]:
    return [text for _, text in session.pools.active_texts()]


def test_the_tools_of_a_pooled_session_take_the_place_of_the_readers() -> None:
    offered = offer_tools(pools=True)
    assert [one.name for one in offered] == [
        "read",
        "activate",
        "deactivate",
        "pin",
        "unpin",
        *(one.name for one in RECALL),
    ]
    for tool in POOL_TOOLS:
        assert set(tool.schema["required"]) == set(tool.schema["properties"])
        assert tool.description.endswith(".")
    assert "**activate**" in guidance(offered)
    assert "**activate**" not in guidance(offer_tools())


def test_a_read_indexes_lists_and_activates_and_its_answer_holds_no_text(room: Room) -> None:
    file, session = room.put("a.txt", "hello\n"), room.session()
    told = ask(session, "read", path="a.txt")
    object_id = told.details["id"]
    assert told.text == (
        f"{file} is active as {object_id} (6 characters). To see it again later, use activate with this id."
    )
    assert active(session) == ["hello\n"]
    assert "is active already, and unchanged" in ask(session, "read", path="a.txt").text
    room.put("a.txt", "hello you\n")
    assert "is refreshed" in ask(session, "read", path=str(file)).text
    assert active(session) == ["hello you\n"]


def test_the_answer_to_a_read_is_no_text_of_the_file(room: Room) -> None:
    room.put("a.txt", "hello\n")
    session = room.session()
    session.note(ClientNote("pi"))  # whose results of reads are the texts of files
    says(session)
    told = ask(session, "read", path="a.txt")
    work(session, "r", told.text, "read", '{"path":"a.txt"}')
    assert active(session) == ["hello\n"]
    assert [one.type for one in session.pools.state.pool()] == ["file"]
    assert [(one.call_id, one.ids) for one in session.pools.state.window] == [("r", (told.details["id"],))]


def test_a_read_that_fails_indexes_nothing(room: Room) -> None:
    session = room.session()
    told = ask(session, "read", path="gone.txt")
    assert told.is_error
    assert "gone.txt" in told.text
    assert not session.pools.state.index


def test_activation_and_deactivation_answer_in_the_known_words(room: Room) -> None:
    session = room.session()
    says(session)
    work(session, "tc-1", "the output")
    assert ask(session, "deactivate", id="tc-1").text == "Deactivated tc-1"
    assert active(session) == []
    assert ask(session, "activate", id="tc-1").text == "Activated tc-1"
    assert active(session) == ["the output"]
    assert ask(session, "pin", id="tc-1").text == "Pinned tc-1"
    assert ask(session, "unpin", id="tc-1").text == "Unpinned tc-1"
    for tool in ("activate", "deactivate", "pin", "unpin"):
        told = ask(session, tool, id="nothing")
        assert (told.text, told.is_error) == ("Object not found: nothing", True)
        assert ask(session, tool).text == "Missing required parameter: id"


def test_locked_objects_are_denied(room: Room) -> None:
    session = room.session()
    session.note(SystemPromptNote("You fix bugs."))
    says(session)
    work(session, "tc-1")
    session.keep()
    session.recalls.objects.find()
    chats = [one for one in session.objects.find() if one.type in ("chat", "system_prompt", "session")]
    assert {one.type for one in chats} == {"chat", "system_prompt", "session"}
    for one in chats:
        for tool in ("activate", "pin", "deactivate"):
            told = ask(session, tool, id=one.id)
            assert (told.text, told.is_error) == (f"Object is locked: {one.id}", True)
    session.note(PoolNote((PoolAct("index", "c", "chat", "text", "v", 1),)))
    assert ask(session, "deactivate", id="c").text == "Object is locked: c"


def test_a_file_without_text_is_listed_and_cannot_be_active(room: Room) -> None:
    room.put("a.bin", b"\xff\x00\xfe")
    session = room.session()
    told = ask(session, "read", path="a.bin")
    assert (told.text, told.is_error) == ("Content unavailable (non-text file)", True)
    assert ask(session, "activate", id=str(told.details["id"])).text == "Content unavailable (non-text file)"
    assert [one.content for one in session.pools.state.pool()] == ["none"]


def test_m6_what_was_discovered_and_never_read_is_read_by_its_activation(room: Room) -> None:
    room.put("a.txt", "hello\n")
    session = room.session()
    says(session)
    work(session, "tc-1", "a.txt\ngone.txt\n", "ls", '{"path":"."}')
    found = [one for one in session.pools.state.pool() if one.path.endswith("a.txt")]
    assert [one.content for one in found] == ["unread"]
    assert ask(session, "activate", id=found[0].id).text == f"Activated {found[0].id}"
    assert "hello\n" in active(session)
    assert ask(session, "activate", id="gone.txt").is_error


def test_m12_an_empty_file_and_an_empty_output_are_content(room: Room) -> None:
    room.put("empty.txt", "")
    session = room.session()
    says(session)
    work(session, "tc-1", "")
    assert not ask(session, "read", path="empty.txt").is_error
    assert active(session) == ["", ""]


def test_a_file_that_must_not_be_stored_is_shown_by_the_call_alone(room: Room) -> None:
    room.put(".env", "TOKEN=1\n")
    session = room.session()
    assert ask(session, "read", path=".env").text == "TOKEN=1\n"
    assert not session.pools.state.index


def test_an_empty_name_is_the_name_of_nothing(room: Room) -> None:
    session = room.session()
    says(session)
    work(session, "tc-1")
    before = session.pools.sets()
    with pytest.raises(BadInput, match="Object not found"):
        pool_commands.activate(session, "")
    for act in (session.pools.deactivate, session.pools.pin, session.pools.unpin):
        assert act(" ").is_error
    assert session.pools.sets() == before


def test_a_link_to_a_file_that_must_not_be_stored_brings_in_nothing(room: Room) -> None:
    room.put(".env", "PASSWORD=one\n")
    room.put("b.md", "[settings](.env) and [[.env]]\n")
    session = room.session()
    ask(session, "read", path="b.md")
    assert [Path(one.path).name for one in session.pools.state.pool()] == ["b.md"]


def test_links_of_a_file_bring_in_the_metadata_of_what_they_name(room: Room) -> None:
    room.put("texts/b.md", "b\n")
    room.put("a.md", "see [b](texts/b.md), [gone](gone.md) and [[nobody]]\n")
    session = room.session()
    ask(session, "read", path="a.md")
    assert [(Path(one.path).name, one.content) for one in session.pools.state.pool()] == [
        ("a.md", "text"),
        ("b.md", "unread"),
    ]


def test_a_link_between_brackets_means_a_note_beside_its_own_note_first(room: Room) -> None:
    first = room.session("first")
    room.put("elsewhere/m.md", "of another project\n")
    ask(first, "read", path="elsewhere/m.md")
    first.keep()
    assert [one.nickname for one in first.objects.find() if one.type == "note"] == ["m"]
    room.put("texts/m.md", "beside\n")
    room.put("top.md", "top\n")
    room.put("texts/a.md", "[[m]], [[m#Part|again]], [[top]] from the working folder, and [[nobody]]\n")
    session = room.session("second")
    ask(session, "read", path="texts/a.md")
    assert [(one.path.removeprefix(f"{room.folder}/"), one.content) for one in session.pools.state.pool()] == [
        ("texts/a.md", "text"),
        ("texts/m.md", "unread"),
        ("top.md", "unread"),
    ]


def test_an_object_of_an_earlier_session_is_listed_by_the_fields_of_its_view(room: Room) -> None:
    first = room.session("first")
    room.put("plan.md", "# The plan\n#draft\n")
    ask(first, "read", path="plan.md")
    first.keep()
    (note,) = [one for one in first.objects.find() if one.type == "note"]
    with closing(SqliteStore(room.store)) as store:
        naming_commands.view(store, note.id, ("title", "tags", "known"), at=1.0)
    session = room.session("second")
    session.pools.load_metadata(note.id)
    listed = session.pools.state.index[note.id]
    assert metadata_line(listed) == f'- id={note.id} type=note title="The plan" tags="[\\"draft\\"]" known=whole'
    session.keep()
    assert metadata_line(room.session("second").pools.state.index[note.id]) == metadata_line(listed), "after a restart"
    ask(session, "activate", id=note.id)
    assert metadata_line(session.pools.state.index[note.id]).endswith('tags="[\\"draft\\"]" known=whole')
    room.put("plan.md", "# Another plan\n")
    ask(session, "read", path="plan.md")
    assert "title" not in metadata_line(session.pools.state.index[note.id]), "it is not that of the new text"


def test_a_file_is_one_object_of_the_window_under_every_name_that_it_has(room: Room) -> None:
    file, session = room.put("a.txt", "old\n"), room.session()
    with closing(SqliteStore(room.store)) as store:  # as a gateway notes it: the branch does not tell the machine
        journal_notes(store, [NewNote(SessionPlaceNote(session.name, "here", str(room.folder)), 1.0)])
    says(session)
    arguments = json.dumps({"path": str(file), "content": "old\n"})
    work(session, "tc-1", "Written.", "write", arguments)
    session.keep()
    (stored,) = [one for one in session.objects.find() if one.type == "file"]
    known = session.pools.find("a.txt")
    assert known is not None
    assert known.id != stored.id
    for tool, done in (("activate", "Activated"), ("deactivate", "Deactivated"), ("pin", "Pinned")):
        assert ask(session, tool, id=stored.id).text == f"{done} {known.id}"
    file.write_text("new\n")
    assert ask(session, "activate", id=stored.id).text == f"Activated {known.id}"
    assert active(session).count("new\n") == 1
    assert "old\n" not in active(session)


def test_an_object_of_an_earlier_session_is_brought_in_by_its_id(room: Room) -> None:
    first = room.session("first")
    says(first)
    work(first, "toolu_01AbCdEfGh", "from before")
    first.keep()
    first.objects.find()
    session = room.session("second")
    assert session.pools.load_metadata("toolu_01AbCdEfGh").text == "Listed toolu_01AbCdEfGh"
    assert active(session) == []
    assert ask(session, "activate", id="toolu_01AbCdEfGh").text == "Activated toolu_01AbCdEfGh"
    assert active(session) == ["from before"]


def test_m8_the_pools_survive_a_restart_and_belong_to_their_branch(room: Room) -> None:
    room.put("a.txt", "hello\n")
    session = room.session()
    says(session)
    work(session, "tc-1")
    place = session.leaf
    file = str(ask(session, "read", path="a.txt").details["id"])
    ask(session, "pin", id="tc-1")
    session.keep()
    again = room.session()
    assert again.pools.sets() == session.pools.sets() == {
        "active_set": ("tc-1", file), "inactive_set": (), "pinned_set": ("tc-1",)
    }  # fmt: skip
    assert active(again) == ["out", "hello\n"]
    assert again.fork("fork").pools.sets() == again.pools.sets()
    again.move(place)
    assert again.pools.sets() == {"active_set": ("tc-1",), "inactive_set": (), "pinned_set": ()}


def test_the_bounds_are_settings(tmp_path: Path) -> None:
    with pagein.open(":memory:", workspace=tmp_path, settings=Settings(pools=PoolRules(1, 1, 0))) as engine:
        session = engine.session("s")
        says(session)
        work(session, "a", "1")
        work(session, "b", "2")
        assert active(session) == ["2"]


def test_m2_a_replaced_list_of_messages_is_told_by_its_content(room: Room) -> None:
    def call(call_id: str, output: str) -> list[dict[str, object]]:
        asked = {"type": "tool_use", "id": call_id, "name": "bash", "input": {"command": "make"}}
        told = {"type": "tool_result", "tool_use_id": call_id, "content": output}
        return [{"role": "assistant", "content": [asked]}, {"role": "user", "content": [told]}]

    def prepare(words: str, *messages: dict[str, object]) -> None:
        said = [{"role": "user", "content": words}, *messages]
        session.prepare({"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": said})

    session = room.session()
    prepare("Go.", *call("toolu_01A09q90qw90lq1", "one"))
    prepare("Go.", *call("toolu_01A09q90qw90lq1", "one"), *call("toolu_01A09q90qw90lq2", "two"))
    summary = "This session is being continued from a previous conversation that ran out of context. We did two things."
    prepare(summary, *call("toolu_01A09q90qw90lq2", "[cut by the client]"), *call("toolu_01A09q90qw90lq3", "three"))
    assert active(session) == ["one", "two", "three"]


# --- commands ---


def test_the_pool_is_told_for_people_and_programs(room: Room) -> None:
    room.put("a.txt", "hello\n")
    session = room.session()
    says(session)
    work(session, "tc-1", "a.txt\nb.txt\n", "ls")
    file = pool_commands.activate(session, "a.txt")["target"]
    pin_commands.touch(session, "pin", file)
    told = pool_commands.pool(session)
    rows = {
        Path(one["path"]).name or one["tool"]: (one["state"], one["pinned"], one["content"]) for one in told["objects"]
    }
    assert rows == {
        "ls": ("active", False, "text"),
        "a.txt": ("active", True, "text"),
        "b.txt": ("inactive", False, "unread"),
    }
    assert f"{file}  active  pinned  file  6 characters" in told["text"]
    pin_commands.touch(session, "unpin", file)
    assert pool_commands.deactivate(session, "a.txt")["text"] == f"Deactivated {file}"
    with pytest.raises(BadInput, match=r"Object not found: zz; `pagein pool main` lists"):
        pool_commands.activate(session, "zz")
    with pytest.raises(BadInput, match="no tool result 'zz' in its window"):
        pin_commands.touch(session, "pin", "zz")


def test_a_pin_of_a_result_is_one_pin_in_the_window_and_in_the_pool(room: Room) -> None:
    session = room.session()
    says(session)
    work(session, "tc-1", "x" * 500)
    pin_commands.touch(session, "pin", "tc-1")
    assert session.pools.sets()["pinned_set"] == ("tc-1",)
    assert session.hand.wishes.pinned == {"tc-1"}
    ask(session, "unpin", id="tc-1")
    assert session.pools.sets()["pinned_set"] == ()
    assert not session.hand.wishes.pinned
