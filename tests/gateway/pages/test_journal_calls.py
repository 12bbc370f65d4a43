"""What a journal tells of its calls, and their totals: each call once, and no remainder."""

from hypothesis import given
from hypothesis import strategies as st

from pagein.gateway.pages.call_totals import By, SessionCalls, cost_since, totals_of, totals_since
from pagein.gateway.pages.journal_calls import JournalCall, first_words, summary_of
from pagein.model.cache_notes import CacheMissNote
from pagein.model.entries import Entry, EntryId, EpochEntry, MessageEntry, NoteEntry, PagedOut, RequestSent
from pagein.model.journal_notes import FurtherUsageNote, Note, PrefixDigests, RecallNote, UsageNote
from pagein.model.messages import Message, Text, Usage
from pagein.model.names import ContentHash
from pagein.model.note_forms import encode_note

MODEL = "claude-sonnet-4-5"


def note(value: Note) -> NoteEntry:
    kind, data = encode_note(value)
    return NoteEntry(kind, data)


def branch(*bodies: object, after: str | None = None, begin: int = 0) -> list[Entry]:
    """Entries one behind the other."""
    found: list[Entry] = []
    for number, body in enumerate(bodies, begin):
        found.append(Entry(EntryId(f"e{number}"), EntryId(after) if after else None, body))  # type: ignore[arg-type]
        after = f"e{number}"
    return found


def test_the_title_is_the_first_words_of_the_person() -> None:
    reminder = Text("<system-reminder>\nThe following skills are available\n</system-reminder>")
    entries = branch(
        MessageEntry(Message("user", (reminder,))),
        MessageEntry(Message("assistant", (Text("What shall I do?"),))),
        MessageEntry(Message("user", (reminder, Text("fix the\nlogin")))),
        MessageEntry(Message("user", (Text("now the rest"),))),
    )
    assert summary_of(entries).title == first_words(entries) == "fix the login"
    assert first_words(entries[:2]) == ""


def test_a_call_has_the_model_epoch_saving_and_recalls_of_its_own_branch() -> None:
    gone = PagedOut("c1", "pg-1", ContentHash.of(b"x"), 900, 3600, "stub", 1, 0)
    main = branch(
        MessageEntry(Message("user", (Text("fix  the\nbuild"),))),
        note(PrefixDigests(model=MODEL)),
        RequestSent(0, 1, moment=1000.0),
        note(UsageNote(Usage(fresh=10, written=1_000, output=20))),
        note(RecallNote("peek", ("pg-0",))),
        EpochEntry(1, 1, (gone,), "it pays"),
        RequestSent(1, 3, moment=1060.0, saved=-500.0),
        note(UsageNote(Usage(read=400, written=600, output=5))),
        RequestSent(1, 5, moment=1070.0, saved=300.0),  # was never answered
        RequestSent(1, 5, moment=1080.0, saved=700.0),
        note(UsageNote(Usage(read=900))),
    )
    other = branch(
        note(PrefixDigests(model="a model without a price")),
        RequestSent(0, 1, moment=1005.0),
        note(UsageNote(Usage(fresh=7))),
        after="e0",
        begin=100,
    )
    found = summary_of([*main, *other])
    assert found.title == "fix the build"
    first, second, third, strange = found.calls
    assert (first.model, first.saved, first.epoch, first.recalls) == (MODEL, 0.0, "", 0)
    assert (second.saved, second.epoch, second.evicted, second.evicted_tokens, second.recalls) == (
        -500.0,
        "it pays",
        1,
        900,
        1,
    )
    assert (third.at, third.saved, third.epoch, third.recalls) == (1080.0, 400.0, "", 0)
    assert (strange.model, strange.cost, strange.usd) == ("a model without a price", None, None)
    assert first.cost == 10 + 1_000 * 1.25 + 20 * 5
    assert first.usd == first.cost * 3 / 1_000_000


def test_what_was_billed_beside_a_call_belongs_to_it_and_recalls_come_off_its_saving() -> None:
    """Two further requests behind recalls and one that kept the cache; a fork from between them counts nothing again."""
    entries = branch(
        note(PrefixDigests(model=MODEL)),
        RequestSent(0, 1, moment=1000.0, saved=500.0),
        note(RecallNote("peek", ("pg-0",))),
        note(UsageNote(Usage(read=100, output=1))),
        note(FurtherUsageNote("recall", Usage(read=300))),
        note(FurtherUsageNote("keep_alive", Usage(read=200))),
    )
    fork = branch(note(UsageNote(Usage(read=10))), after="e2", begin=50)
    call, again = summary_of([*entries, *fork]).calls
    assert (call.usage.read, call.recalls, call.recalling, call.keeping) == (600, 1, 30.0, 20.0)
    assert (call.cost, call.saved) == (60.0 + 5.0, 470.0)
    assert call.saved_usd == 470.0 * 3 / 1_000_000
    assert (again.recalls, again.saved) == (0, 0.0)


