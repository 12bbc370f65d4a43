"""What stays warm, for how long (the cases of Pi-RLM)."""

from pagein.model.entries import CompactionEntry, NoteEntry, RecallEntry, RequestSent
from pagein.model.journal_notes import RecallNote
from pagein.policy.eviction.recall_warmth import COLD, Warmth, step


def ticked(warmth: Warmth, times: int) -> Warmth:
    for _ in range(times):
        warmth = warmth.after_call()
    return warmth


def test_warm_lasts_as_many_calls_as_it_is_marked_for() -> None:
    for lasts in (1, 3, 5):
        warmth = COLD.with_recalls(["a"], "call", lasts=lasts)
        for _ in range(lasts - 1):
            warmth = warmth.after_call()
            assert warmth.is_warm("a")
            assert warmth.is_call_warm("call")
        warmth = warmth.after_call()
        assert not warmth.is_warm("a")
        assert not warmth.is_call_warm("call")
        assert (warmth.objects, warmth.tool_calls) == ({}, {})


def test_marking_again_begins_anew() -> None:
    warmth = ticked(COLD.with_recalls(["a"], lasts=3), 2).with_recalls(["a"], lasts=3)
    assert ticked(warmth, 2).is_warm("a")
    assert not ticked(warmth, 3).is_warm("a")


def test_nothing_is_warm_of_its_own() -> None:
    assert not ticked(COLD, 4).is_warm("a")
    assert not COLD.with_recalls(["a"]).is_call_warm("")


def test_a_recall_of_the_journal_warms_objects_and_its_own_result() -> None:
    note = NoteEntry.of(RecallNote("search", ("a", "b"), "call"))
    warmth = step(COLD, note)
    assert warmth.is_warm("a")
    assert warmth.is_warm("b")
    assert warmth.is_call_warm("call")
    assert step(COLD, RecallEntry("c")).is_warm("c")
    for _ in range(3):
        warmth = step(warmth, RequestSent(0, 1))
    assert not warmth.is_warm("a")


def test_other_entries_warm_nothing() -> None:
    for body in (
        CompactionEntry(),
        NoteEntry("reading", "{}"),
        NoteEntry("recall", "no json"),
        NoteEntry("recall", '{"tool":1}'),
    ):
        assert step(COLD, body) == COLD
