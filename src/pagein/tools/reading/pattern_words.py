"""The pattern of a snippet: parsing, and the texts about matches and about no match."""

from pagein.errors import BadInput
from pagein.model.read_contract import NextCall
from pagein.policy.guards.judgement import Cut
from pagein.policy.recall.pattern_search import Pattern, parse_pattern
from pagein.tools.reading.mode_answers import AnswerRoom, ReadCall
from pagein.tools.reading.read_problems import ReadRefusal, next_read, short_name


def pattern_of(call: ReadCall) -> Pattern:
    """Return the pattern of a call. Raises ReadRefusal for an unusable pattern."""
    try:
        return parse_pattern(call.asked.pattern or "")
    except BadInput as problem:
        raise ReadRefusal("INVALID_ARGS", f"'pattern' cannot be used: {problem}") from problem


def nothing_found(
    call: ReadCall, pattern: Pattern, shown: str, next_call: NextCall, unsearched: str = ""
) -> ReadRefusal:
    """Return the refusal of a search without a place.

    shown: the file or folder. next_call: a search that may find more.
    unsearched: files left out of the search, so that *no match* is not confused with *not searched*.
    """
    where = "the workspace" if shown == "." else short_name(shown)
    written = (call.asked.pattern or "")[:80]
    notice = "" if pattern.notice is None else f" It was taken as a literal text: {pattern.notice}."
    is_cut_by_lines = pattern.expression is not None and "\\n" in written
    by_line = (
        " An expression is matched line by line: take a literal text for several lines." if is_cut_by_lines else ""
    )
    return ReadRefusal(
        "NO_RESULTS",
        f"Nothing in {where} matches {written!r}.{notice}{by_line}{unsearched} Try a shorter text, an expression, or search.",
        (next_call,) if written.strip() else (),  # no search takes blanks
    )


def behind_the_last(call: ReadCall, shown: str, matches: int) -> ReadRefusal:
    """Return the refusal of an offset after the last place."""
    again = next_read("snippet", shown, pattern=call.asked.pattern)
    why = f"Match {call.asked.offset} is behind the last of {count_of(matches, 'match', 'matches')}."
    return ReadRefusal("OUT_OF_RANGE", why, (again,))


def results_cut(call: ReadCall, room: AnswerRoom, *, is_more: bool) -> set[Cut]:
    """Return whether the budget, and not the call, bounds the number of places.

    is_more: whether there are more places than are shown.
    """
    asked = call.asked
    return {"results"} if is_more and (asked.limit is None or asked.limit > room.results) else set()


def further_places(shown: int, total: int) -> str:
    """Return the words about the way on after a place; "" after the last place."""
    return f". Use offset={shown + 1} for more" if shown < total else ""


def count_of(number: int, one: str, several: str) -> str:
    """Return a number with its noun."""
    return f"{number} {one if number == 1 else several}"
