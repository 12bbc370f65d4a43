"""The baseline is the host's built-in read, case by case. Expectations were measured on the host itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.errors import BadInput
from pagein.model.read_caps import ReadCaps
from pagein.policy.reads.baseline import Baseline, baseline, byte_length, format_size, number, truncate

FIVE = "1\n2\n3\n4\n5\n"


def read(text: str, offset: float | None = None, limit: float | None = None) -> Baseline:
    return baseline(text, "longline.txt", offset=offset, limit=limit)


def numbered(count: int) -> str:
    return "".join(f"{line}\n" for line in range(count))


def test_a_small_file_is_shown_whole_and_without_details() -> None:
    shown = read(FIVE)
    assert shown.text == FIVE
    assert shown.details == {}
    assert (shown.first, shown.last, shown.total) == (1, 6, 6)


def test_an_empty_file_is_an_empty_text_of_one_line() -> None:
    shown = read("")
    assert (shown.text, shown.details, shown.total, shown.shown) == ("", {}, 1, 1)


def test_carriage_returns_and_byte_order_marks_are_kept() -> None:
    assert read("\ufeffa\r\nb\rc\r\n").text == "\ufeffa\r\nb\rc\r\n"
    assert read("\ufeffa\r\nb\rc\r\n").total == 3


def test_only_line_feeds_part_lines() -> None:
    assert read("a\u2028b\x0bc\x85d\x0ce").total == 1


def test_the_line_cap_keeps_2000_lines_and_says_where_to_go_on() -> None:
    shown = read(numbered(2500))
    assert shown.body == numbered(2000).removesuffix("\n")
    assert shown.notice == "\n\n[Showing lines 1-2000 of 2501. Use offset=2001 to continue.]"
    assert shown.details == {
        "truncation": {
            "content": shown.body,
            "truncated": True,
            "truncatedBy": "lines",
            "totalLines": 2501,
            "totalBytes": 11390,
            "outputLines": 2000,
            "outputBytes": 8889,
            "lastLinePartial": False,
            "firstLineExceedsLimit": False,
            "maxLines": 2000,
            "maxBytes": 51200,
        }
    }
    assert (shown.first, shown.last) == (1, 2000)


def test_the_byte_cap_keeps_whole_lines() -> None:
    shown = read(("x" * 99 + "\n") * 1000)
    assert shown.notice == "\n\n[Showing lines 1-512 of 1001 (50.0KB limit). Use offset=513 to continue.]"
    assert shown.truncation is not None
    assert (shown.truncation.output_lines, shown.truncation.output_bytes) == (512, 51199)
    assert shown.last == 512


def test_a_first_line_over_the_cap_shows_nothing_and_names_the_way_out() -> None:
    shown = read("x" * 60000 + "\nshort\n")
    remedy = "Use bash: sed -n '1p' longline.txt | head -c 51200"
    assert shown.text == f"[Line 1 is 58.6KB, exceeds 50.0KB limit. {remedy}]"
    assert (shown.first, shown.shown, shown.last) == (1, 0, 0)
    truncation = shown.truncation
    assert truncation is not None
    assert (truncation.content, truncation.output_lines, truncation.first_line_exceeds) == ("", 0, True)


def test_the_first_line_is_the_first_one_asked_for() -> None:
    shown = read("short\n" + "x" * 60000 + "\nend\n", offset=2)
    assert shown.text.startswith("[Line 2 is 58.6KB, exceeds 50.0KB limit. Use bash: sed -n '2p' longline.txt | head")
    assert shown.shown == 0


def test_a_long_line_further_down_ends_the_text_before_it() -> None:
    shown = read("short\n" + "x" * 60000 + "\nend\n")
    assert shown.text == "short\n\n[Showing lines 1-1 of 4 (50.0KB limit). Use offset=2 to continue.]"
    assert shown.last == 1


def test_a_limit_that_stops_early_is_said_without_details() -> None:
    shown = read("".join(f"{n}\n" for n in range(1, 7)), limit=3)
    assert shown.text == "1\n2\n3\n\n[4 more lines in file. Use offset=4 to continue.]"
    assert shown.details == {}
    assert shown.last == 3


def test_a_limit_that_reaches_the_end_says_nothing() -> None:
    assert read(FIVE, offset=4, limit=3).text == "4\n5\n"
    assert read(FIVE, offset=4, limit=300).text == "4\n5\n"


def test_caps_hold_inside_a_limit_too() -> None:
    shown = read(numbered(5000), offset=1001, limit=3000)
    assert shown.notice == "\n\n[Showing lines 1001-3000 of 5001. Use offset=3001 to continue.]"
    assert shown.truncation is not None
    assert shown.truncation.total_lines == 3000
    assert (shown.first, shown.last) == (1001, 3000)


@pytest.mark.parametrize("offset", [7, 99])
def test_an_offset_past_the_end_is_refused(offset: int) -> None:
    with pytest.raises(BadInput) as raised:
        read(FIVE, offset=offset)
    assert str(raised.value) == f"Offset {offset} is beyond end of file (6 lines total)"


def test_an_offset_past_the_end_of_an_empty_file_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^Offset 2 is beyond end of file \(1 lines total\)$"):
        read("", offset=2)


@pytest.mark.parametrize(
    ("offset", "limit", "text", "emitted"),
    [
        (0, None, FIVE, (1, 6)),
        (-2, None, FIVE, (1, 6)),
        (None, 0, "\n\n[6 more lines in file. Use offset=1 to continue.]", (1, 0)),
        (None, -1, "1\n2\n3\n4\n5\n\n[7 more lines in file. Use offset=0 to continue.]", (1, 5)),
        (1.5, 2, "1\n2\n\n[3.5 more lines in file. Use offset=3.5 to continue.]", (1, 2)),
        (6, None, "", (6, 6)),
        (2, -4, "2\n3\n\n[9 more lines in file. Use offset=-2 to continue.]", (2, 3)),
        (5.5, None, "5\n", (5, 6)),
        (None, 1e21, FIVE, (1, 6)),
    ],
)
def test_odd_arguments_do_what_a_javascript_slice_does(
    offset: float | None, limit: float | None, text: str, emitted: tuple[int, int]
) -> None:
    shown = read(FIVE, offset=offset, limit=limit)
    assert shown.text == text
    assert (shown.first, shown.last) == emitted


def test_sizes_count_bytes_of_utf8_and_not_characters() -> None:
    shown = read("é" * 25601 + "\nq")
    assert shown.text.startswith("[Line 1 is 50.0KB, exceeds 50.0KB limit.")
    assert read("é" * 25600).truncation is None


def test_a_text_of_exactly_the_caps_is_not_cut() -> None:
    assert read("a" * 51200).truncation is None
    assert read("\n" * 1999).truncation is None
    cut = read("\n" * 2000)
    assert cut.notice == "\n\n[Showing lines 1-2000 of 2001. Use offset=2001 to continue.]"
    cut = read("a" * 51200 + "\nb")
    assert cut.notice == "\n\n[Showing lines 1-1 of 2 (50.0KB limit). Use offset=2 to continue.]"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0B"),
        (1023, "1023B"),
        (1024, "1.0KB"),
        (51200, "50.0KB"),
        (60000, "58.6KB"),
        (1024 * 1024 - 1, "1024.0KB"),
        (1024 * 1024, "1.0MB"),
        (1664 * 1024, "1.6MB"),
        (1280, "1.3KB"),  # 1.25: halves go up
    ],
)
def test_sizes_are_written_as_the_host_writes_them(size: int, text: str) -> None:
    assert format_size(size) == text


def test_numbers_are_written_as_javascript_writes_them() -> None:
    assert [number(n) for n in (3, 3.0, 3.5, -2.0, 0.25)] == ["3", "3", "3.5", "-2", "0.25"]


@given(
    st.lists(st.text(alphabet="ab\u00e9\u6f22\r\0", max_size=12), min_size=1, max_size=30),
    st.integers(1, 12),
    st.integers(1, 40),
)
def test_what_is_kept_is_the_longest_head_of_whole_lines_under_both_caps(
    lines: list[str], most_lines: int, most_bytes: int
) -> None:
    cut = truncate(lines, ReadCaps(most_lines, most_bytes))
    if cut.by is None:
        assert cut.content == "\n".join(lines)
        assert cut.output_lines <= most_lines
        assert cut.output_bytes <= most_bytes
        return
    kept = cut.output_lines
    assert cut.content == "\n".join(lines[:kept])
    assert cut.output_bytes == byte_length(cut.content) <= most_bytes
    assert kept <= most_lines
    one_more = byte_length("\n".join(lines[: kept + 1]))
    assert (cut.by == "lines" and kept == most_lines) or (cut.by == "bytes" and one_more > most_bytes)


@given(st.text(alphabet="ab\n", max_size=60), st.integers(1, 20), st.integers(0, 20))
def test_the_body_is_exactly_the_lines_it_claims(text: str, offset: int, limit: int) -> None:
    lines = text.split("\n")
    if offset > len(lines):
        return
    shown = read(text, offset=offset, limit=limit)
    assert shown.body == "\n".join(lines[shown.first - 1 : shown.last])
