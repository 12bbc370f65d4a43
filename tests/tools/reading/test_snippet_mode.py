"""`read` with mode=snippet: lines by their numbers, and the places of a pattern."""

import pytest
from tests.tools.reading.reading_calls import error_of, guarded, meta_of, read
from tests.tools.recall_sessions import Room

from pagein.policy.guards.judgement import LESS_CONTEXT
from pagein.testing.desk import numbered_text


def test_lines_by_their_numbers_with_their_place(room: Room) -> None:
    room.put("a.txt", numbered_text(60))
    told = read(guarded(room), "snippet", "a.txt", start_line=10, end_line=12, context_lines=2)
    head, *rows = told.text.split("\n")
    assert head == "a.txt:8-14 of 61"
    assert [row.split(" ::")[0] for row in rows[:7]] == [f"line {number}" for number in range(8, 15)]
    assert told.details["location"] == {"file": "a.txt", "line": 8, "end_line": 14}
    assert not meta_of(told)["truncated"]


def test_one_line_and_the_edges_of_a_file(room: Room) -> None:
    room.put("a.txt", "one\r\ntwo\u2028still two\r\nthree")
    session = guarded(room)
    assert read(session, "snippet", "a.txt", start_line=2).text.startswith(
        "a.txt:2-2 of 3\ntwo\u2028still two\r\n\n[1 more"
    )
    assert read(session, "snippet", "a.txt", start_line=3, end_line=900).text == "a.txt:3-3 of 3\nthree"
    assert read(session, "snippet", "a.txt", start_line=1, context_lines=20).details["location"] == {
        "file": "a.txt", "line": 1, "end_line": 3
    }  # fmt: skip
    assert error_of(read(session, "snippet", "a.txt", start_line=4))["code"] == "OUT_OF_RANGE"
    assert read(session, "snippet", "a.txt:2-3", bypass_cache=True).text.endswith("two\u2028still two\r\nthree")
    assert error_of(read(session, "snippet", "a:b"))["code"] == "INVALID_ARGS"


def test_lines_that_were_shown_come_back_as_a_marker_and_shown_lines_are_known_later(room: Room) -> None:
    room.put("a.txt", numbered_text(60))
    session = guarded(room)
    read(session, "snippet", "a.txt", start_line=10, end_line=30)
    assert read(session, "snippet", "a.txt", start_line=12, end_line=20).text == (
        "a.txt:12-20 of 61\n[readcache: unchanged in lines 12-20 of 61]"
    )
    whole = read(session, "file", "a.txt").text
    assert "[readcache: unchanged in lines 10-30 of 61]" in whole
    assert "line 20 " not in whole


def test_the_places_of_a_pattern_each_with_its_line(room: Room) -> None:
    room.put("a.py", "".join(f"def f{number}():\n    return {number}\n\n\n\n" for number in range(20)))
    told = read(guarded(room), "snippet", "a.py", pattern="/def f(3|9)\\(/", context_lines=1)
    assert told.text == (
        "a.py:15-47 of 101, 2 matches: lines 16, 46\n\ndef f3():\n    return 3\n"
        "[readcache: lines 18-44 of 101 not shown]\n\ndef f9():\n    return 9\n\n"
        "[54 more lines in file. Use mode='file' with offset=48 to continue.]"
    )
    assert meta_of(told)["hits"] == [{"file": "a.py", "line": line, "end_line": line, "column": 1} for line in (16, 46)]


def test_known_lines_among_the_places_are_markers_and_shown_places_are_known(room: Room) -> None:
    room.put("a.txt", numbered_text(100))
    session = guarded(room)
    read(session, "snippet", "a.txt", start_line=1, end_line=30)
    told = read(session, "snippet", "a.txt", pattern="/line (20|60) /", context_lines=4)
    assert "[readcache: unchanged in lines 16-24 of 101]" in told.text
    assert "line 60 " in told.text
    assert "line 20 " not in told.text
    assert read(session, "snippet", "a.txt", start_line=57, end_line=63).text.endswith(
        "[readcache: unchanged in lines 57-63 of 101]"
    )


def test_lines_between_the_places_are_in_no_figure(room: Room) -> None:
    room.put("a.txt", numbered_text(400))
    told = meta_of(read(guarded(room), "snippet", "a.txt", pattern="/line (10|390) /"))["stabilization"]
    figures = told["metrics_snapshot"]
    assert (figures["reads_lines_total"], figures["avg_read_span"], figures["max_read_span"]) == (10, 10.0, 10)
    assert told["bundle_lines"] == 10


