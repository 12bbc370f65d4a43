"""Cases measured on the known implementation, each with what it did where we do better (its number in the note's table)."""

import pytest

from pagein.policy.reads.read_request import ReadingSettings
from pagein.testing.read_script import ReadScript

SPECIFIED = ReadingSettings(new_answers=False)


def lines(count: int, word: str = "line") -> str:
    return "\n".join(f"{word} {i} :: original text payload" for i in range(1, count + 1))


def short(count: int) -> str:
    return "\n".join(f"{i}" for i in range(1, count + 1))


def script(text: str, settings: ReadingSettings | None = None) -> ReadScript:
    return ReadScript(settings or ReadingSettings()).changes("f", text)


def test_case_01_lines_that_a_cut_read_never_showed_are_served_as_text() -> None:
    """Difference: there, both later reads said `unchanged`, for 500 lines that the model never saw."""
    told = script(short(2500))
    assert told.reads("f").text.endswith("[Showing lines 1-2000 of 2500. Use offset=2001 to continue.]")
    rest = told.reads("f", 2001)
    assert (rest.event.mode, rest.text) == ("full", "\n".join(str(i) for i in range(2001, 2501)))
    assert told.reads("f").text == "[readcache: unchanged, 2500 lines]"


def test_case_01_a_cut_read_repeated_keeps_its_notice() -> None:
    told = script(short(2500))
    told.reads("f")
    again = told.reads("f")
    notice = "\n\n[Showing lines 1-2000 of 2500. Use offset=2001 to continue.]"
    assert again.text == "[readcache: unchanged in lines 1-2000 of 2500]" + notice
    assert (again.event.mode, again.event.v) == ("partly_known", 2)


def test_case_02_an_empty_file_is_empty_each_time_and_a_base_like_any_other() -> None:
    """Difference: there, the second read was a marker longer than the file, and its empty base counted as missing."""
    told = script("")
    assert [told.reads("f").text, told.reads("f").text] == ["", ""]
    grown = told.changes("f", "hello\nworld\n").reads("f")
    assert (grown.text, grown.event.mode, grown.reason) == ("hello\nworld\n", "baseline_fallback", "nothing_smaller")
    assert told.changes("f", "").reads("f").text == ""


def test_case_03_a_byte_order_mark_is_content() -> None:
    """Difference: there, the mark was lost on the way to the store, and no diff could be made."""
    told = script("\ufeff" + lines(100))
    told.reads("f")
    diff = told.changes("f", lines(100)).reads("f")
    assert diff.text.startswith("[readcache: 1 lines changed of 100]\n")
    assert "\n-\ufeffline 1 ::" in diff.text


def test_case_04_a_marker_is_never_longer_than_the_text() -> None:
    """Difference: there, 31 characters stood for one."""
    told = script("x")
    told.reads("f")
    again = told.reads("f")
    assert (again.text, again.reason) == ("x", "marker_not_smaller")


def test_case_05_a_part_of_what_is_known_is_known_and_so_is_the_union() -> None:
    """Difference: there, the sub-range was a miss, and two halves never became the whole."""
    told = script(lines(10))
    assert told.reads("f", 1, 8).text.endswith("[2 more lines in file. Use offset=9 to continue.]")
    assert told.reads("f", 2, 3).text == "[readcache: unchanged in lines 2-4 of 10]"
    assert told.reads("f", 9).event.mode == "full"
    assert told.reads("f").text == "[readcache: unchanged, 10 lines]"


def test_case_07_a_range_beyond_the_end_is_clamped_to_the_same_scope() -> None:
    told = script(lines(3))
    assert told.reads("f", 2).event.scope_key == "r:2:3"
    assert told.reads("f", 2, 98).text == "[readcache: unchanged in lines 2-3 of 3]"


def test_case_08_the_line_behind_a_last_newline_counts() -> None:
    """Difference: the empty fourth line is served as it is, since a marker would be longer."""
    told = script("1\n2\n3\n")
    assert told.reads("f").event.total == 4
    assert told.reads("f", 1, 3).text == "[readcache: unchanged in lines 1-3 of 4]"
    assert told.reads("f", 4).text == ""


