"""The judgement of reads: the cases of its design, and the defects of its first implementation."""

from dataclasses import replace

import pytest

from pagein.model.entries import CompactionEntry, MessageEntry, NoteEntry
from pagein.model.guard_notes import ReadMeasureNote, SearchMeasureNote
from pagein.model.messages import Message, Text, ToolResult
from pagein.policy.guards.guard_state import START, GuardState, step
from pagein.policy.guards.judgement import ReadAsk, after_search, complete, judge, read_call
from pagein.policy.guards.limits import GuardSettings

STRICT = GuardSettings("strict")
ROOT = "/w"


def after(*notes: ReadMeasureNote | SearchMeasureNote, state: GuardState = START) -> GuardState:
    for note in notes:
        state = step(state, NoteEntry.of(note))
    return state


def read(new: int = 10, path: str = "/w/a.py") -> ReadMeasureNote:
    return ReadMeasureNote("file", path, 1, 10, 10, 100, new)


def found(*paths: str, query: str = "needle", scope: str = "") -> SearchMeasureNote:
    return SearchMeasureNote(query, tuple(f"/w/{path}" for path in paths), len(paths), "code", scope)


MANY = tuple(f"m{n}.py" for n in range(10))


# --- budget ---


def test_a_limit_above_the_budget_is_reduced() -> None:
    verdict = judge(START, ReadAsk("file", "big.py", "/w/big.py", lines=1000, has_limit=True), STRICT, ROOT)
    assert (verdict.state, verdict.limits.lines, verdict.refusal) == ("SOFT_LIMIT", 300, None)
    assert verdict.warnings == ("Read limit reduced due to budget policy.",)
    assert verdict.reasons == ("BUDGET_SOFT_LIMIT",)
    assert verdict.action == "search"


def test_a_read_without_a_limit_is_told_of_the_default_only_where_it_cuts() -> None:
    ask = ReadAsk("file", "a.py", "/w/a.py", lines=3)
    assert judge(START, ask, STRICT, ROOT).warnings == ()
    cut = judge(START, replace(ask, lines=301), STRICT, ROOT)
    assert cut.warnings == ("Applied default read limit to control payload size.",)
    unknown = complete(judge(START, replace(ask, lines=None), STRICT, ROOT), {"lines"})
    assert unknown.warnings == cut.warnings
    assert unknown.reasons == ("BUDGET_SOFT_LIMIT", "PREVIEW_DEGRADED")
    # the same warning is not said twice
    assert complete(cut, {"lines"}).warnings == cut.warnings


def test_25_reads_are_answered_and_the_26th_is_not() -> None:
    state = START
    for number in range(25):
        verdict = judge(state, ReadAsk("file", "a.py", "/w/a.py"), STRICT, ROOT)
        assert verdict.refusal is None, number
        assert bool(verdict.warnings) is (number >= 20)
        assert verdict.state == ("SOFT_LIMIT" if number >= 20 else "OK")
        state = after(read(), state=state)
    verdict = judge(state, ReadAsk("file", "src/a.py", "/w/src/a.py"), STRICT, ROOT)
    assert verdict.refusal is not None
    assert verdict.refusal.code == "BUDGET_EXCEEDED"
    said = "Read budget exceeded. Use search to narrow scope: run search before additional reads."
    assert verdict.refusal.message == said
    assert (verdict.state, verdict.reasons) == ("HARD_LIMIT", ("BUDGET_HARD_LIMIT",))
    assert verdict.next_calls == (
        {"tool": "search", "arguments": {"pattern": "a.py", "search_type": "code", "limit": 5}},
    )


def test_the_total_of_lines_is_a_budget_too() -> None:
    near = judge(after(read(2000)), ReadAsk("file", "a.py", "/w/a.py"), STRICT, ROOT)
    assert near.warnings == ("Total read lines near budget. Prefer targeted reads.",)
    assert judge(after(read(2499)), ReadAsk("file", "a.py", "/w/a.py"), STRICT, ROOT).refusal is None
    assert judge(after(read(2500)), ReadAsk("file", "a.py", "/w/a.py"), STRICT, ROOT).refusal is not None