def test_matches_are_counted_and_shown_from_any_on(room: Room) -> None:
    room.put("a.txt", numbered_text(100))
    session = guarded(room)
    told = read(session, "snippet", "a.txt", pattern="line", limit=3, offset=5, context_lines=0)
    assert [hit["line"] for hit in meta_of(told)["hits"]] == [5, 6, 7]
    assert (meta_of(told)["matches"], meta_of(told)["next_offset"]) == (100, 8)
    assert (meta_of(told)["truncated"], meta_of(told)["preview_degraded"]) == (True, False), "the caller's own limit"
    assert error_of(read(session, "snippet", "a.txt", pattern="line", offset=101))["code"] == "OUT_OF_RANGE"


def test_nothing_found_is_said_with_a_search_to_try(room: Room) -> None:
    room.put("a.txt", "x\n")
    session = guarded(room)
    further = {"a.txt": {"pattern": "needle", "search_type": "code", "limit": 5}}
    further["."] = {"pattern": "needle", "everything": True}
    for target, arguments in further.items():
        error = error_of(read(session, "snippet", target, pattern="needle"))
        assert error["code"] == "NO_RESULTS"
        assert error["next_calls"] == [{"tool": "search", "arguments": arguments}]


def test_an_expression_that_cannot_be_used_is_searched_as_text_and_says_so(room: Room) -> None:
    room.put("a.txt", "x /(/ y\n")
    told = read(guarded(room), "snippet", "a.txt", pattern="/(/")
    assert meta_of(told)["notice"]
    assert "literal" in read(guarded(room, name="b"), "snippet", "a.txt", pattern="/)/").text


def test_the_workspace_is_searched_with_every_place_and_a_call_for_it(room: Room) -> None:
    room.put("src/a.py", "import x\nneedle = 1\n")
    room.put("b.py", "needle\n" * 3)
    room.put(".env", "needle=1\n")
    room.put("vendor/c.py", "needle\n")
    session = guarded(room)
    told = read(session, "snippet", ".", pattern="needle")
    rows = told.text.split("\n")
    assert rows[0] == "4 matches in 2 files"
    assert sorted(rows[1:]) == ["b.py:1: needle", "b.py:2: needle", "b.py:3: needle", "src/a.py:2: needle = 1"]
    hits = meta_of(told)["hits"]
    assert {(hit["file"], hit["line"]) for hit in hits} == {("b.py", 1), ("b.py", 2), ("b.py", 3), ("src/a.py", 2)}
    for call in meta_of(told)["next_calls"]:
        arguments = dict(call["arguments"])
        assert read(session, arguments.pop("mode"), arguments.pop("target"), **arguments).details["ok"]
    inside = read(session, "snippet", "src", pattern="needle", context_lines=1)
    assert inside.text == "src/a.py:1-3 of 3, 1 match: line 2\nimport x\nneedle = 1\n"


def test_a_search_of_the_workspace_goes_on_behind_its_last_match(room: Room) -> None:
    for name in "abc":
        room.put(f"{name}.txt", "needle\n" * 4)
    session = guarded(room)
    seen: list[tuple[str, int]] = []
    offset: int | None = 1
    while offset is not None:
        meta = meta_of(read(session, "snippet", ".", pattern="needle", limit=5, offset=offset))
        seen += [(hit["file"], hit["line"]) for hit in meta["hits"]]
        offset = meta.get("next_offset")
    assert sorted(seen) == [(f"{name}.txt", line) for name in "abc" for line in (1, 2, 3, 4)]


def test_a_search_of_an_excluded_folder_follows_the_setting(room: Room) -> None:
    room.put("vendor/a.py", "needle\n")
    assert error_of(read(guarded(room), "snippet", "vendor", pattern="needle"))["code"] == "EXCLUDED_FOLDER"
    told = read(guarded(room, name="b", folders="warn"), "snippet", "vendor", pattern="needle")
    assert told.text.endswith("vendor/a.py:1: needle")


def test_without_preview_only_places_are_told(room: Room) -> None:
    room.put("a.txt", numbered_text(60))
    session = guarded(room)
    said = read(session, "snippet", "a.txt", pattern="line 3", preview_mode="none").text
    assert said.startswith("a.txt:1-")
    assert "::" not in said
    assert read(session, "snippet", ".", pattern="line 33", preview_mode="none").text == "1 match in 1 file\na.txt:33"
    assert read(session, "snippet", "a.txt", start_line=3, preview_mode="none").text == "a.txt: lines 3-3 of 61"
    assert "readcache" not in read(session, "file", "a.txt").text