def test_case_08_turning_every_line_end_is_no_useful_diff() -> None:
    told = script(lines(100).replace("\n", "\r\n"))
    told.reads("f")
    assert told.changes("f", lines(100)).reads("f").event.mode == "baseline_fallback"


def test_case_09_lines_that_look_like_diff_headers_count_as_changes() -> None:
    """Difference: there, they were left out of the count where both stood in one diff."""
    text = lines(60)
    told = script(text)
    told.reads("f")
    odd = text.replace("line 20 ::", "--- dashes ::").replace("line 21 ::", "+++ plusses ::")
    assert told.changes("f", odd).reads("f").text.startswith("[readcache: 2 lines changed of 60]\n")
    grown = told.changes("f", odd + "\nand one more").reads("f")
    assert grown.text.startswith("[readcache: 2 lines changed of 61]\n")
    assert grown.text.count("\\ No newline at end of file") == 2


def test_case_12_a_refreshed_range_is_shown_by_every_read_that_overlaps_it() -> None:
    """Difference: there, only exactly that range was blocked, and an overlapping one was `unchanged`."""
    told = script(lines(6))
    told.reads("f")
    told.reads("f", 2, 2)
    told.refreshes("f", 2, 3)
    over = told.reads("f", 2, 3)
    assert "line 2 ::" in over.text
    assert "line 3 ::" in over.text
    assert told.reads("f", 2, 2).text == "[readcache: unchanged in lines 2-3 of 6]"


def test_case_12_a_full_read_does_not_settle_a_refreshed_range() -> None:
    """Difference: there, the full read was a marker; here it shows the refreshed lines, and the range is shown anew."""
    told = script(lines(60))
    told.reads("f")
    told.refreshes("f", 20, 30)
    full = told.reads("f")
    assert full.text.startswith("[readcache: unchanged in lines 1-19 of 60]\nline 20 ::")
    assert told.reads("f").text == "[readcache: unchanged, 60 lines]"
    assert told.reads("f", 20, 11).text.startswith("line 20 ::")
    assert told.reads("f", 20, 11).text == "[readcache: unchanged in lines 20-30 of 60]"


def test_case_12_a_refreshed_range_is_not_answered_with_a_diff_or_as_moved() -> None:
    told = script(lines(60))
    told.reads("f")
    told.refreshes("f", 20, 30)
    shifted = told.changes("f", "new\n" + lines(60)).reads("f", 20, 11)
    assert shifted.text.startswith("line 19 ::")
    assert "readcache" not in shifted.text


def test_case_13_a_file_that_shrank_keeps_what_is_known_of_the_rest() -> None:
    """Difference: there, clamping the range gave it another key, and it was served again."""
    told = script(lines(300))
    told.reads("f", 10, 11)
    again = told.changes("f", lines(15)).reads("f", 10, 11)
    assert again.event.scope_key == "r:10:15"
    assert again.text == "[readcache: unchanged in lines 10-15; changes exist outside this range]"


def test_case_14_a_first_line_beyond_the_limit_is_never_called_known() -> None:
    """Difference: there, both the file and its second line were `unchanged` although nothing was shown."""
    told = script("x" * 60_000 + "\nsecond")
    refused = told.reads("f").text
    assert refused.startswith("[Line 1 is 58.6KB, exceeds 50.0KB limit.")
    assert told.reads("f").text == refused
    assert told.reads("f", 2).text == "second"


def test_case_15_a_diff_counts_and_quotes_the_change() -> None:
    told = script(lines(300))
    told.reads("f")
    diff = told.changes("f", lines(300).replace("line 200 ::", "line 200 ++")).reads("f").text
    assert diff.startswith("[readcache: 1 lines changed of 300]\n--- a/f\t\n+++ b/f\t\n")
    assert "-line 200 :: original text payload\n+line 200 ++ original text payload\n" in diff


def test_case_16_a_file_beyond_two_megabytes_is_not_compared() -> None:
    told = script("x" * (2 * 1024 * 1024 + 64))
    told.writes("f", told.files["f"])
    assert told.changes("f", "y" * (2 * 1024 * 1024 + 64)).reads("f").event.mode == "baseline_fallback"


def test_case_17_a_diff_longer_than_the_file_is_not_sent() -> None:
    told = script(lines(3))
    told.reads("f")
    assert told.changes("f", lines(3).replace("line 2", "line two")).reads("f").event.mode == "baseline_fallback"


