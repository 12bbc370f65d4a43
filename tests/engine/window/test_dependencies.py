"""Law 2, case by case: the base of an answer stays, or the answer leaves with it, or is shown in full."""

import json
from pathlib import Path

import pytest

import pagein
from pagein.engine.engine import Engine, Settings
from pagein.engine.log.read_notes import trace_of
from pagein.engine.session import Session
from pagein.engine.window.dependencies import UNPROVEN
from pagein.model.journal_notes import ReadNote
from pagein.model.messages import FileAccess, Message, Text, ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.model.read_events import FileRead
from pagein.model.read_records import decode
from pagein.model.spans import Spans
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.eager_residency import eager
from pagein.upkeep import check_store

EAGER = eager(batch_tokens=1000, keep_calls=2, min_tokens=100)
ASK = Message("user", (Text("please"),))
STUB = "[pagein: pg-"


class OneToken:
    """Every character is a token, so that sizes in tests are sizes in tokens."""

    def count(self, text: str, kind: str = "result") -> float:
        return len(text)


class Room:
    """An engine on real files, and an agent that reads and speaks."""

    def __init__(self, place: Path, **settings: object) -> None:
        self.folder = place / "work"
        self.folder.mkdir()
        self.store = place / "s.pagein"
        self.settings = Settings(EAGER, **settings)  # type: ignore[arg-type]  # any of its fields
        self.engine = self.opened()

    def opened(self) -> Engine:
        return pagein.open(store=self.store, counter=OneToken(), settings=self.settings)

    def session(self, name: str = "one") -> Session:
        return self.engine.session(name, workspace=self.folder)

    def put(self, name: str, lines: int = 30, *, first: str = "") -> None:
        text = "\n".join([first] * bool(first) + [f"{name} line {n} of many" for n in range(lines)])
        (self.folder / name).write_text(text)


@pytest.fixture
def room(tmp_path: Path) -> Room:
    made = Room(tmp_path)
    for name in ("a.py", "b.py", "c.py"):
        made.put(name)
    return made


def reads(session: Session, call: str, path: str, offset: int | None = None, limit: int | None = None) -> str:
    """One turn of an agent: a call, its answer, both said. Returns the mode."""
    result = session.read(path, offset, limit)
    arguments = json.dumps({"path": path, "offset": offset, "limit": limit})
    session.append(Message("assistant", (ToolCall(call, "read", arguments),)))
    session.append(Message("tool", (ToolResult(call, result.text, "read"),)))
    return mode(result.details)


def mode(details: object) -> str:
    event = decode(details)
    assert isinstance(event, FileRead)
    return event.mode


def shown(session: Session) -> dict[str, str]:
    messages = session.last_request()
    return {
        block.call_id: block.text for message in messages for block in message.blocks if isinstance(block, ToolResult)
    }


def noise(session: Session, turns: int, size: int = 10) -> None:
    for turn in range(turns):
        session.advance()
        call = f"noise-{len(session.journal)}-{turn}"
        session.append(Message("assistant", (ToolCall(call, "bash", "{}"),)))
        session.append(Message("tool", (ToolResult(call, "x" * size, "bash"),)))