def test_what_a_snippet_and_a_preview_may_show() -> None:
    verdict = judge(START, ReadAsk("snippet", "x", results=999, context=999), STRICT, ROOT)
    assert (verdict.limits.results, verdict.limits.context, verdict.limits.chars) == (20, 20, 12_000)
    assert (verdict.state, verdict.warnings) == ("OK", ()), "whether anything is left out shows with the answer"
    shortened = complete(verdict, {"results", "context"})
    assert shortened.state == "SOFT_LIMIT"
    assert shortened.warnings == (
        "Snippet results reduced due to max_results budget.",
        "Snippet context_lines reduced due to budget policy.",
    )
    few = judge(START, ReadAsk("snippet", "x", results=2, context=0, chars=120), STRICT, ROOT)
    assert (few.limits.results, few.limits.context, few.limits.chars) == (2, 0, 120)
    assert few.state == "OK"
    assert judge(START, ReadAsk("snippet", "x", chars=1), STRICT, ROOT).limits.chars == 100
    much = judge(START, ReadAsk("diff_preview", "a.py", "/w/a.py", chars=999_999), STRICT, ROOT)
    assert much.limits.chars == 12_000
    cut = complete(much, {"chars"})
    assert (cut.state, cut.warnings) == ("SOFT_LIMIT", ("Preview reduced due to max_preview_chars budget.",))


def test_without_limits_nothing_is_reduced_or_refused() -> None:
    state = after(*(read(10_000) for _ in range(500)))
    verdict = judge(state, ReadAsk("file", "a.py", "/w/a.py", lines=10**6, chars=10**7), GuardSettings("off"), ROOT)
    assert (verdict.state, verdict.refusal, verdict.warnings, verdict.limits.lines) == ("OK", None, (), None)
    assert verdict.limits.chars == 10**7


# --- what restores the budget (defect U1 of the first implementation: nothing did) ---


def is_spent(state: GuardState) -> bool:
    return judge(state, ReadAsk("file", "m0.py", "/w/m0.py"), STRICT, ROOT).state == "HARD_LIMIT"


def test_a_read_that_a_marker_answers_costs_nothing() -> None:
    state = after(read(2499), *(read(0) for _ in range(100)))
    assert not is_spent(state)
    assert state.metrics.reads == 101
    spent = after(read(1), state=state)
    assert is_spent(spent)
    known = ReadAsk("file", "a.py", "/w/a.py", is_known=True)
    assert judge(spent, known, STRICT, ROOT).refusal is None


def test_words_of_a_user_and_a_compaction_restore_the_budget() -> None:
    state = after(read(2500))
    assert is_spent(state)
    assert not is_spent(step(state, MessageEntry(Message("user", (Text("and now the other"),)))))
    assert not is_spent(step(state, CompactionEntry()))
    assert is_spent(step(state, MessageEntry(Message("user", (Text("<reminder>", injected="reminder"),)))))
    reminder = Text("<system-reminder>The todo list is empty.</system-reminder>")
    assert is_spent(step(state, MessageEntry(Message("user", (reminder,)))))
    assert is_spent(step(state, MessageEntry(Message("tool", (ToolResult("c", "text", "read"),)))))
    assert is_spent(step(state, MessageEntry(Message("assistant", (Text("hm"),)))))


@pytest.mark.parametrize(
    ("searches", "restores"),
    [
        ((found("m0.py"),), True),
        ((found(),), False),
        ((found(*MANY),), False),
        ((found(*MANY), found(*MANY, query="other")), False),
        ((found(*MANY), found(*MANY, scope="src")), True),
        ((found(*MANY, scope="src"), found(*MANY, scope="src/a")), True),
        ((found(*MANY, scope="src"), found(*MANY, scope="srcs")), False),
    ],
    ids=["few files", "no files", "many files", "other words", "in a folder", "in a folder below", "another folder"],
)
def test_a_search_that_narrows_restores_the_budget(searches: tuple[SearchMeasureNote, ...], *, restores: bool) -> None:
    *before, last = searches
    state = after(read(2500), state=after(*before))
    assert is_spent(state)
    assert is_spent(after(last, state=state)) is not restores


def test_the_same_search_again_narrows_nothing() -> None:
    once = after(found("m0.py"))
    spent = after(read(2500), state=once)
    assert is_spent(after(found("m0.py"), state=spent))
    assert not is_spent(after(found("m0.py", query="else"), state=spent))


# --- relevance ---


def test_an_unrelated_target_warns_and_lists_alternatives() -> None:
    state = after(found("a.py", "src/b.py", "c.py", "d.py"))
    verdict = judge(state, ReadAsk("file", "x.py", "/w/x.py"), STRICT, ROOT)
    assert verdict.refusal is None
    assert verdict.warnings == ("This target seems unrelated to recent search results.",)
    assert verdict.reasons == ("LOW_RELEVANCE_OUTSIDE_TOPK",)
    assert verdict.alternatives == ("a.py", "src/b.py", "c.py")
    assert verdict.action == "search"
    assert verdict.next_calls[1:] == tuple(read_call(path) for path in verdict.alternatives)
    refused = judge(state, ReadAsk("file", "x.py", "/w/x.py"), GuardSettings("strict", "refuse"), ROOT)
    assert refused.refusal is not None
    assert refused.refusal.code == "LOW_RELEVANCE"
    assert "Try a.py, src/b.py, c.py" in refused.refusal.message
    silent = judge(state, ReadAsk("file", "x.py", "/w/x.py"), GuardSettings("strict", "off"), ROOT)
    assert silent.warnings == ()


