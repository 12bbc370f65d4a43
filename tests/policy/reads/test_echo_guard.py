"""The echo guard: a stub or marker must not become text of a file (law 8)."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tools.recall_sessions import Room, ask, long_text

from pagein.engine.session import Session
from pagein.model.journal_notes import RecallNote
from pagein.model.messages import ToolCall
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, Origin
from pagein.model.read_events import FileRead, LineCopy
from pagein.model.spans import Spans
from pagein.policy.reads import markers
from pagein.policy.reads.echo_forms import may_echo
from pagein.policy.reads.echo_guard import Echo, OwnTexts, echoes, facts_of_read, facts_of_recall, remedy
from pagein.policy.stubs.recall_ways import TOOLS
from pagein.policy.stubs.result_stubs import stub

SECRET = b"s" * 32
OURS = ObjectId.of(ContentHash.of(b"text"), Origin("s", "c"), SECRET)
FOREIGN = ObjectId.of(ContentHash.of(b"text"), Origin("s", "c"), b"t" * 32)
STUB = stub(OURS, "Bash", 2340, "npm test - 47 lines", TOOLS)
VERSION = ContentHash.of(b"file")
OWNED = OwnTexts(lambda name: name.is_made_with(SECRET))


def written(**arguments: object) -> ToolCall:
    return ToolCall("c", "Write", json.dumps(arguments))


def found(call: ToolCall, before: str = "", owned: OwnTexts = OWNED) -> list[str]:
    return [echo.object_id or echo.text for echo in echoes(call, owned, before)]


def test_a_stub_of_ours_in_a_write_is_an_echo() -> None:
    # its two lines are two echoes of one object
    assert found(written(path="a", content=f"before\n{STUB}\nafter")) == [str(OURS), str(OURS)]
    first, second = STUB.split("\n")
    assert found(written(path="a", content=first)) == [str(OURS)]
    assert found(written(path="a", content=second)) == [str(OURS)]
    assert found(written(path="a", content=second.replace("peek", "rlm_peek"))) == [str(OURS)]


def test_an_id_alone_and_a_stub_of_somebody_else_are_text() -> None:
    assert found(written(path="a", content=f"see {OURS} for the log")) == []
    assert found(written(path="a", content=STUB.replace(str(OURS), str(FOREIGN)))) == []
    assert found(written(path="a", content=STUB.replace(str(OURS), "pg-01234567-89abcdef"))) == []
    assert found(written(path="a", content="[pagein: not an id | x]")) == []


def test_what_an_edit_replaces_or_the_file_holds_is_no_echo() -> None:
    assert found(written(path="a", old_string=STUB, new_string="the text")) == []
    assert found(written(path="a", old_string=STUB, new_string=f"{STUB}\nmore")) == []
    assert found(written(path="a", oldText="x", newText=STUB)) != []
    assert found(written(path="a", content=STUB), before=f"docs\n{STUB}\n") == []
    # a second one, beyond the one that is there
    assert found(written(path="a", content=f"{STUB}\n{STUB}"), before=STUB) == [str(OURS), str(OURS)]


def test_nested_edits_and_patches_are_looked_through() -> None:
    edits = [{"old_string": "x", "new_string": "y"}, {"old_string": STUB, "new_string": STUB}, {"new_string": STUB}]
    assert len(found(written(path="a", edits=edits))) == 2
    stub_lines = STUB.split("\n")
    head = "*** Begin Patch\n*** Update File: a.py\n@@\n"
    adding = head + "\n".join(f"+{line}" for line in stub_lines) + "\n*** End Patch"
    keeping = head + "\n".join(f" {line}" for line in stub_lines) + "\n-x\n+y\n*** End Patch"
    assert len(found(written(input=adding))) == 2
    assert found(written(input=keeping)) == []


def test_arguments_that_are_no_json_are_judged_by_their_text() -> None:
    assert found(ToolCall("c", "apply_patch", f"cat > f <<EOF\n{STUB}\nEOF")) == [str(OURS), str(OURS)]
    deep = "[" * 300 + json.dumps(STUB) + "]" * 300
    assert isinstance(found(ToolCall("c", "Write", deep)), list)


SERVED = [
    (FileRead("p", "unchanged", VERSION, 61, 1, 61, 9), markers.unchanged_marker(61)),
    (FileRead("p", "unchanged_range", VERSION, 61, 3, 9, 9), markers.lines_unchanged_marker(3, 9, 61)),
    (FileRead("p", "unchanged_range", VERSION, 61, 3, 9, 9), markers.inside_unchanged_marker(3, 9)),
    (FileRead("p", "diff", VERSION, 61, 1, 61, 9), markers.changed_marker(5, 61)),
    (FileRead("p", "range_diff", VERSION, 61, 3, 9, 9), markers.lines_changed_marker(5, 3, 9, 61)),
    (
        FileRead("p", "moved", VERSION, 61, 3, 9, 9, copies=(LineCopy(VERSION, 13, 7, 3),)),
        markers.moved_marker(3, 9, 61, 13),
    ),
    (
        FileRead(
            "p", "partly_known", VERSION, 61, 1, 20, 9, copies=(LineCopy(VERSION, 3, 4, 3), LineCopy(VERSION, 7, 3, 7))
        ),
        markers.lines_unchanged_marker(3, 9, 61),
    ),
]


@pytest.mark.parametrize(("event", "marker"), SERVED)
def test_a_marker_that_a_read_was_answered_with_is_an_echo(event: FileRead, marker: str) -> None:
    owned = OwnTexts(lambda _: False, frozenset(facts_of_read(event)))
    assert found(written(content=f"x\n{marker}\ny"), owned=owned) == [marker]
    assert found(written(content=f"x\n{marker}\ny"), before=marker, owned=owned) == []
    assert found(written(content=marker)) == []
    assert found(written(content=marker.replace("61", "62").replace("3-9", "4-9")), owned=owned) == []


def test_a_hint_below_a_recalled_part_is_an_echo() -> None:
    hint = "[Showing 0\u20132000 of 9000 chars. Use offset=2000 to continue.]"
    owned = OwnTexts(lambda _: False, frozenset(facts_of_recall(RecallNote("peek", ("x",), hints=(hint,)))))
    assert found(written(content=f"text\n{hint}"), owned=owned) == [hint]
    assert found(written(content=hint.replace("9000", "9001")), owned=owned) == []


@given(st.text(st.characters(), max_size=200))
def test_text_without_anything_of_ours_never_is(text: str) -> None:
    call = written(content=text)
    if not may_echo(call.arguments):
        assert echoes(call, OwnTexts(lambda _: True)) == ()


@given(st.text(max_size=30), st.text(max_size=30))
def test_a_stub_is_found_whatever_stands_around_it(before: str, after: str) -> None:
    call = written(content=before + STUB + after)
    assert may_echo(call.arguments)
    assert Echo("stub", f"[pagein: {OURS}", str(OURS)) in echoes(call, OWNED)


def test_the_remedy_names_what_to_do() -> None:
    marker = markers.unchanged_marker(61)
    told = remedy((Echo("stub", "x", str(OURS)), Echo("stub", "y", str(OURS)), Echo("marker", marker)))
    assert told.count(str(OURS)) == 2
    assert f'peek("{OURS}")' in told
    assert marker in told


def reads(session: Session, path: Path) -> str:
    session.read(str(path))
    return session.read(str(path)).text


def test_a_session_knows_its_own_stubs_markers_and_hints(room: Room) -> None:
    session = room.session()
    text = long_text("first")
    [name] = room.paged(session, text)
    marker = reads(session, room.put("a.txt", long_text("file")))
    hint = ask(session, "peek", id=name, length=10).text.split("\n")[-1]
    for ours in (f"[pagein: {name} | Bash | 1 tokens | x]", marker, hint):
        call = written(path="b.txt", content=f"some\n{ours}\n")
        assert session.recalls.echoes(call), ours
        assert room.session().recalls.echoes(call), ours
    assert session.recalls.echoes(written(path="b.txt", content=text)) == ()
    other = room.session("other")
    assert other.recalls.echoes(written(content=marker)) == ()
    assert other.recalls.echoes(written(content=f"[pagein: {name} | Bash |")) != ()


def test_a_line_for_lines_left_out_is_an_echo_where_it_was_served() -> None:
    served = FileRead("/a", "partly_known", VERSION, 90, 1, 60, 900, emitted=Spans.of((1, 5), (50, 60)), v=2)
    owned = OwnTexts(lambda _: False, frozenset(facts_of_read(served)))
    gap = "[readcache: lines 6-49 of 90 not shown]"
    assert found(written(path="a", content=f"x\n{gap}\ny"), owned=owned) == [gap]
    assert found(written(path="a", content="[readcache: lines 6-48 of 90 not shown]"), owned=owned) == []
