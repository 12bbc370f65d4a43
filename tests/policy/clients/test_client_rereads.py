"""Re-reads by a client's own tools: every answer is borne out by the request itself, and says exactly what it may."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.clients.working_clients import CLIENTS, GEMINI_HEAD, REPEATED, STUB, Talk

from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.policy.clients.client_rereads import RereadRules, answer, with_message
from pagein.policy.clients.file_seams import WHOLE

FILE = "".join(f"line {n} of the file, with words of its own\n" for n in range(1, 41))


def talk(client: str, text: str = FILE) -> Talk:
    return Talk(client, {"a.py": text})


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ("claude-code", "[readcache: unchanged, 41 lines]"),
        (
            "opencode",
            "<path>a.py</path>\n<type>file</type>\n<content>\n[readcache: unchanged, 40 lines]\n\n(End of file - total 40 lines)\n</content>",
        ),
        ("pi", "[readcache: unchanged, 41 lines]"),
        ("gemini-cli", "[readcache: unchanged, 41 lines]"),
        (
            "codex",
            (
                "Chunk ID: 2a1733\nWall time: 0.0000 seconds\nProcess exited with code 0\nOriginal token count: 58\nOutput:\n"
                "[readcache: unchanged in lines 1-40]\n"
            ),
        ),
    ],
)
def test_a_file_that_is_read_again_is_answered_by_a_marker_inside_the_client_s_own_wrappers(
    client: str, expected: str
) -> None:
    session = talk(client)
    session.read("a.py")
    assert session.read("a.py") == expected
    assert session.objections() == ()


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ("claude-code", "[readcache: unchanged in lines 5-30]"),
        (
            "opencode",
            (
                "<path>a.py</path>\n<type>file</type>\n<content>\n[readcache: unchanged in lines 5-30 of 40]"
                "\n\n(Showing lines 5-30 of 40. Use offset=31 to continue.)\n</content>"
            ),
        ),
        (
            "pi",
            "[readcache: unchanged in lines 5-30 of 41]\n\n[11 more lines in file. Use offset=31 to continue.]",
        ),
        ("gemini-cli", GEMINI_HEAD.format(5, 30, 41) + "[readcache: unchanged in lines 5-30 of 41]"),
    ],
)
def test_a_marker_for_a_range_says_how_long_the_file_is_only_where_the_result_does(client: str, expected: str) -> None:
    session = talk(client)
    session.read("a.py")
    assert session.read("a.py", 5, 26) == expected
    assert session.objections() == ()


def test_a_first_part_that_ends_where_nobody_saw_an_end_is_no_whole_file() -> None:
    session = talk("claude-code")
    session.read("a.py", 1, 20)
    assert session.read("a.py", 1, 20) == "[readcache: unchanged in lines 1-20]"


@pytest.mark.parametrize("client", CLIENTS)
def test_lines_that_moved_are_told_by_the_numbers_they_were_shown_under(client: str) -> None:
    session = talk(client)
    session.read("a.py")
    session.files["a.py"] = "new\nlines\n" + FILE
    assert "lines 12-31" in session.read("a.py", 12, 20)
    assert "shown earlier as lines 10-29]" in json.dumps(session.sent[-1].blocks[0].text)  # type: ignore[union-attr]
    assert session.objections() == ()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_part_that_changed_is_shown_with_the_client_s_line_numbers_between_markers(client: str) -> None:
    text = "".join(f"line {n} of the file, with words of its own\n" for n in range(1, 201))
    session = talk(client, text)
    session.read("a.py")
    session.edit("a.py", 99, ["line 100 of the file, with words of its own"], ["another line 100"])
    told = session.read("a.py")
    rows = told.split("\n")
    gutter = {"claude-code": "100\t", "codex": "", "opencode": "100: ", "pi": "", "gemini-cli": ""}[client]
    assert f"{gutter}another line 100" in rows
    # and so many lines around it that an edit finds what it quotes in one piece
    assert any(row.startswith(f"[readcache: unchanged in lines 1-{100 - WHOLE}") for row in rows)
    assert any(row.startswith(f"[readcache: unchanged in lines {100 + WHOLE}-") for row in rows)
    assert session.objections() == ()


@pytest.mark.parametrize("client", CLIENTS)
def test_who_asks_again_behind_a_marker_is_shown_the_lines(client: str) -> None:
    session = talk(client)
    first = session.read("a.py")
    assert session.read("a.py") != first
    assert session.read("a.py") == first
    assert session.read("a.py") != first


@pytest.mark.parametrize("client", CLIENTS)
def test_what_left_the_window_is_no_base_and_takes_with_it_what_rested_on_it(client: str) -> None:
    session = talk(client)
    first = session.read("a.py")
    session.read("a.py")
    assert session.state.files.calls_depending_on({"c0"}) == {"c2"}
    session.leave(frozenset({"c0"}))
    assert [block.text for one in session.sent for block in one.blocks if isinstance(block, ToolResult)] == [STUB, STUB]
    assert session.read("a.py") == first
    assert session.objections() == ()


def test_a_base_stays_while_an_answer_on_it_is_young() -> None:
    session = talk("claude-code")
    session.read("a.py")
    session.read("a.py")
    assert session.state.files.calls_needed_by_young(1) == {"c0", "c2"}
    assert session.state.files.calls_needed_by_young(2) == frozenset()


@pytest.mark.parametrize("client", CLIENTS)
def test_an_edit_without_a_known_place_leaves_nothing_to_rest_on(client: str) -> None:
    session = talk(client)
    first = session.read("a.py")
    names: dict[str, tuple[str, dict[str, object]]] = {
        "claude-code": ("Edit", {"file_path": "a.py", "old_string": "never shown", "new_string": "x"}),
        "codex": (
            "apply_patch",
            {"input": "*** Begin Patch\n*** Update File: a.py\n@@\n-never\n+x\n*** End Patch"},
        ),
        "opencode": ("edit", {"filePath": "a.py", "oldString": "never shown", "newString": "x"}),
        "pi": ("edit", {"path": "a.py", "edits": [{"oldText": "never shown", "newText": "x"}]}),
        "gemini-cli": ("replace", {"file_path": "a.py", "old_string": "never shown", "new_string": "x"}),
    }
    name, arguments = names[client]
    session.call(name, arguments, "Done.")
    assert session.read("a.py") == first


def test_lines_that_somebody_else_quotes_leave_nothing_to_rest_on() -> None:
    session = talk("claude-code")
    first = session.read("a.py")
    note = Message("user", (Text("Note: a.py was modified. Here is the change:\n12→other words\n"),))
    session.state = with_message(session.state, session.reader, note)
    assert session.read("a.py") == first


def test_a_failed_write_changes_nothing_and_a_failed_read_shows_nothing() -> None:
    session = talk("pi")
    session.read("a.py")
    session.call("write", {"path": "a.py", "content": "x"}, "ENOENT: no such file or directory, open 'a.py'")
    session.call("read", {"path": "a.py"}, "Operation aborted")
    assert session.read("a.py") == "[readcache: unchanged, 41 lines]"


def test_a_file_that_must_not_be_stored_is_never_answered_by_a_marker() -> None:
    session = Talk("claude-code", {".env": FILE})
    first = session.read(".env")
    assert session.read(".env") == first


def test_an_answer_that_spares_little_is_not_given() -> None:
    session = talk("claude-code")
    session.read("a.py", 1, 3)
    again = talk("claude-code")
    again.read("a.py", 1, 3)
    assert again.read("a.py", 1, 3) == "[readcache: unchanged in lines 1-3]"
    name = session.sent[0]
    state = with_message(session.state, session.reader, Message("assistant", (name.blocks[0],)))
    result = session.sent[1].blocks[0]
    assert isinstance(result, ToolResult)
    assert answer(state, RereadRules(session.profile, least_spared=500), result) is None


def test_what_stands_in_place_of_a_result_shows_nothing_unless_it_is_our_answer() -> None:
    session = talk("claude-code")
    name = Message("assistant", (session_call("c0"),))
    state = with_message(session.state, session.reader, name)
    shown = ToolResult("c0", "1\tx\n2\ty")
    state = with_message(state, session.reader, Message("user", (shown,)), {"c0": STUB})
    assert state.files.claims() == {}


def test_a_server_that_numbers_its_calls_anew_gets_no_markers_that_could_be_mistaken() -> None:
    session = talk("claude-code")
    first = session.read("a.py")
    said = session.sent[:]
    for message in said:
        session.state = with_message(session.state, session.reader, message)
    assert session.read("a.py") == first
    assert session.objections() == ()


def session_call(call_id: str) -> ToolCall:
    return ToolCall(call_id, "Read", '{"file_path": "a.py"}')


def test_the_client_s_own_marker_refers_to_its_base_and_is_shown_the_text_once_that_has_left() -> None:
    session = talk("claude-code")
    first = session.read("a.py")
    name, arguments = "Read", {"file_path": "a.py"}
    assert session.call(name, dict(arguments), REPEATED) == REPEATED
    assert session.state.files.calls_needed_by_young(1) == {"c0"}
    session.leave(frozenset({"c0"}))
    assert session.call(name, dict(arguments), REPEATED) == first
    assert session.call(name, dict(arguments), REPEATED) == REPEATED
    assert session.read("a.py", 5, 26) == "[readcache: unchanged in lines 5-30]"
    assert session.objections() == ()


# --- the law ---

LINES = st.sampled_from(["", "a", "    return total", "def run():", "x = 1", "# note: this is a longer line of a file"])
TEXTS = st.lists(LINES, max_size=24).map("\n".join)
PLACE = st.integers(1, 20)
STEPS = st.one_of(
    st.tuples(st.just("read"), st.none() | PLACE, st.none() | PLACE),
    st.tuples(st.just("edit"), PLACE, st.lists(LINES, max_size=7)),
    st.tuples(st.just("outside"), PLACE, st.lists(LINES, max_size=4)),
    st.tuples(st.just("write"), TEXTS, st.none()),
    st.tuples(st.just("leave"), st.integers(0, 30), st.integers(0, 30)),
    st.tuples(st.just("repeat"), st.none(), st.none()),
)


@settings(max_examples=300, deadline=None)
@given(client=st.sampled_from(CLIENTS), text=TEXTS, steps=st.lists(STEPS, max_size=14))
def test_whatever_happens_to_a_file_the_request_bears_out_every_answer(
    client: str, text: str, steps: list[tuple[str, object, object]]
) -> None:
    session = Talk(client, {"a.py": text})
    for what, one, other in steps:
        _step(session, what, one, other)
        assert session.objections() == ()
    for path, known in session.state.known.paths.items():
        for version, seen in known.versions:
            assert session.state.files.fetch(path, version) is not None or not seen.spans


def _step(session: Talk, what: str, one: object, other: object) -> None:
    lines = session.files["a.py"].split("\n")
    if what == "read":
        assert one is None or isinstance(one, int)
        assert other is None or isinstance(other, int)
        if (one or 1) <= len(lines) - 1:
            before = session.sent[:]
            stands = session.read("a.py", one, other)
            assert len(stands) <= len(session.truth[f"c{len(before)}"])
    elif what in ("edit", "outside"):
        assert isinstance(one, int)
        assert isinstance(other, list)
        at = min(one, len(lines) - 1)
        if what == "edit":
            session.edit("a.py", at, lines[at : at + 2], other)
        else:
            session.files["a.py"] = "\n".join((*lines[:at], *other, *lines[at + 1 :]))
    elif what == "write":
        session.write("a.py", str(one))
    elif what == "leave":
        session.leave(frozenset({f"c{one}", f"c{other}"}))
    elif session.client == "claude-code":
        session.call("Read", {"file_path": "a.py"}, REPEATED)