def test_a_target_among_the_first_places_is_related() -> None:
    verdict = judge(after(found("a.py", "b.py")), ReadAsk("file", "b.py", "/w/b.py"), STRICT, ROOT)
    assert (verdict.warnings, verdict.action) == ((), "read")


def test_only_files_and_diffs_can_be_unrelated() -> None:
    state = after(found("a.py"))
    told = {
        mode: bool(judge(state, ReadAsk(mode, "x", "/w/x.py"), STRICT, ROOT).warnings)
        for mode in ("file", "diff_preview")
    }
    assert told == {"file": True, "diff_preview": True}
    assert not judge(state, ReadAsk("symbol", "x", "/w/x.py"), STRICT, ROOT).warnings
    assert not judge(state, ReadAsk("snippet", "x", "/w/x.py"), STRICT, ROOT).warnings


def test_a_search_without_hits_forgets_the_places_before_it() -> None:
    state = after(found("a.py"), found(query="nothing"))
    assert judge(state, ReadAsk("file", "x.py", "/w/x.py"), STRICT, ROOT).warnings == ()


def test_what_a_search_cannot_say_is_not_said() -> None:
    """After a long list, after some reads, and of a file that was read before, no warning."""
    ask = ReadAsk("file", "x.py", "/w/x.py")
    assert judge(after(found("a.py")), ask, STRICT, ROOT).is_unrelated
    assert not judge(after(found(*MANY)), ask, STRICT, ROOT).is_unrelated
    two, three = (after(*[read()] * count, state=after(found("a.py"))) for count in (2, 3))
    assert judge(two, ask, STRICT, ROOT).is_unrelated
    assert not judge(three, ask, STRICT, ROOT).is_unrelated
    known = after(read(path="/w/x.py"), found("a.py"))
    assert not judge(known, ask, STRICT, ROOT).is_unrelated
    assert judge(after(found("a.py"), state=step(known, CompactionEntry())), ask, STRICT, ROOT).is_unrelated


# --- excluded folders (defect U4: they were answered without any guard) ---


@pytest.mark.parametrize("path", ["vendor/a.py", "src/node_modules/b.js", ".git/config", "dist/c.js"])
def test_files_in_excluded_folders_are_refused_by_a_code_of_their_own(path: str) -> None:
    ask = ReadAsk("snippet", path, f"/w/{path}")
    refused = judge(START, ask, STRICT, ROOT)
    assert refused.refusal is not None
    assert (refused.refusal.code, refused.reasons) == ("EXCLUDED_FOLDER", ("EXCLUDED_FOLDER",))
    assert "search" in refused.refusal.message
    warned = judge(START, ask, replace(STRICT, folders="warn"), ROOT)
    assert (warned.refusal, warned.reasons, len(warned.warnings)) == (None, ("EXCLUDED_FOLDER",), 1)
    assert judge(START, ask, replace(STRICT, folders="off"), ROOT).reasons == ()


def test_folders_above_the_workspace_and_names_alike_exclude_nothing() -> None:
    assert judge(START, ReadAsk("file", "a.py", "/dist/w/a.py"), STRICT, "/dist/w").refusal is None
    assert judge(START, ReadAsk("file", "dist", "/w/dist"), STRICT, ROOT).refusal is None
    assert judge(START, ReadAsk("file", "d", "/w/distance/vendors/a.py"), STRICT, ROOT).refusal is None


# --- after a search ---


def test_what_comes_after_a_search_is_told() -> None:
    calls = (read_call("a.py", 1, 9),)
    assert after_search(START, "q", STRICT, calls, found=True).action == "read"
    assert after_search(START, "q", STRICT, calls, found=False).action == "search"
    assert after_search(after(read(2000)), "q", STRICT, calls, found=True).state == "SOFT_LIMIT"
    spent = after_search(after(read(2500)), "q", STRICT, calls, found=True)
    assert (spent.state, spent.action, spent.reasons) == ("HARD_LIMIT", "search", ("BUDGET_HARD_LIMIT",))
