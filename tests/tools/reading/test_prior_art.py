"""The portable cases of the known implementation, run through the tool `read`, and each of its defects."""

from pathlib import Path

import pytest
from tests.tools.reading.reading_calls import error_of, guarded, meta_of, read
from tests.tools.recall_sessions import Room

from pagein.engine.session import Session
from pagein.model.messages import Message, Text
from pagein.policy.guards.judgement import FEWER_LINES, FEWER_RESULTS, LESS_CONTEXT, UNRELATED
from pagein.testing.desk import numbered_text
from pagein.tools.calls import Call
from pagein.tools.catalogue import answer


def metrics(session: Session) -> dict[str, int | float]:
    return session.guards.metrics


def files(room: Room, count: int, lines: int = 3) -> list[str]:
    names = [f"f{number}.txt" for number in range(count)]
    for name in names:
        room.put(name, "".join(f"{name} line {row}\n" for row in range(lines)))
    return names


def search(session: Session, pattern: str) -> None:
    assert not answer(session, "search", Call({"pattern": pattern, "search_type": "code"})).is_error


# --- budget guard


def test_budget_a_limit_above_the_maximum_is_a_soft_limit(room: Room) -> None:
    room.put("a.txt", "x\n" * 1000)
    told = read(guarded(room), "file", "a.txt", limit=1000)
    found = meta_of(told)["stabilization"]
    assert found["budget_state"] == "SOFT_LIMIT"
    assert FEWER_LINES in found["warnings"]
    assert told.details["location"] == {"file": "a.txt", "line": 1, "end_line": 300}


def test_budget_the_26th_read_is_refused_with_its_reason_and_a_way_on(room: Room) -> None:
    session = guarded(room)
    for name in files(room, 25):
        assert read(session, "file", name).details["ok"]
    room.put("last.txt", "one more\n")
    told = read(session, "file", "last.txt")
    error = error_of(told)
    assert error["code"] == "BUDGET_EXCEEDED"
    assert error["message"].startswith("Read budget exceeded. Use search to narrow scope")
    assert meta_of(told)["stabilization"]["reasons"] == ["BUDGET_HARD_LIMIT"]
    assert meta_of(told)["stabilization"]["budget_state"] == "HARD_LIMIT"
    (call,) = error["next_calls"]
    assert call["tool"] == "search"
    assert not answer(session, "search", Call(call["arguments"])).is_error


def test_budget_results_and_context_of_a_snippet_are_bounded_and_both_told(room: Room) -> None:
    room.put("a.txt", "".join(f"needle {number}\n" + "\n" * 60 for number in range(100)))
    told = read(guarded(room), "snippet", "a.txt", pattern="needle", limit=999, context_lines=999)
    found = meta_of(told)["stabilization"]
    assert len(meta_of(told)["hits"]) <= 20
    assert {FEWER_RESULTS, LESS_CONTEXT} <= set(found["warnings"])


def test_budget_characters_returned_and_counted_are_bounded(room: Room) -> None:
    room.put("a.txt", numbered_text(300))
    session = guarded(room)
    told = read(session, "snippet", "a.txt", pattern="line", max_preview_chars=120)
    assert 0 < len(told.text) <= 120
    session = guarded(room, name="other")
    told = read(session, "file", "a.txt", max_preview_chars=120)
    assert metrics(session)["reads_chars_total"] == len(told.text) <= 120


def test_budget_a_large_diff_is_bounded(room: Room) -> None:
    room.put("a.txt", "")
    content = "".join(f"line {number} of a long text\n" for number in range(5000))
    told = read(guarded(room), "diff_preview", "a.txt", against="WORKTREE", content=content, max_preview_chars=999_999)
    assert len(told.text) <= 12_000
    assert meta_of(told)["stabilization"]["budget_state"] == "SOFT_LIMIT"


# --- relevance