def test_a_cache_miss_belongs_to_the_call_before_it() -> None:
    entries = branch(
        note(PrefixDigests(model=MODEL)),
        RequestSent(0, 1, moment=1000.0),
        note(UsageNote(Usage(read=100, output=1))),
        RequestSent(1, 2, moment=2000.0),
        note(UsageNote(Usage(written=100, output=1))),
        note(CacheMissNote("expired", "nobody", 90, "it expired")),
    )
    first, second = summary_of(entries).calls
    assert (first.cause, first.shortfall) == ("", 0)
    assert (second.cause, second.who, second.explanation, second.shortfall) == ("expired", "nobody", "it expired", 90)


CALLS = st.builds(
    JournalCall,
    at=st.none() | st.floats(0, 2e9),
    model=st.sampled_from(["", "a", "b"]),
    usage=st.builds(Usage, *[st.integers(0, 9)] * 5),
    cost=st.none() | st.integers(0, 99).map(float),
    usd=st.none() | st.integers(0, 99).map(float),
    saved=st.integers(-99, 99).map(float),
    recalls=st.integers(0, 3),
    recalling=st.integers(0, 9).map(float),
)
SESSIONS = st.lists(
    st.builds(
        SessionCalls,
        name=st.just("s"),
        title=st.just(""),
        agent=st.sampled_from(["", "x", "y"]),
        project=st.sampled_from(["", "/p"]),
        calls=st.lists(CALLS, max_size=5),
    )
)


@given(SESSIONS)
def test_each_table_of_totals_adds_up_to_the_sum_and_the_account_to_the_saving(
    sessions: list[SessionCalls],
) -> None:
    found = totals_of(sessions)
    for rows in (found["day"], found["agent"], found["project"], found["model"]):
        for name in ("calls", "read", "written", "fresh", "output", "saved", "recalls"):
            assert sum(row[name] for row in rows) == found["whole"][name]
        assert sum(row["cost"] or 0 for row in rows) == (found["whole"]["cost"] or 0)
    ledger = found["ledger"]
    assert ledger["gained"] - ledger["spent"] - ledger["recalling"] == found["whole"]["saved"]
    assert 0 <= ledger["lost"] <= ledger["spent"] + ledger["recalling"]


def test_the_cost_since_a_moment_counts_its_own_calls_and_names_the_sessions_that_pagein_made_dearer() -> None:
    def call(at: float | None, saved: float, usd: float | None = 2.0) -> JournalCall:
        return JournalCall(at, MODEL, Usage(10, 0, 0, 0, 1), 1000.0 if usd is not None else None, usd, saved)

    sessions = [
        SessionCalls("good", "", "", "", [call(50.0, -900.0), call(150.0, 500.0)]),
        SessionCalls("bad", "", "", "", [call(150.0, -250.0), call(160.0, 0.0, None)]),
        SessionCalls("old", "", "", "", [call(None, -900.0), call(99.0, -900.0)]),
    ]
    found = cost_since(100.0, sessions)
    assert (found["sessions"], found["calls"], found["unpriced"], found["usd"]) == (2, 3, 1, 4.0)
    assert found["saved"] == 0.5
    assert found["dearer"] == {"bad": 0.5}


def test_cache_misses_since_a_moment_are_counted_by_cause_and_whose_doing_the_most_tokens_first() -> None:
    def missed(at: float, cause: str, who: str, tokens: int) -> JournalCall:
        return JournalCall(at, MODEL, Usage(10), 1.0, 1.0, 0.0, cause=cause, who=who, shortfall=tokens)

    calls = [
        missed(50.0, "tools", "client", 9_999),  # before
        missed(150.0, "expired", "nobody", 40),
        missed(151.0, "messages", "us", 70),
        missed(152.0, "messages", "client", 80),
        missed(153.0, "expired", "nobody", 50),
        missed(154.0, "", "", 0),
    ]
    assert cost_since(100.0, [SessionCalls("one", "", "", "", calls)])["misses"] == [
        {"cause": "expired", "who": "nobody", "calls": 2, "tokens": 90},
        {"cause": "messages", "who": "client", "calls": 1, "tokens": 80},
        {"cause": "messages", "who": "us", "calls": 1, "tokens": 70},
    ]


def test_costs_since_a_moment_are_told_by_session_agent_project_model_and_day() -> None:
    def call(at: float, usd: float, model: str = MODEL) -> JournalCall:
        return JournalCall(at, model, Usage(10), 1000.0, usd, 500.0)

    sessions = [
        SessionCalls("one", "fix the login", "codex", "/p", [call(50.0, 9.0), call(150.0, 1.0)]),
        SessionCalls("two", "write docs", "pi", "/p", [call(160.0, 3.0), call(90_000.0, 2.0, "other")]),
        SessionCalls("old", "long ago", "pi", "/q", [call(60.0, 8.0)]),
    ]

    def rows(by: By) -> list[tuple[str, str, float | None, int]]:
        return [(one["name"], one["title"], one["usd"], one["calls"]) for one in totals_since(100.0, by, sessions)]

    assert rows("session") == [("two", "write docs", 5.0, 2), ("one", "fix the login", 1.0, 1)]
    assert rows("agent") == [("pi", "", 5.0, 2), ("codex", "", 1.0, 1)]
    assert rows("project") == [("/p", "", 6.0, 3)]
    assert rows("model") == [(MODEL, "", 4.0, 2), ("other", "", 2.0, 1)]
    assert rows("day") == [("1970-01-01", "", 4.0, 2), ("1970-01-02", "", 2.0, 1)]
