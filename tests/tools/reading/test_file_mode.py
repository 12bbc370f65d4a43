"""`read` with mode=file: today's reading in the contract, cut to the budget, exact to the byte."""

import pytest
from tests.tools.reading.reading_calls import error_of, guarded, meta_of, read
from tests.tools.recall_sessions import Room

from pagein.testing.desk import numbered_text

EXACT = {
    "crlf": "a\r\nb\r\n",
    "byte order mark": "\ufeffa\nb\n",
    "no final newline": "a\nb",
    "line separator": "a\u2028b\u2029c\x0b\x0cd\n",
    "empty": "",
    "blank lines": "\n\n\n",
}


@pytest.mark.parametrize("text", EXACT.values(), ids=EXACT)
def test_a_file_is_shown_exactly_with_the_line_numbers_of_the_host(room: Room, text: str) -> None:
    room.put("a.txt", text)
    session = guarded(room)
    told = read(session, "file", "a.txt")
    assert told.text == text == session.fork("other").read(room.folder / "a.txt", bypass_cache=True).text
    assert told.details["location"] == {"file": "a.txt", "line": 1, "end_line": text.count("\n") + 1}
    assert meta_of(told)["total_lines"] == text.count("\n") + 1
    assert (meta_of(told)["truncated"], meta_of(told)["preview_degraded"]) == (False, False)


def test_a_second_read_is_a_marker_with_the_metadata_of_any_read(room: Room) -> None:
    room.put("a.txt", numbered_text(60))
    session = guarded(room)
    first = read(session, "file", "./a.txt")
    again = read(session, "file", "a.txt")
    assert again.text == "[readcache: unchanged, 61 lines]"
    assert meta_of(again)["token_estimate"] < meta_of(first)["token_estimate"] / 10
    assert again.details["readcache"]["mode"] == "unchanged"  # type: ignore[index]
    assert again.details["location"] == {"file": "a.txt", "line": 1, "end_line": 61}
    assert read(session, "file", "a.txt", bypass_cache=True).text == numbered_text(60)


def test_a_change_comes_back_as_a_diff(room: Room) -> None:
    room.put("a.txt", numbered_text(60))
    session = guarded(room)
    read(session, "file", "a.txt")
    room.put("a.txt", numbered_text(60).replace("line 30 ", "line thirty "))
    assert read(session, "file", "a.txt").text.startswith("[readcache: 1 lines changed of 61]\n--- a/a.txt")


def test_what_the_host_read_is_known_to_the_tool_and_the_other_way_round(room: Room) -> None:
    room.put("a.txt", numbered_text(60))
    session = guarded(room)
    session.read("a.txt", 1, 30)
    assert read(session, "file", "a.txt", limit=30).text == "[readcache: unchanged in lines 1-30 of 61]"
    read(session, "file", "a.txt", offset=31)
    assert session.read("a.txt").text == "[readcache: unchanged, 61 lines]"


def test_a_read_without_limit_that_fits_is_not_degraded_and_has_no_warning(room: Room) -> None:
    room.put("a.txt", numbered_text(60))
    meta = meta_of(read(guarded(room), "file", "a.txt"))
    assert (meta["preview_degraded"], meta["stabilization"]["warnings"]) == (False, [])


def test_a_long_file_is_cut_at_a_line_and_says_how_to_go_on(room: Room) -> None:
    room.put("a.txt", numbered_text(1000))
    session = guarded(room)
    told = read(session, "file", "a.txt")
    assert told.text.startswith("[pagein: Applied default read limit to control payload size.]\nline 1 ")
    assert (
        told.text.endswith("\n\n[Showing lines 1-300 of 1001. Use offset=301 to continue.]")
        or meta_of(told)["next_offset"] <= 301
    )
    following = meta_of(told)["next_offset"]
    assert f"Use offset={following} to continue" in told.text
    assert (meta_of(told)["truncated"], meta_of(told)["preview_degraded"]) == (True, True)
    assert meta_of(told)["stabilization"]["budget_state"] == "SOFT_LIMIT"
    assert f"line {following} " in read(session, "file", "a.txt", offset=following).text