def test_relevance_an_unrelated_target_warns_suggests_a_search_and_lists_alternatives(room: Room) -> None:
    room.put("a.py", "needle = 1\n")
    room.put("b.py", "other = 1\n")
    session = guarded(room)
    search(session, "needle")
    told = read(session, "file", "b.py")
    found = meta_of(told)["stabilization"]
    assert UNRELATED in found["warnings"]
    assert (found["suggested_next_action"], found["alternatives"]) == ("search", ["a.py"])
    assert told.text == f"[pagein: {UNRELATED} Related: a.py.]\nother = 1\n"


def test_relevance_a_target_of_the_search_does_not_warn(room: Room) -> None:
    room.put("src/a.py", "needle = 1\n")
    session = guarded(room)
    search(session, "needle")
    for target in ("src/a.py", "./src/a.py", str(room.folder / "src" / "a.py")):
        assert meta_of(read(session, "file", target))["stabilization"]["warnings"] == []


def test_relevance_can_be_a_refusal(room: Room) -> None:
    room.put("a.py", "needle = 1\n")
    room.put("b.py", "other = 1\n")
    session = guarded(room, relevance="refuse")
    search(session, "needle")
    error = error_of(read(session, "file", "b.py"))
    assert error["code"] == "LOW_RELEVANCE"
    assert "a.py" in error["message"]


# --- aggregation, metrics


def test_aggregation_the_same_read_twice_is_one_item_of_the_same_bundle(room: Room) -> None:
    room.put("a.txt", numbered_text(60))
    session = guarded(room)
    first, again = read(session, "file", "a.txt"), read(session, "file", "a.txt")
    assert meta_of(first)["context_bundle_id"] == meta_of(again)["context_bundle_id"]
    assert meta_of(again)["bundle_items"] == 1
    assert len(again.text) < len(first.text) / 10, "and it really shrinks"


def test_metrics_a_read_after_a_search(room: Room) -> None:
    room.put("a.txt", "one\ntwo\nthree")
    session = guarded(room)
    search(session, "two")
    told = read(session, "file", "a.txt")
    assert metrics(session) == {
        "reads_count": 1,
        "reads_lines_total": 3,
        "reads_chars_total": len(told.text),
        "search_count": 1,
        "read_after_search_ratio": 1.0,
        "avg_read_span": 3.0,
        "max_read_span": 3,
        "preview_degraded_count": 0,
    }
    assert meta_of(told)["stabilization"]["metrics_snapshot"] == metrics(session)


def test_metrics_a_search_of_long_hits_is_degraded_and_no_read(room: Room) -> None:
    for number in range(10):
        room.put(f"m{number}.txt", "needle" + "x" * 2000)
    session = guarded(room)
    search(session, "needle")
    found = metrics(session)
    assert (found["search_count"], found["preview_degraded_count"]) == (1, 1)
    assert (found["reads_count"], found["read_after_search_ratio"]) == (0, 0.0)


def test_metrics_two_sessions_and_two_folders_are_apart(room: Room, tmp_path: Path) -> None:
    room.put("a.txt", "one\n")
    one, other = guarded(room), guarded(room, name="other")
    read(one, "file", "a.txt")
    assert metrics(other)["reads_count"] == 0
    elsewhere = Room(tmp_path / "elsewhere", room.store)
    elsewhere.put("a.txt", "one\n")
    away = guarded(elsewhere, name="away")
    read(away, "file", "a.txt")
    assert (metrics(one)["reads_count"], metrics(away)["reads_count"]) == (1, 1)
    elsewhere.close()


# --- defects of the known implementation


def test_u1_a_hard_limit_recovers_and_rereads_cost_nothing(room: Room) -> None:
    session = guarded(room)
    names = files(room, 26, lines=30)
    for name in names[:25]:
        read(session, "file", name)
    again = read(session, "file", names[3])
    assert again.text.endswith("\n[readcache: unchanged, 31 lines]"), "what costs nothing is always answered"
    assert error_of(read(session, "file", names[25]))["code"] == "BUDGET_EXCEEDED"
    session.append(Message("user", (Text("go on"),)))
    assert read(session, "file", names[25]).details["ok"]


