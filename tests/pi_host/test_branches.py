"""pi's session tree is the truth: what the model was shown on a branch is known there, by whatever process asks."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.pi_host.fake_pi import FakePi

import pagein
from pagein.model.entries import RequestSent
from pagein.pi_host.branch import UnknownEntry
from pagein.pi_host.host import PiSettings
from pagein.pi_host.protocol import BranchDelta, ContextEvent, ModelCall, ToolResultEvent

TEXT = "".join(f"line {number} of the text\n" for number in range(1, 41))
WHOLE = "[readcache: unchanged, 41 lines]"
MORE = "\n\n[31 more lines in file. Use offset=11 to continue.]"


@pytest.fixture
def pi(tmp_path: Path) -> Iterator[FakePi]:
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    with pagein.open(":memory:", workspace=tmp_path) as engine:
        made = FakePi(engine, tmp_path)
        made.say("read it")
        yield made


def read(path: str = "a.txt", **lines: int) -> tuple[str, dict[str, object]]:
    return "read", {"path": path, **lines}


def test_a_process_that_does_not_know_the_branch_asks_for_the_whole(pi: FakePi) -> None:
    with pytest.raises(UnknownEntry, match="unknown entry"):
        pi.host.answer(ContextEvent(BranchDelta("feedbeef", ())), pi.link)
    assert pi.call(read()) == [TEXT]


def test_a_marker_that_got_in_front_of_its_base_is_shown_in_full(pi: FakePi) -> None:
    # the second call finishes first, so the text stands behind the marker
    assert pi.call(read(), read(), order=(1, 0)) == [WHOLE, TEXT]
    assert pi.request() == [TEXT, TEXT]
    assert pi.call(read()) == [WHOLE]
    assert pi.request() == [TEXT, TEXT, WHOLE], "and stays so"
    pi.restart("another")
    assert pi.request() == [TEXT, TEXT, WHOLE], "also for a process that finds only the branch"


def test_an_answer_that_another_extension_changed_proves_nothing(pi: FakePi) -> None:
    pi.call(read())
    last = pi.entries[pi.leaf or ""]
    pi.leaf = last["parentId"]
    last["message"]["content"][0]["text"] = "something else"
    changed = pi.add("message", message=last["message"])
    assert pi.call(read()) == [TEXT]
    pi.leaf = changed
    pi.restart("another")
    assert pi.call(read()) == [TEXT], "nor to a process that finds only the branch"


def test_what_pi_answered_otherwise_than_the_file_says_is_left_alone(pi: FakePi) -> None:
    call = {"id": "call_x", "name": "read", "input": {"path": "a.txt"}}
    patch = pi.ask("tool_result", call=call, text="1: line 1 of the text", details=None)
    assert patch == {"text": None, "details": None, "failure": ""}


@pytest.mark.parametrize(
    ("edited", "is_marked"),
    [
        ({}, True),
        ({"context_management": {"edits": [{"type": "clear_thinking_20251015"}]}}, True),
        ({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}, False),
        ({"truncation": "auto"}, False),
    ],
)
def test_where_the_provider_may_take_results_out_no_marker_rests_on_one(
    pi: FakePi, edited: dict[str, Any], *, is_marked: bool
) -> None:
    pi.call(read())
    call = {"id": "call_x", "name": "read", "input": {"path": "a.txt"}}
    patch = pi.ask("tool_result", call=call, text=TEXT, details=None, edited=edited)
    assert (patch["text"] is not None) == is_marked
    pi.ask("context", edited=edited)
    journal = pi.engine.session("pi-s1").journal
    sent = [one.body for one in journal.entries.values() if isinstance(one.body, RequestSent)]
    assert [one.clears for one in sent][1:] == [not is_marked]


def test_a_range_in_the_path_reaches_pis_tool_as_offset_and_limit_and_a_wrong_one_is_refused(pi: FakePi) -> None:
    call = {"id": "c", "name": "read", "input": {"path": "a.txt:3-6"}}
    assert pi.ask("tool_call", call=call)["input"] == {"path": "a.txt", "offset": 3, "limit": 4}
    call["input"] = {"path": "a.txt:6-3"}
    assert "end line must be greater" in pi.ask("tool_call", call=call)["block"]


def test_shadow_mode_decides_and_checks_and_changes_nothing(pi: FakePi, tmp_path: Path) -> None:
    shadow = FakePi(pi.engine, tmp_path, PiSettings("shadow"), "s2")
    shadow.say("read it")
    assert shadow.call(read()) == shadow.call(read()) == [TEXT]
    assert [one["message"]["details"] for one in shadow.branch() if one["message"]["role"] == "toolResult"] == [
        None,
        None,
    ]
    told = shadow.order("readcache-status")
    assert "shadow: 2 reads decided" in told
    assert "shadow: 0 answers" in told
    own = 2 * len(TEXT)
    assert f"{own} bytes as they were, {len(TEXT) + len(WHOLE)} as pagein would answer" in told
    assert "readcache_refresh" not in {one["name"] for one in shadow.welcome["tools"]}


def test_another_protocol_is_refused_with_what_to_do(pi: FakePi) -> None:
    for number, remedy in ((0, "pagein install pi --yes"), (99, "pip install --upgrade pagein")):
        hello = {"protocol": number, "extension": "9.9.9", "session": "s", "cwd": "."}
        assert remedy in pi._send("hello", hello)["refusal"]


def test_a_compaction_ends_what_was_known_even_of_what_it_keeps(pi: FakePi) -> None:
    pi.call(read())
    behind = pi.leaf
    pi.add("compaction", summary="so far", firstKeptEntryId=pi.branch()[0]["id"], tokensBefore=9)
    assert pi.call(read(offset=2, limit=9)) == ["\n".join(TEXT.split("\n")[1:10]) + MORE]
    assert pi.call(read(), read()) != [WHOLE, WHOLE]
    pi.leaf = behind
    assert pi.call(read()) == [WHOLE], "in front of the compaction it is known"


def test_what_an_excluded_file_says_is_journaled_by_no_process(pi: FakePi) -> None:
    words = "a line that is for this machine alone\n"
    (pi.folder / ".env").write_text(words, encoding="utf-8")
    assert pi.call(read(".env"), read(".env")) == [words, words]
    assert pi.request() == [words, words]
    pi.restart("another")
    assert pi.request() == [words, words]
    for name in ("pi-s1", "pi-another"):
        journal = pi.engine.session(name).journal
        assert [one for one in journal.entries.values() if "this machine alone" in repr(one)] == []


def test_what_a_session_switched_holds_on_its_branch_and_in_a_new_process(pi: FakePi) -> None:
    before = pi.leaf
    assert "Status: OFF" in pi.order("rlm", "status")
    assert pi.order("rlm", "on") == "Paging is on."
    assert "Status: ON" in pi.order("rlm", "status")
    pi.restart("another")
    assert "Status: ON" in pi.order("rlm")
    pi.leaf = before
    assert "Status: OFF" in pi.order("rlm", "status")


@pytest.mark.parametrize("args", ["", "a.txt 5-2", "a.txt 0", "a.txt 99-100", "a.txt 3-", "a.txt -3", "a.txt three"])
def test_a_refresh_that_cannot_be_meant_says_what_is_wrong(pi: FakePi, args: str) -> None:
    answer = pi.ask("command", name="readcache-refresh", args=args)
    assert (answer["level"], answer["entries"]) == ("error", [])


def test_a_refresh_takes_lines_as_the_command_does_and_a_file_with_the_whole_name_first(pi: FakePi) -> None:
    (pi.folder / "notes 3").write_text(TEXT, encoding="utf-8")
    told = "[readcache-refresh] invalidated"
    assert pi.order("readcache-refresh", "a.txt 3") == f"{told} lines 3-41 for a.txt"
    assert pi.order("readcache-refresh", "a.txt  3-5 ") == f"{told} lines 3-5 for a.txt"
    assert pi.order("readcache-refresh", "gone.txt 3-5") == f"{told} lines 3-5 for gone.txt"
    assert pi.order("readcache-refresh", "notes 3") == f"{told} full scope for notes 3"
    assert pi.order("readcache-refresh", '"notes 3" 4-5') == f"{told} lines 4-5 for notes 3"


EDITS = [
    {"oldText": "line 30 of", "newText": "line thirty of"},
    {"oldText": "line 5 of the text\n", "newText": ""},
    {"oldText": "line 12 of", "newText": "put in\nline twelve of"},
]


def test_an_edit_with_several_replacements_moves_what_is_known(pi: FakePi) -> None:
    pi.call(read())
    pi.call(("edit", {"path": "a.txt", "edits": EDITS}))
    for _ in range(2):
        (told,) = pi.call(read())
        assert "line thirty of the text" in told
        assert "line 20 of the text" not in told, "the model knows where it is"
        assert "[readcache:" in told
        pi.leaf = pi.branch()[-3]["id"]
        pi.restart("another")  # finds only the branch


@pytest.mark.parametrize("shown", ["edit", "read", "changed by an extension", "another edit"])
def test_what_was_shown_or_edited_last_ends_an_earlier_text_also_without_a_record(pi: FakePi, shown: str) -> None:
    """The file is as it was read at first. But that is not what the model saw or made last."""
    (pi.folder / "b.txt").write_text(TEXT, encoding="utf-8")
    pi.call(read(), read("b.txt"))
    if shown == "another edit":  # with a replacement that does not lead to what the file says
        (pi.folder / "a.txt").write_text(TEXT.replace("line 7 of", "line seven of"), encoding="utf-8")
    pi.is_off = shown == "read"
    if shown in ("edit", "another edit"):
        pi.call(("edit", {"path": "a.txt", "edits": EDITS}))
    else:
        (pi.folder / "a.txt").write_text(TEXT.replace("line 7 of", "line seven of"), encoding="utf-8")
        pi.call(read())
    if shown == "changed by an extension":
        pi.entries[pi.leaf or ""]["message"]["content"][0]["text"] = TEXT.replace("line 7 of", "line 7.0 of")
    pi.is_off = False
    (pi.folder / "a.txt").write_text(TEXT, encoding="utf-8")
    for _ in range(2):
        told, other = pi.call(read(), read("b.txt"))
        assert told != WHOLE
        assert "line 7 of" in told if shown != "edit" else "line 5 of" in told
        assert other == WHOLE, "other files are as they were"
        pi.leaf = pi.branch()[-4]["id"]
        pi.restart("another")


def test_what_a_tool_stored_is_on_the_branch_though_another_process_is_told_its_result(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    with pagein.open(tmp_path / "s.pagein", workspace=tmp_path) as engine:
        pi = FakePi(engine, tmp_path, PiSettings(pages=True))
        pi.say("take it in")
        pi.request()
        call = {"type": "toolCall", "id": "call_x", "name": "rlm_ingest", "arguments": {"paths": ["a.txt"]}}
        pi.add("message", message={"role": "assistant", "content": [call], "timestamp": 1})
        answer = pi.ask("tool", call={"id": "call_x", "name": "rlm_ingest", "input": {"paths": ["a.txt"]}})
        result = {"role": "toolResult", "toolCallId": "call_x", "toolName": "rlm_ingest", "timestamp": 1}
        pi.add("message", message={**result, "content": [{"type": "text", "text": answer["text"]}], "isError": False})
        pi._send("settle", {})
        pi.host.close()  # the person ends pi before the next request
        with pagein.open(tmp_path / "s.pagein", workspace=tmp_path) as again:
            pi.restart("s1", again)
            assert "a.txt (full file)" in pi.order("rlm", "store")


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.sampled_from(["a.txt", "b.txt"])),
        st.tuples(st.just("range"), st.sampled_from(["a.txt", "b.txt"])),
        st.tuples(st.just("both"), st.sampled_from(["a.txt", "b.txt"])),
        st.tuples(st.just("change"), st.sampled_from(["a.txt", "b.txt"])),
        st.tuples(st.just("edit"), st.sampled_from(["a.txt", "b.txt"])),
        st.tuples(st.just("edits"), st.sampled_from(["a.txt", "b.txt"])),
        st.tuples(st.just("off"), st.sampled_from(["a.txt", "b.txt"])),
        st.tuples(st.just("write"), st.sampled_from(["a.txt", "b.txt"])),
        st.tuples(st.just("refresh"), st.sampled_from(["a.txt", "b.txt", "a.txt 2-5"])),
        st.tuples(st.just("go"), st.integers(0, 30)),
        st.tuples(st.just("go"), st.just(0)),
        st.tuples(st.just("compact"), st.booleans()),
    ),
    max_size=14,
)


@settings(max_examples=60)
@given(steps=STEPS)
@example(
    steps=[("both", "a.txt"), ("refresh", "a.txt"), ("both", "a.txt")]
)  # the same answer before and behind a refresh
def test_a_new_process_answers_as_the_one_that_saw_everything(steps: list[tuple[str, object]]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("a.txt", "b.txt"):
            (folder / file).write_text(TEXT, encoding="utf-8")
        with pagein.open(":memory:", workspace=folder) as engine:
            pi = FakePi(engine, folder)
            pi.say("begin")
            for number, step in enumerate(steps):
                _do(pi, step, number)
                _check_grounds(pi)
            seen = pi.request()
            now = {file: pi.host.answer(_asked(pi, file), pi.link) for file in ("a.txt", "b.txt")}
            pi.restart("another")
            assert pi.request() == seen
            assert {file: pi.host.answer(_asked(pi, file), pi.link) for file in ("a.txt", "b.txt")} == now


def _check_grounds(pi: FakePi) -> None:
    """Every marker of the branch has something on the branch that it can stand on: since the last compaction and refresh."""
    calls: dict[str, str] = {}
    grounds: set[str] = set()
    for entry in pi.branch():
        message = entry.get("message", {})
        if entry["type"] == "compaction":
            grounds.clear()
        elif entry.get("customType") == "pi-readcache" and entry["data"]["scopeKey"] == "full":
            grounds.discard(Path(entry["data"]["pathKey"]).name)
        elif message.get("role") == "assistant":
            made = {one["id"]: one["arguments"]["path"] for one in message["content"]}
            calls |= made
            grounds |= set(made.values()) if len(made) > 1 else set()  # these see one another
        elif message.get("role") == "toolResult" and not message["isError"]:
            file = calls[message["toolCallId"]]
            assert file in grounds or "[readcache:" not in message["content"][0]["text"], entry
            grounds.add(file)


def _asked(pi: FakePi, file: str) -> object:
    text = (pi.folder / file).read_text(encoding="utf-8")
    return ToolResultEvent(BranchDelta(pi.leaf), ModelCall(f"last_{file}", "read", {"path": file}), text)


def _do(pi: FakePi, step: tuple[str, object], number: int) -> None:
    match step:
        case ("read" | "off") as kind, str(file):
            pi.is_off = kind == "off"
            pi.call(read(file))
            pi.is_off = False
        case "range", str(file):
            pi.call(read(file, offset=4, limit=20))
        case "both", str(file):
            pi.call(read(file), read(file, offset=2, limit=9), read("none.txt"), order=(2, 1, 0))
        case "change", str(file):
            text = (pi.folder / file).read_text(encoding="utf-8").splitlines(keepends=True)
            text.insert(number % 9, f"put in {number}\n")
            (pi.folder / file).write_text("".join(text), encoding="utf-8")
        case ("edit" | "edits") as kind, str(file):
            edits = [{"oldText": "line 20 of", "newText": f"line 20 ({number})\nof"}]
            more = [EDITS[0], {"oldText": "line 9 of", "newText": f"line 9 ({number}) of"}]
            pi.call(("edit", {"path": file, "edits": edits if kind == "edit" else more}))
        case "write", str(file):
            pi.call(("write", {"path": file, "content": TEXT.replace("line 7 ", f"line seven {number} ")}))
        case "refresh", str(args):
            pi.order("readcache-refresh", args)
        case "go", int(place):
            pi.leaf = pi.branch()[place % len(pi.branch())]["id"]
        case "compact", bool(keeps):
            first = pi.branch()[-2 if keeps and len(pi.branch()) > 1 else -1]["id"]
            pi.add("compaction", summary="so far", firstKeptEntryId=first, tokensBefore=9)
            pi.say("go on")