def test_case_18_a_range_inside_a_changed_file() -> None:
    """Difference: the last read, of a range with the change, is a diff of the range (specified answers: its text)."""
    for settings, mode in ((ReadingSettings(), "range_diff"), (SPECIFIED, "baseline_fallback")):
        told = script(lines(400), settings)
        told.reads("f")
        assert told.reads("f", 160, 90).event.mode == "unchanged_range"
        told.changes("f", lines(400).replace("line 300 ::", "line 300 edited ::"))
        assert (
            told.reads("f", 160, 90).text == "[readcache: unchanged in lines 160-249; changes exist outside this range]"
        )
        assert told.reads("f", 100, 250).event.mode == mode


def test_case_19_a_line_inserted_on_top_moves_the_range() -> None:
    """Difference: there, the range was served as text beginning with old line 99."""
    told = script(lines(200))
    told.reads("f")
    moved = told.changes("f", "inserted\n" + lines(200)).reads("f", 100, 21)
    assert moved.text == "[readcache: lines 100-120 of 201 unchanged, shown earlier as lines 99-119]"


def test_case_20_the_fresher_full_read_is_the_base_of_a_range() -> None:
    told = script(lines(5), SPECIFIED)
    assert told.reads("f", 2, 3).event.mode == "full"
    full = told.changes("f", "changed\n" + "\n".join(lines(5).split("\n")[1:])).reads("f")
    assert full.event.mode == "full"
    again = told.reads("f", 2, 3)
    assert (again.event.mode, again.event.base) == ("unchanged_range", full.event.version)


def test_case_21_going_back_before_a_compaction_brings_back_what_was_known_there() -> None:
    told = script(lines(50))
    told.reads("f")
    early = told.forks()
    assert told.changes("f", lines(50, "v2")).reads("f").event.mode == "baseline_fallback"
    told.compacts()
    assert told.changes("f", lines(50, "v3")).reads("f").event.mode == "full"
    assert early.reads("f").text.startswith("[readcache: unchanged")


def test_case_22_a_read_kept_across_a_compaction_is_not_trusted() -> None:
    told = script(lines(50))
    told.reads("f")
    assert told.reads("f").event.mode == "unchanged"
    assert told.compacts().reads("f").event.mode == "full"


def test_case_23_a_file_that_is_back_at_an_older_version_is_not_unchanged() -> None:
    told = script(lines(50))
    told.reads("f")
    fork = told.forks()
    told.changes("f", lines(50, "v2")).reads("f")
    assert told.changes("f", lines(50)).reads("f").event.mode == "baseline_fallback"
    assert fork.reads("f").event.mode == "unchanged"


def test_case_24_a_branch_knows_nothing_of_its_sibling() -> None:
    told = script("alpha")
    told.reads("f")
    early = told.forks()
    told.changes("f", "beta").reads("f")
    assert early.changes("f", "beta").reads("f").text == "beta"


@pytest.mark.parametrize("scope", [(None, None), (10, 20)])
def test_a_bypassing_read_is_text_and_an_anchor(scope: tuple[int | None, int | None]) -> None:
    told = script(lines(100))
    told.reads("f")
    plain = told.reads("f", *scope, bypass=True)
    assert (plain.event.mode, plain.event.base, plain.reason) == ("full", None, "bypass_cache")
    assert plain.text.startswith(f"line {scope[0] or 1} ::")
    assert told.reads("f", *scope).event.mode in ("unchanged", "unchanged_range")


@pytest.mark.parametrize(
    "bounds",
    [ReadingSettings(max_bytes=1000), ReadingSettings(max_lines=299), ReadingSettings(byte_ratio=0.01), ReadingSettings(line_ratio=0.01),
     ReadingSettings(cap_bytes=200), ReadingSettings(cap_lines=5)],
)  # fmt: skip
def test_each_bound_alone_keeps_a_diff_from_being_sent(bounds: ReadingSettings) -> None:
    told = script(lines(300))
    told.reads("f")
    told.changes("f", lines(300).replace("line 200 ::", "line 200 changed ::"))
    assert told.forks().reads("f").event.mode == "diff"
    told.settings = bounds
    assert told.reads("f").event.mode != "diff"