def test_what_stands_in_the_request_is_known_after_it_left(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    session.advance()
    assert reads(session, "c1", "a.py") == "full"
    session.advance()
    assert reads(session, "c2", "a.py") == "unchanged"
    session.advance()
    assert reads(session, "c3", "a.py", offset=5, limit=9) == "unchanged_range"


def test_an_order_to_evict_takes_a_read_together_with_the_young_answer_that_depends_on_it(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    reads(session, "c1", "a.py")
    noise(session, 6)
    assert reads(session, "c2", "a.py") == "unchanged"
    session.advance()
    assert session.hand.epoch() is None
    session.append(Message("assistant", (Text("done"),)))
    session.append(ASK)
    opened = session.advance().opened
    assert opened is not None
    assert opened.calls == ("c1", "c2")


def test_a_read_that_was_never_said_is_not_known_once_a_request_has_left_without_it(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    assert mode(session.read("a.py").details) == "full"
    assert mode(session.read("a.py").details) == "unchanged"
    session.advance()
    assert mode(session.read("a.py").details) == "full"


def test_a_read_that_was_said_otherwise_than_it_was_answered_is_not_known(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    result = session.read("a.py")
    session.append(Message("assistant", (ToolCall("c1", "read", '{"path":"a.py"}'),)))
    session.append(Message("tool", (ToolResult("c1", result.text[:100], "read"),)))
    session.advance()
    assert mode(session.read("a.py").details) == "full"


def test_a_read_said_late_counts_from_then_on(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    result = session.read("a.py")
    session.advance()
    session.append(Message("assistant", (ToolCall("c1", "read", '{"path":"a.py"}'),)))
    session.append(Message("tool", (ToolResult("c1", result.text, "read"),)))
    session.advance()
    assert mode(session.read("a.py").details) == "unchanged"


def test_a_read_whose_text_was_paged_out_is_shown_again_and_others_stay_known(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    for call, path in (("c1", "a.py"), ("c2", "b.py"), ("c3", "c.py")):
        session.advance()
        reads(session, call, path)
    noise(session, 2)
    session.advance()
    left = {call for call, text in shown(session).items() if text.startswith(STUB)}
    assert "c1" in left
    assert "c3" not in left
    assert reads(session, "c4", "a.py") == "full"
    assert reads(session, "c5", "c.py") == "unchanged"
    session.advance()


def test_a_recent_marker_keeps_what_it_rests_on_in_the_window(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    room.put("b.py", 80)
    reads(session, "c1", "a.py")
    reads(session, "c2", "b.py")
    assert reads(session, "c3", "a.py") == "unchanged"
    reads(session, "c4", "c.py")
    session.advance()
    text = shown(session)
    assert text["c2"].startswith(STUB)
    assert text["c1"].startswith("a.py line 0")
    assert text["c3"] == "[readcache: unchanged, 30 lines]"
    noise(session, 5, size=700)
    text = shown(session)
    assert text["c1"].startswith(STUB)
    assert text["c3"].startswith(STUB)


def test_nothing_leaves_where_what_may_leave_is_too_little(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    room.put("a.py", 80)
    reads(session, "c1", "a.py")
    reads(session, "c2", "b.py")
    assert reads(session, "c3", "a.py") == "unchanged"
    reads(session, "c4", "c.py")
    assert session.advance().opened is None


def test_an_old_marker_leaves_with_its_base_and_is_not_quoted(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    reads(session, "c1", "a.py")
    reads(session, "c2", "a.py")
    noise(session, 4, size=600)
    session.advance()
    text = shown(session)
    assert text["c1"].startswith(STUB)
    assert text["c2"].startswith(STUB)
    assert "[readcache" not in text["c2"]
    stub = text["c2"].removeprefix("[pagein: ").partition(" ")[0]
    assert session.recall(stub) == "[readcache: unchanged, 30 lines]"
    assert reads(session, "c3", "a.py") == "full"


def test_an_answer_said_before_the_one_it_rests_on_is_shown_in_full(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    calls = (ToolCall("c1", "read", '{"path":"a.py"}'), ToolCall("c2", "read", '{"path":"a.py"}'))
    session.append(Message("assistant", calls))
    text, marker = session.read("a.py").text, session.read("a.py").text
    assert marker.startswith("[readcache: ")
    session.append(Message("tool", (ToolResult("c1", marker, "read"), ToolResult("c2", text, "read"))))
    prepared = session.advance()
    assert prepared.failure is None
    assert shown(session) == {"c1": text, "c2": text}
    assert session.status().saved == 0


def test_an_answer_said_without_the_one_it_rests_on_is_shown_in_full(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    session.read("a.py")
    marker = session.read("a.py:3-20").text
    assert marker.startswith("[readcache: ")
    session.append(Message("assistant", (ToolCall("c1", "read", '{"path":"a.py:3-20"}'),)))
    session.append(Message("tool", (ToolResult("c1", marker, "read"),)))
    session.advance()
    assert shown(session)["c1"].startswith("a.py line 2 of many\n")
    assert shown(session)["c1"].endswith("[10 more lines in file. Use offset=21 to continue.]")
    assert reads(session, "c2", "a.py:3-20") == "unchanged_range"


def test_saying_the_same_thing_at_the_same_place_again_adds_nothing(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    session.read("a.py")
    marker = session.read("a.py").text
    session.append(Message("assistant", (ToolCall("c1", "read", '{"path":"a.py"}'),)))
    here = session.leaf
    said = session.append(Message("tool", (ToolResult("c1", marker, "read"),)))
    count = len(session.journal)
    session.move(here)
    assert session.append(Message("tool", (ToolResult("c1", marker, "read"),))) == said
    assert len(session.journal) == count


def test_a_marker_that_a_compaction_kept_without_its_base_leaves_before_the_next_request(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    reads(session, "c1", "a.py")
    session.advance()
    reads(session, "c2", "a.py")
    session.note_compaction(kept=2)
    prepared = session.advance()
    assert prepared.opened is not None
    assert prepared.opened.reason == UNPROVEN
    assert shown(session)["c2"].startswith(STUB)
    assert reads(session, "c3", "a.py") == "full"


def test_a_marker_that_a_compaction_kept_with_its_base_stays(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    reads(session, "c1", "a.py")
    session.advance()
    reads(session, "c2", "a.py")
    session.note_compaction(kept=4)
    assert session.advance().opened is None
    assert shown(session)["c2"] == "[readcache: unchanged, 30 lines]"
    assert reads(session, "c3", "a.py") == "full"  # the barrier is strict all the same


def test_a_refresh_between_a_read_and_its_saying_holds(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    result = session.read("a.py")
    session.refresh("a.py")
    session.append(Message("assistant", (ToolCall("c1", "read", '{"path":"a.py"}'),)))
    session.append(Message("tool", (ToolResult("c1", result.text, "read"),)))
    session.advance()
    assert mode(session.read("a.py").details) == "full"


def test_what_the_model_wrote_is_known_by_its_call(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    text = "\n".join(f"written {n}" for n in range(20))
    arguments = json.dumps({"path": "new.py", "content": text})
    session.append(Message("assistant", (ToolCall("w1", "write", arguments),)))
    (room.folder / "new.py").write_text(text)
    session.note_write("new.py", text)
    session.append(Message("tool", (ToolResult("w1", "ok", "write"),)))
    session.advance()
    assert reads(session, "c1", "new.py") == "unchanged"
    session.advance()
    (room.folder / "new.py").write_text(text.replace("written 3", "mine 3"))
    session.note_edit("new.py", "written 3", "mine 3")  # of which nobody says anything
    session.advance()
    found = session.read("new.py")
    assert mode(found.details) == "diff"
    assert "-written 3\n+mine 3\n" in found.text


def test_two_answers_with_one_text_are_told_apart_by_their_calls(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    for name in ("a.py", "b.py"):
        room.put(name, 20)
    reads(session, "c1", "a.py")
    reads(session, "c2", "b.py")
    session.advance()
    calls = (ToolCall("d1", "read", '{"path":"b.py"}'), ToolCall("d2", "read", '{"path":"a.py"}'))
    session.append(Message("assistant", calls))
    second, first = session.read("a.py").text, session.read("b.py").text
    assert first == second
    session.append(Message("tool", (ToolResult("d1", first, "read"), ToolResult("d2", second, "read"))))
    ends = {
        call: placed.event.path.rpartition("/")[2]
        for call in ("d1", "d2")
        if (placed := session.evidence.files.statement_of(call))
    }
    assert ends == {"d1": "b.py", "d2": "a.py"}


def test_another_process_finds_the_same_ground(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    reads(session, "c1", "a.py")
    session.advance()
    reads(session, "c2", "a.py")
    noise(session, 2)
    ground = session.evidence
    room.engine.close()
    room.engine = room.opened()
    again = room.session().evidence
    assert again.known == ground.known
    assert again.seen == ground.seen
    assert [again.files.statements(path) for path in again.files.chains] == [
        ground.files.statements(path) for path in ground.files.chains
    ]


def test_a_read_is_never_shown_as_a_preview(tmp_path: Path) -> None:
    with pagein.open(store=tmp_path / "s.pagein", workspace=tmp_path) as engine:
        session = engine.session("one", workspace=tmp_path)
        (tmp_path / "big.txt").write_text("\n".join(f"line {n} of a very long file" for n in range(1800)))
        session.append(ASK)
        session.advance()
        text = session.read("big.txt").text
        session.append(Message("assistant", (ToolCall("c1", "bash", '{"command":"cat big.txt"}'),)))
        session.append(Message("tool", (ToolResult("c1", text, "bash"),)))
        session.advance()
        assert shown(session)["c1"] == text


# --- the witness, where it is asked


def lied_to(session: Session, room: Room) -> None:
    """A record that claims more than its answer showed, as a defect of ours might write it."""
    content = (room.folder / "a.py").read_bytes()
    event = FileRead(
        str((room.folder / "a.py").resolve()),
        "full",
        ContentHash.of(content),
        30,
        1,
        30,
        len(content),
        emitted=Spans.of((1, 30)),
    )
    session._parts.pager._blobs.put(content)
    session.note(ReadNote(event, trace_of("only this was shown"), "a.py"))
    session.append(Message("assistant", (ToolCall("c1", "read", '{"path":"a.py"}'),)))
    session.append(Message("tool", (ToolResult("c1", "only this was shown", "read"),)))


def test_without_the_witness_a_false_record_is_believed(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    lied_to(session, room)
    assert session.read("a.py").text == "[readcache: unchanged, 30 lines]"


def test_the_witness_turns_an_unfounded_answer_into_the_text_and_says_why(tmp_path: Path) -> None:
    room = Room(tmp_path, witness=True)
    room.put("a.py")
    session = room.session()
    session.append(ASK)
    lied_to(session, room)
    result = session.read("a.py")
    assert result.text == (room.folder / "a.py").read_text()
    assert result.failure == "the witness objected: line 1 was never shown (line 1)"


def test_the_witness_takes_an_unfounded_answer_out_of_the_request_and_says_why(tmp_path: Path) -> None:
    room = Room(tmp_path, witness=True)
    room.put("a.py")
    trusting = pagein.open(store=tmp_path / "s.pagein", counter=OneToken(), settings=Settings(EAGER))
    session = trusting.session("one", workspace=room.folder)
    session.append(ASK)
    lied_to(session, room)
    assert reads(session, "c2", "a.py") == "unchanged"
    session.keep()
    trusting.close()
    watched = room.session()
    prepared = watched.advance()
    assert prepared.failure is not None
    assert "c2: line 1 was never shown" in prepared.failure
    assert shown(watched)["c2"].startswith(STUB)
    assert watched.advance().failure is None


def test_the_witness_has_nothing_against_what_is_right(tmp_path: Path) -> None:
    room = Room(tmp_path, witness=True)
    room.put("a.py", 60)
    session = room.session()
    assert session.read("a.py").failure is None
    assert mode(session.read("a.py", 5, 10).details) == "unchanged_range"
    room.put("a.py", 60, first="new")
    changed = session.read("a.py")
    assert mode(changed.details) == "diff"
    assert changed.failure is None
    moved = session.read("a.py", 20, 30)
    assert (moved.failure, mode(moved.details)) == (None, "moved")
    session.append(ASK)
    assert session.advance().failure is None


# --- exclusions


@pytest.mark.parametrize(
    "call",
    [
        ToolCall("s", "bash", '{"command":"cat my plans.private"}'),
        ToolCall("s", "read", '{"path":"deep/my plans.private"}'),
        ToolCall("s", "read", '{"path":"\\u006dy.private"}'),
        ToolCall("s", "read", "{}", (FileAccess("read", "x.private"),)),
        ToolCall("s", "bash", "cat x.private"),
    ],
)
def test_the_users_own_exclusions_keep_results_in_the_window(tmp_path: Path, call: ToolCall) -> None:
    for excluded, stays in ((("*.private",), True), ((), False)):
        place = tmp_path / str(stays)
        place.mkdir()
        session = Room(place, excluded=excluded).session()
        session.append(ASK)
        session.append(Message("assistant", (call,)))
        session.append(Message("tool", (ToolResult("s", "plain text " * 200, "bash"),)))
        noise(session, 5, size=600)
        session.advance()
        assert shown(session)["s"].startswith("plain text ") == stays


def test_what_a_link_to_an_excluded_file_showed_is_never_paged_out(tmp_path: Path) -> None:
    room = Room(tmp_path)
    (room.folder / ".env").write_text("TOKEN=of the kind nobody keeps\n" * 40)
    (room.folder / "notes.txt").symlink_to(".env")
    session = room.session()
    session.append(ASK)
    result = session.read("notes.txt")
    session.append(Message("assistant", (ToolCall("c1", "read", '{"path":"notes.txt"}'),)))
    session.append(Message("tool", (ToolResult("c1", result.text, "read"),)))
    noise(session, 5, size=900)
    session.advance()
    assert shown(session)["c1"] == result.text
    assert any(text.startswith(STUB) for text in shown(session).values())
    room.engine.close()
    assert b"nobody keeps" not in b"".join(path.read_bytes() for path in room.store.parent.glob("s.pagein*"))


# --- what a check of the store reads


@pytest.mark.damages_store
def test_a_check_of_the_store_reads_the_requests_themselves(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    lied_to(session, room)
    reads(session, "c2", "a.py")
    session.advance()
    session.keep()
    room.engine.close()
    findings = checked(room)
    assert any("call c1" in one and "only" not in one for one in findings)
    assert any("call c2" in one and "line 1 was never shown" in one for one in findings)


def test_a_check_has_nothing_against_sessions_that_read_page_out_and_compact(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    reads(session, "c1", "a.py")
    room.put("a.py", first="new")
    assert reads(session, "c2", "a.py") == "diff"
    noise(session, 4, size=700)
    reads(session, "c3", "a.py")
    session.note_compaction(kept=2)
    reads(session, "c4", "a.py")
    session.advance()
    alone = room.session("alone")
    for _ in range(2):
        alone.read("a.py")
        room.put("a.py", first="other")
        alone.read("a.py", 3, 12)
    room.engine.close()
    assert checked(room) == []


def checked(room: Room) -> list[str]:
    store = SqliteUpkeep(room.store)
    try:
        return [f"{one.kind}: {one.why}" for one in check_store(store).findings]
    finally:
        store.close()


def test_after_each_compaction_the_text_comes_once_and_then_markers_again(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    modes = []
    for round_ in range(3):
        for turn in range(3):
            modes.append(reads(session, f"c{round_}{turn}", "a.py"))
            session.advance()
        session.note_compaction()
        session.append(ASK)
    assert modes == ["full", "unchanged", "unchanged"] * 3


def test_nothing_is_known_by_what_another_session_was_shown(room: Room) -> None:
    one, other = room.session("one"), room.session("other")
    for session in (one, other):
        session.append(ASK)
        assert reads(session, "c1", "a.py") == "full"
        session.advance()
    assert reads(other, "c2", "a.py") == "unchanged"


def test_a_session_that_only_reads_is_witnessed_however_long_it_is(tmp_path: Path) -> None:
    room = Room(tmp_path, witness=True)
    for number in range(30):
        room.put(f"{number}.py", 12)
    session = room.session()
    for turn in range(330):
        result = session.read(f"{turn % 30}.py")
        assert (result.failure, mode(result.details)) == (None, "full" if turn < 30 else "unchanged")
    room.engine.close()
    assert checked(room) == []


def test_a_refresh_of_lines_holds_for_reads_that_were_not_said_yet(room: Room) -> None:
    session = room.session()
    session.append(ASK)
    session.refresh("a.py", 5, 2)
    assert reads(session, "c1", "a.py") == "full"
    session.advance()
    assert reads(session, "c2", "a.py", 5, 2) != "unchanged_range"  # a full read does not settle a refreshed range
    session.advance()
    assert reads(session, "c3", "a.py") == "unchanged"


def test_a_refresh_of_lines_leaves_what_it_does_not_name_known_and_the_witness_silent(tmp_path: Path) -> None:
    room = Room(tmp_path, witness=True)
    room.put("a.py", 60)
    session = room.session()
    session.read("a.py")
    session.refresh("a.py", 7, 1)
    result = session.read("a.py")
    assert (result.failure, mode(result.details)) == (None, "partly_known")
    assert "a.py line 6 of many" in result.text
    assert "a.py line 39 of many" not in result.text
    room.engine.close()
    assert checked(room) == []


def test_a_refresh_of_lines_between_a_read_and_its_saying_holds_for_these_lines_alone(tmp_path: Path) -> None:
    room = Room(tmp_path, witness=True)
    room.put("a.py", 60)
    session = room.session()
    session.append(ASK)
    result = session.read("a.py")
    session.refresh("a.py", 7, 1)
    session.append(Message("assistant", (ToolCall("c1", "read", '{"path":"a.py"}'),)))
    session.append(Message("tool", (ToolResult("c1", result.text, "read"),)))
    assert session.advance().failure is None
    again = session.read("a.py")
    assert (again.failure, mode(again.details)) == (None, "partly_known")
    assert [line for line in again.text.split("\n") if "many" in line] == ["a.py line 6 of many"]
    room.engine.close()
    assert checked(room) == []