@pytest.mark.parametrize("most", [100, 130, 400, 2_000])
@pytest.mark.parametrize("arguments", [{"start_line": 3, "end_line": 90}, {"pattern": "line", "context_lines": 9}])
def test_an_answer_has_no_more_characters_than_it_may(room: Room, most: int, arguments: dict[str, object]) -> None:
    room.put("a/folder/with a long name/a.txt", numbered_text(200))
    told = read(guarded(room), "snippet", "a/folder/with a long name/a.txt", max_preview_chars=most, **arguments)
    assert 0 < len(told.text) <= most
    assert meta_of(told)["preview_degraded"]


def test_a_match_in_an_endless_line_shows_a_part_of_it(room: Room) -> None:
    room.put("a.min.js", "x" * 30_000 + "needle" + "y" * 30_000)
    told = read(guarded(room), "snippet", "a.min.js", pattern="needle", max_preview_chars=400)
    assert len(told.text) <= 400
    assert "xxneedleyy" in told.text
    assert "[Line 1 has 60006 characters and is cut; shown from character 299" in told.text
    begin = read(guarded(room), "file", "a.min.js", max_preview_chars=400)
    assert begin.text.endswith("xx\n\n[Line 1 has 60006 characters and is cut.]")


def test_lines_that_do_not_fit_are_named_with_the_call_that_reads_them(room: Room) -> None:
    room.put("a.txt", "".join(f"{number} {'x' * 70}\n" for number in range(1, 41)))
    session = guarded(room)
    shown: list[str] = []
    call: dict[str, object] = {"mode": "snippet", "target": "a.txt", "start_line": 2, "end_line": 30}
    while call:
        told = read(session, **call, max_preview_chars=900)  # type: ignore[arg-type]
        head, *rows = told.text.split("\n")
        shown += [row.split()[0] for row in rows if row.endswith("xxx")]
        place, meta = told.details["location"], meta_of(told)
        assert (f", lines {place['end_line'] + 1}-30 left out" in head) == meta["truncated"]  # type: ignore[index]
        call = meta["next_calls"][0]["arguments"] if meta["truncated"] else {}
    assert shown == [str(number) for number in range(2, 31)]
    again = read(session, "snippet", "a.txt", start_line=2, end_line=30, max_preview_chars=900)
    assert again.text.startswith("a.txt:2-")
    assert "unchanged in lines 2-" in again.text
    assert "-30 left out\n" in again.text


def test_an_answer_with_more_places_says_how_to_go_on(room: Room) -> None:
    room.put("a.py", "x = 1\n" * 8)
    room.put("b.py", "x = 2\n" * 4)
    session = guarded(room)
    in_file = read(session, "snippet", "a.py", pattern="x", limit=2)
    assert in_file.text.startswith("a.py:1-4 of 9, 2 of 8 matches: lines 1, 2. Use offset=3 for more\n")
    first = read(session, "snippet", ".", pattern="x", limit=5)
    assert first.text.startswith("matches 1-5 of 12 in 2 files. Use offset=6 for more\n")
    assert meta_of(first)["next_offset"] == 6
    last = read(session, "snippet", ".", pattern="x", limit=20, offset=6)
    assert last.text.startswith("matches 6-12 of 12 in 2 files\n")
    short = read(session, "snippet", ".", pattern="x", max_preview_chars=120)
    shown = len(meta_of(short)["hits"])
    assert short.text.startswith(f"matches 1-{shown} of 12 in 2 files. Use offset={shown + 1} for more\n")
    assert short.text.count("py:") == shown


def test_the_notice_behind_lines_names_the_mode_of_its_offset(room: Room) -> None:
    room.put("a.txt", numbered_text(60))
    session = guarded(room)
    told = read(session, "snippet", "a.txt", pattern="line 7 ")
    assert told.text.endswith("[52 more lines in file. Use mode='file' with offset=10 to continue.]")
    assert read(session, "file", "a.txt", offset=10, limit=1).text.startswith("line 10 ")


