"""`stats`: the lines of the specification, and what pagein counts beyond them."""

from tests.tools.recall_sessions import Room, ask, long_text

from pagein.engine.log.holdings import Holdings
from pagein.engine.recall.session_recall import RecallFigures
from pagein.tools.stats import Activity, stats_text


def test_the_report_has_its_exact_lines() -> None:
    held = Holdings(tokens=12_345, epochs=2, stubs=7, stub_tokens=9_000, recalls=3, searches=1)
    text = stats_text(RecallFigures(held, 1_000), Activity(("searching", "ingesting"), 2, 1, 45_678))
    assert text == (
        "RLM Status: ON\n"
        "Store objects: 0\n"
        "Store token estimate: 12,345\n"
        "Store size (bytes): 1,000\n"
        "Working context usage: 45,678 tokens\n"
        "Active phases: searching, ingesting\n"
        "Active child calls: 2\n"
        "Recursion depth: 1\n"
        "Epochs: 2\n"
        "Stubs: 7 for 9,000 tokens\n"
        "Previews: 0\n"
        "Ingested files: 0\n"
        "Recalls: 3 (1 by search)"
    )


def test_what_is_not_known_is_said_to_be_unknown() -> None:
    text = stats_text(RecallFigures(Holdings(), None, "OSError: no room"))
    assert "Store size (bytes): unknown" in text
    assert "Working context usage: unknown" in text
    assert "Active phases: none" in text
    assert text.endswith("Trajectory log: not written (OSError: no room)")


def test_figures_are_those_of_the_branch(room: Room) -> None:
    session = room.session()
    room.put("a.txt", "1234567890")
    before = session.leaf
    first = long_text("one")
    [name] = room.paged(session, first)
    ask(session, "ingest", paths=["a.txt"])
    ask(session, "peek", id=name)
    ask(session, "search", pattern="one line 1 ")
    details = ask(session, "stats").details
    expected = {
        "objects": 2,
        "tokens": len(first) + 10,
        "chars": len(first) + 10,
        "epochs": 1,
        "stubs": 1,
        "stub_tokens": len(first),
        "ingested": 1,
        "recalls": 2,
        "searches": 1,
    }
    assert {name: details[name] for name in expected} == expected
    context = details["context_tokens"]
    assert isinstance(context, int)
    assert 0 < context < len(first)
    session.move(before)
    assert ask(session, "stats").details["objects"] == 0