def test_u1_a_narrowing_search_restores_the_budget(room: Room) -> None:
    session = guarded(room)
    names = files(room, 26)
    for name in names[:25]:
        read(session, "file", name)
    search(session, f"{names[25]} line 1")
    assert read(session, "file", names[25]).details["ok"]


def test_u2_sessions_share_no_counter(room: Room) -> None:
    names = files(room, 26)
    session = guarded(room)
    for name in names[:25]:
        read(session, "file", name)
    assert read(guarded(room, name="other"), "file", names[25]).details["ok"]


def test_u3_a_search_without_hits_forgets_the_places_of_the_one_before(room: Room) -> None:
    room.put("a.py", "needle = 1\n")
    room.put("b.py", "other = 1\n")
    session = guarded(room)
    search(session, "needle")
    search(session, "nowhere to be found")
    assert meta_of(read(session, "file", "b.py"))["stabilization"]["warnings"] == []


@pytest.mark.parametrize("folder", ["vendor", "node_modules", ".git", "dist"])
def test_u4_excluded_folders_are_refused(room: Room, folder: str) -> None:
    room.put(f"{folder}/a.txt", "x\n")
    assert error_of(read(guarded(room), "file", f"{folder}/a.txt"))["code"] == "EXCLUDED_FOLDER"
    warned = read(guarded(room, name="b", folders="warn"), "file", f"{folder}/a.txt")
    assert meta_of(warned)["stabilization"]["warnings"] == [f"Files in {folder}/ are excluded from reads."]


def test_u5_overlapping_reads_of_one_file_are_sent_once(room: Room) -> None:
    room.put("a.txt", numbered_text(300))
    session = guarded(room)
    read(session, "snippet", "a.txt", start_line=1, end_line=100)
    told = read(session, "snippet", "a.txt", start_line=50, end_line=150)
    assert "[readcache: unchanged in lines 50-100 of 301]" in told.text
    assert "line 99 " not in told.text
    assert metrics(session)["reads_lines_total"] == 150


def test_u6_estimate_degradation_and_place_are_there(room: Room) -> None:
    room.put("a.txt", numbered_text(60))
    told = read(guarded(room), "file", "a.txt")
    assert meta_of(told)["token_estimate"] > 60
    assert meta_of(told)["preview_degraded"] is False
    assert told.details["location"] == {"file": "a.txt", "line": 1, "end_line": 61}


def test_u7_modes_are_validated_and_their_arguments_obeyed(room: Room) -> None:
    room.put("a.txt", numbered_text(60))
    session = guarded(room)
    assert error_of(read(session, "file", "a.txt", against="HEAD"))["code"] == "INVALID_ARGS"
    told = read(session, "snippet", "a.txt", start_line=5, end_line=6)
    assert told.text.startswith("a.txt:5-6 of 61\nline 5 ")
    same = read(session, "diff_preview", "a.txt", against="WORKTREE", content=numbered_text(60))
    assert meta_of(same)["against"] == "WORKTREE"


def test_u8_a_changed_file_is_never_answered_from_memory(room: Room) -> None:
    room.put("a.py", "def f():\n    return 1\n")
    session = guarded(room)
    for mode, target, arguments in (
        ("file", "a.py", {}),
        ("snippet", "a.py", {"start_line": 1, "end_line": 2}),
        ("snippet", ".", {"pattern": "return"}),
    ):
        room.put("a.py", "def f():\n    return 1\n")
        read(session, mode, target, **arguments)
        room.put("a.py", "def f():\n    return 2\n")
        assert "return 2" in read(session, mode, target, **arguments).text


def test_u9_lines_are_those_of_the_host(room: Room) -> None:
    room.put("a.txt", "one\x0bstill\x0cone\u2028one\ntwo\n")
    session = guarded(room)
    told = read(session, "snippet", "a.txt", start_line=2)
    assert told.text.startswith("a.txt:2-2 of 3\ntwo\n")
    assert meta_of(told)["total_lines"] == 3