def test_a_line_that_is_shown_whole_is_not_called_cut(room: Room) -> None:
    room.put("a.txt", "short\n" * 30 + "x" * 500)
    session = guarded(room)
    told = read(session, "snippet", "a.txt", start_line=4, end_line=30, max_preview_chars=100)
    assert told.text == "a.txt:4-4 of 31, lines 5-30 left out\nshort\n\n[Line 4 of 31.]"
    assert read(session, "snippet", "a.txt", start_line=31, max_preview_chars=100).text.endswith(
        "[Line 31 has 500 characters and is cut.]"
    )


def test_places_of_a_folder_that_touch_are_shown_in_one_piece(room: Room) -> None:
    room.put("src/a.py", "a\nneedle\nneedle\nb\nc\nd\nneedle\n")
    room.put("src/b.py", "needle")
    told = read(guarded(room), "snippet", "src", pattern="needle", context_lines=1)
    assert told.text == (
        "4 matches in 2 files\nsrc/b.py:1-1\nneedle\nsrc/a.py:1-4\na\nneedle\nneedle\nb\nsrc/a.py:6-8\nd\nneedle\n"
    )
    assert [hit["line"] for hit in meta_of(told)["hits"]] == [1, 2, 3, 7]


def test_places_that_are_all_in_one_file_of_a_folder_are_a_proven_read_of_it(room: Room) -> None:
    room.put("src/a.txt", numbered_text(60))
    room.put("src/b.txt", "nothing\n")
    session = guarded(room)
    read(session, "snippet", "src/a.txt", start_line=10, end_line=30)
    told = read(session, "snippet", "src", pattern="line 20 ", context_lines=5)
    assert told.text == ("src/a.txt:15-25 of 61, 1 match: line 20\n[readcache: unchanged in lines 15-25 of 61]")
    assert meta_of(told)["hits"] == [{"file": "src/a.txt", "line": 20, "end_line": 20, "column": 1}]
    read(session, "snippet", "src", pattern="line 50 ", context_lines=5)
    assert "unchanged in lines 46-54" in read(session, "snippet", "src/a.txt", start_line=46, end_line=54).text


def test_what_an_answer_about_several_files_shows_is_shown_again_later(room: Room) -> None:
    for name in ("a", "b"):
        room.put(f"src/{name}.txt", numbered_text(60))
    session = guarded(room)
    for _ in range(2):
        told = read(session, "snippet", "src", pattern="line 20 ", context_lines=9)
        assert "readcache" not in told.text
    assert "readcache" not in read(session, "snippet", "src/a.txt", start_line=12, end_line=28).text


def test_nothing_is_called_reduced_where_everything_is_shown(room: Room) -> None:
    room.put("a.txt", "needle\nother\n")
    room.put("b.txt", "needle\n")
    session = guarded(room)
    for target in ("a.txt", "."):
        told = read(session, "snippet", target, pattern="needle", limit=999, context_lines=999)
        found = meta_of(told)["stabilization"]
        assert (found["budget_state"], found["warnings"], found["reasons"]) == ("OK", [], [])
        assert "[pagein:" not in told.text
    around = read(session, "snippet", "a.txt", start_line=1, context_lines=999)
    assert meta_of(around)["stabilization"]["budget_state"] == "OK"
    room.put("long.txt", numbered_text(400))
    known = guarded(room, "off", name="known")
    read(known, "file", "long.txt")
    bounded = guarded(room, name="known")
    again = read(bounded, "file", "long.txt")
    assert again.text == "[readcache: unchanged, 401 lines]"
    assert meta_of(again)["stabilization"]["budget_state"] == "OK"


def test_context_that_a_budget_leaves_out_is_told(room: Room) -> None:
    for name in ("a", "b"):
        room.put(f"src/{name}.txt", "\n" * 60 + "needle" + "\n" * 60)
    session = guarded(room)
    for target, arguments in (
        ("src", {"pattern": "needle"}),
        ("src/a.txt", {"pattern": "needle"}),
        ("src/b.txt", {"start_line": 61}),
    ):
        told = read(session, "snippet", target, context_lines=50, **arguments)
        assert LESS_CONTEXT in meta_of(told)["stabilization"]["warnings"], target
        assert f"[pagein: {LESS_CONTEXT}]" in told.text


