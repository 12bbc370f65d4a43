"""Verdicts on caches: shared by all sessions of an engine, stored once, and known after a restart."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from pagein import wiring
from pagein.engine.cache.cache_evidence import CacheEvidence, words_of
from pagein.model.cache_notes import CachePractice, CacheSavingsNote, CacheVerdictNote
from pagein.model.entries import EntryId
from pagein.model.note_forms import decode_note
from pagein.model.text_removal import Tombstone
from pagein.policy.economics.cache_trust import TRIED_AGAIN, UNKNOWN, CacheTrust
from pagein.policy.economics.savings_reserve import Exposure, SessionRequest


def _verdict(practice: CachePractice, *, held: bool) -> CacheVerdictNote:
    return CacheVerdictNote("claude-sonnet-4-5", practice, held, 1000.0, 50_000.0, 50_000.0 if held else 0.0)


class _Session:
    """A session of verdicts without a store."""

    def __init__(self) -> None:
        self.made: list[CacheVerdictNote | CacheSavingsNote] = []
        self.kept: list[CacheVerdictNote | CacheSavingsNote] = []

    def note(self, note: CacheVerdictNote | CacheSavingsNote) -> EntryId:
        self.made.append(note)
        return EntryId(str(len(self.made)))

    def keep(self) -> None:
        self.kept = list(self.made)


def test_a_verdict_is_stored_if_it_is_news() -> None:
    session = _Session()
    evidence = CacheEvidence(session=lambda: session)
    first, again = _verdict("hour", held=True), _verdict("hour", held=True)
    assert evidence.trust("claude-sonnet-4-5") == UNKNOWN
    assert evidence.add(first)
    assert not evidence.add(again)
    assert session.kept == [first]
    assert evidence.trust("claude-sonnet-4-5") == CacheTrust("holds", "unknown")
    assert evidence.trust("claude-opus-4-6") == UNKNOWN
    assert not evidence.failed()


def test_a_failure_survives_a_restart(tmp_path: Path) -> None:
    with wiring.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        assert engine.evidence.add(_verdict("hour", held=False))
    with wiring.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        assert engine.evidence.failed() == {"claude-sonnet-4-5": CacheTrust("fails", "fails")}


def test_a_practice_that_failed_is_tried_again_after_a_month(tmp_path: Path) -> None:
    failed = CacheTrust("fails", "fails")
    with wiring.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        assert engine.evidence.add(_verdict("hour", held=False))
    with wiring.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        model, end = "claude-sonnet-4-5", 1000.0 + TRIED_AGAIN
        assert engine.evidence.trust(model, end - 1) == failed
        assert engine.evidence.trust(model, end) == UNKNOWN
        assert engine.evidence.add(replace(_verdict("hour", held=False), at=end)), "it failed again, which is news"
    with wiring.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        assert engine.evidence.trust(model, end + 1) == failed


def test_sessions_know_the_verdicts_after_an_erasure_in_the_store(tmp_path: Path) -> None:
    with wiring.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        engine.session("before")
        with closing(wiring.open_for_forgetting(tmp_path / "store.db", workspace=tmp_path)) as store:
            store.bury([Tombstone("00" * 32, 9, 7)])
        after = engine.session("after")
        assert after.traffic._shared.evidence is engine.evidence


def test_a_sentence_tells_what_was_seen_and_what_follows() -> None:
    off = CacheTrust("fails", "fails")
    told = words_of(_verdict("keep_alive", held=False), off)
    assert "0 of 50,000 tokens" in told
    assert "no more keep-alive requests" in told
    assert "the client's again" in words_of(_verdict("hour", held=False), off)
    assert "outlived a pause" in words_of(_verdict("hour", held=True), CacheTrust("holds", "unknown"))
    assert "only renewal kept" in words_of(_verdict("renewal", held=True), CacheTrust(renewal="holds"))


def test_a_first_failure_after_successes_ends_nothing_and_is_not_told_so() -> None:
    evidence = CacheEvidence()
    evidence.add(_verdict("hour", held=True))
    evidence.add(lost := _verdict("hour", held=False))
    told = words_of(lost, evidence.trust(lost.model))
    assert "did not outlive" in told
    assert "the client's again" not in told
    evidence.add(lost)
    assert "the client's again" in words_of(lost, evidence.trust(lost.model))


def _reserve(
    evidence: CacheEvidence, own: float = 0.0, exposed: float = 0.0, at: float = 10.0, session: str = "a"
) -> float:
    """Return what a session may borrow for its next request, which may expose so much."""
    return evidence.lend(
        SessionRequest(session, at), SessionRequest(session, None), Exposure(exposed, own, 0.0, at + 3600.0)
    )


def test_a_fifth_of_what_other_sessions_saved_is_the_reserve_and_a_loss_makes_it_smaller() -> None:
    session = _Session()
    evidence = CacheEvidence(session=lambda: session)
    assert _reserve(evidence) == 0, "a new store has none"
    evidence.add_savings(9000.0, 1.0)
    assert session.kept == [], "an entry for every request would be too many"
    evidence.add_savings(41_000.0, 2.0)
    assert session.kept == [CacheSavingsNote(50_000.0, 2.0)]
    assert _reserve(evidence) == 10_000
    assert _reserve(evidence, own=30_000.0) == 4000, "what a session saved itself is in its own hand"
    evidence.add_savings(-40_000.0, 3.0)
    assert _reserve(evidence) == 2000
    evidence.add_savings(-20_000.0, 4.0)
    assert _reserve(evidence) == 0


def test_savings_survive_a_restart(tmp_path: Path) -> None:
    with wiring.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        engine.evidence.add_savings(600_000.0, 1.0)
        engine.evidence.add_savings(-100_000.0, 2.0)
    with wiring.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        assert _reserve(engine.evidence) == 100_000
        assert _reserve(engine.evidence, own=300_000.0) == 40_000


def test_two_processes_and_a_process_after_a_restart_know_of_a_loan(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    with wiring.open(store, workspace=tmp_path) as one, wiring.open(store, workspace=tmp_path) as other:
        one.evidence.add_savings(300_000.0, 1.0)
        assert _reserve(other.evidence, session="b") == 60_000
        assert _reserve(one.evidence, exposed=50_000.0) == 60_000
        one.evidence.add_savings(0.0, 10.0, SessionRequest("a", 10.0))  # the answer was reported
        assert _reserve(other.evidence, session="b", at=20.0) == 10_000
        assert _reserve(other.evidence, session="b", at=3611.0) == 60_000, "the client's own entries have expired"
    with wiring.open(store, workspace=tmp_path) as later:
        assert _reserve(later.evidence, session="b", at=20.0) == 10_000
        assert _reserve(later.evidence, session="a", at=20.0) == 60_000, "its next request takes the place of the last"


def test_a_savings_note_of_an_earlier_release_is_read() -> None:
    assert decode_note("cache.savings", '{"saved":5.0,"at":1.0}') == CacheSavingsNote(5.0, 1.0)