@pytest.mark.parametrize("more", [{}, {"preview_mode": "none"}])
def test_a_limit_of_the_caller_leaves_a_rest_as_in_the_other_modes_and_degrades_nothing(
    room: Room, more: dict[str, str]
) -> None:
    room.put("a.txt", numbered_text(100))
    session = guarded(room)
    meta = meta_of(read(session, "file", "a.txt", offset=11, limit=10, **more))
    assert (meta["truncated"], meta["preview_degraded"], meta["next_offset"]) == (True, False, 21)
    meta = meta_of(read(session, "file", "a.txt:92-101", **more))
    assert (meta["truncated"], meta["preview_degraded"], "next_offset" in meta) == (False, False, False)


@pytest.mark.parametrize("most", [100, 120, 777, 5_000])
def test_an_answer_has_no_more_characters_than_it_may(room: Room, most: int) -> None:
    room.put("a.txt", "".join(f"зeile {number} ÄÖÜ {'x' * (number % 70)}\n" for number in range(400)))
    told = read(guarded(room), "file", "a.txt", max_preview_chars=most)
    assert 0 < len(told.text) <= most
    assert meta_of(told)["preview_degraded"]


def test_a_line_that_is_too_long_is_cut_and_never_taken_for_known(room: Room) -> None:
    room.put("a.txt", "x" * 90_000 + "\nend\n")
    session = guarded(room)
    told = read(session, "file", "a.txt")
    assert told.text.endswith("[Line 1 has 90000 characters and is cut.]")
    assert len(told.text) <= 12_000
    assert meta_of(told)["next_offset"] == 2
    assert read(session, "file", "a.txt", offset=2).text == "end\n"
    assert not read(session, "file", "a.txt").text.startswith("[readcache")


def test_a_diff_that_does_not_fit_is_replaced_by_the_cut_text(room: Room) -> None:
    lines = [f"{number}: {'x' * 60}" for number in range(60)]
    room.put("a.txt", "\n".join(lines))
    session = guarded(room)
    read(session, "file", "a.txt")
    lines[::6] = [f"{number} new: {'y' * 60}" for number in range(10)]
    room.put("a.txt", "\n".join(lines))
    told = read(session, "file", "a.txt", max_preview_chars=500)
    assert len(told.text) <= 500
    assert told.text.startswith("0 new: ")


def test_without_preview_only_place_and_size_are_told(room: Room) -> None:
    room.put("a.txt", numbered_text(60))
    session = guarded(room)
    assert read(session, "file", "a.txt", preview_mode="none").text.startswith("a.txt: lines 1-61 of 61, ")
    assert read(session, "file", "a.txt").text == numbered_text(60), "nothing was shown before"


def test_a_line_suffix_selects_lines(room: Room) -> None:
    room.put("a.txt", numbered_text(60))
    told = read(guarded(room), "file", "a.txt:10-12")
    assert told.text.startswith("line 10 ")
    assert told.details["location"] == {"file": "a.txt", "line": 10, "end_line": 12}


def test_a_first_line_behind_the_end_is_out_of_range(room: Room) -> None:
    room.put("a.txt", "one\ntwo\n")
    error = error_of(read(guarded(room), "file", "a.txt", offset=9))
    assert (error["code"], error["message"]) == ("OUT_OF_RANGE", "Offset 9 is beyond end of file (3 lines total)")
    assert error["next_calls"] == [{"tool": "read", "arguments": {"mode": "file", "target": "a.txt", "offset": 1}}]


def test_an_image_is_an_attachment(room: Room) -> None:
    room.put("a.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 40)
    told = read(guarded(room), "file", "a.png")
    assert [one.media_type for one in told.images] == ["image/png"]
    assert meta_of(told)["media_type"] == "image/png"