def test_places_in_a_folder_are_a_search_and_restore_a_spent_budget(room: Room) -> None:
    for number in range(26):
        room.put(f"m{number}.txt", f"text {number}\n")
    room.put("src/a.txt", "needle\n")
    session = guarded(room)
    for number in range(25):
        assert read(session, "file", f"m{number}.txt").details["ok"]
    assert error_of(read(session, "file", "m25.txt"))["code"] == "BUDGET_EXCEEDED"
    refused = read(session, "snippet", ".", pattern="needle", context_lines=1)
    assert error_of(refused)["code"] == "BUDGET_EXCEEDED", "lines around the places are a read"
    told = read(session, "snippet", ".", pattern="needle")
    assert told.text == "1 match in 1 file\nsrc/a.txt:1: needle"
    found = meta_of(told)["stabilization"]
    assert (found["budget_state"], found["suggested_next_action"]) == ("OK", "read")
    assert (found["metrics_snapshot"]["reads_count"], found["metrics_snapshot"]["search_count"]) == (25, 1)
    assert meta_of(read(session, "file", "m25.txt"))["stabilization"]["alternatives"] == ["src/a.txt"]


def test_nothing_found_says_what_was_not_searched(room: Room) -> None:
    room.put(".gitignore", "out/\n")
    room.put("out/a.txt", "needle\n")
    room.put("a.txt", "one\ntwo\n")
    room.put(".env", "needle\n")
    session = guarded(room)
    assert "Git ignores all 1 files" in error_of(read(session, "snippet", "out", pattern="needle"))["message"]
    assert "1 file was not searched, such as .env: excluded." in read(session, "snippet", ".", pattern="needle").text
    room.put("a.bin", b"needle\0")
    assert "1 file has no text in UTF-8." in read(session, "snippet", ".", pattern="needle").text
    assert "line by line" in read(session, "snippet", "a.txt", pattern="/one\\ntwo/").text


def test_a_byte_order_mark_is_no_part_of_the_first_line(room: Room) -> None:
    room.put("a.py", "\ufeffdef f():\n    pass\n")
    session = guarded(room)
    told = read(session, "snippet", "a.py", pattern="/^def f/")
    assert meta_of(told)["hits"] == [{"file": "a.py", "line": 1, "end_line": 1, "column": 1}]
    assert read(session, "snippet", ".", pattern="/^def f/").text == "1 match in 1 file\na.py:1: def f():"


def test_a_match_behind_the_last_is_told_with_a_call_that_works(room: Room) -> None:
    room.put("a.py", "x\n")
    session = guarded(room)
    [call] = error_of(read(session, "snippet", "a.py", pattern="x", offset=5))["next_calls"]
    assert call["arguments"] == {"mode": "snippet", "target": "a.py", "pattern": "x"}


def test_the_place_in_front_is_that_of_the_lines_shown_in_a_small_room(room: Room) -> None:
    room.put("a.py", "".join(f"x += {number}\n" for number in range(90)))
    told = read(guarded(room), "snippet", "a.py", pattern="x", context_lines=5, max_preview_chars=158)
    assert told.text.startswith("a.py:1-1 of 91, 1 of 90 matches: line 1. Use offset=2 for more\nx += 0\n")
    assert told.details["location"] == {"file": "a.py", "line": 1, "end_line": 1}
    assert "[readcache: unchanged" not in told.text


def test_places_alone_keep_to_the_characters_too(room: Room) -> None:
    room.put("a.py", "x = 1\n" * 50)
    told = read(guarded(room), "snippet", "a.py", pattern="x", preview_mode="none", limit=20, max_preview_chars=100)
    assert told.text == "a.py:1-22 of 51, 20 of 50 matches"
    assert (len(meta_of(told)["hits"]), meta_of(told)["next_offset"]) == (20, 21)


@pytest.mark.parametrize("most", range(100, 160, 7))
@pytest.mark.parametrize("arguments", [{}, {"context_lines": 1}, {"offset": 2}])
def test_places_in_a_folder_keep_to_the_characters(room: Room, most: int, arguments: dict[str, object]) -> None:
    for number in range(9):
        room.put(f"src/name{number}.txt", "x\n" * number + f"needle {number}\n")
    told = read(guarded(room, "balanced"), "snippet", ".", pattern="needle", max_preview_chars=most, **arguments)
    assert 60 < len(told.text) <= most
    assert meta_of(told)["preview_degraded"]


def test_no_search_for_blanks_is_proposed(room: Room) -> None:
    room.put("a.txt", "x")
    for target in ("a.txt", "."):
        assert error_of(read(guarded(room), "snippet", target, pattern="\t"))["next_calls"] == []
