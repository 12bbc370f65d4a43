"""The safety valve: where the window is nearly full, results leave whatever their age; then, and only then, the host compacts."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.engine.window.sized_sessions import ASK, PATIENT, begun, body, ids, opened, says, shown, turn, whole

from pagein.engine.session import Session
from pagein.engine.window.eviction import window_of
from pagein.errors import BadSetting, StoreError
from pagein.model.entries import EpochEntry
from pagein.model.messages import Message, Text, ToolCall, ToolResult, Usage
from pagein.policy.economics.rewrite_cost import Account, Economics, Moment, excess_tokens, high_estimate, likely_tokens
from pagein.policy.eviction.overflow import FULL, NO_VALVE, Valve, plan_of
from pagein.policy.eviction.residents import Resident
from pagein.providers.wire import check_messages
from pagein.testing.eager_residency import eager

SMALL = Valve(window=6000)
"""Nine tenths are 5,400 tokens, of which three quarters, 4,050, may stand by our estimate until the provider reports."""


def test_nothing_is_forced_below_the_threshold(tmp_path: Path) -> None:
    with opened(tmp_path, valve=SMALL) as engine:
        session = begun(engine, "abcdef")
        assert whole(session) == set("abcdef")


def test_near_the_end_of_the_window_the_oldest_leave_whatever_their_age(tmp_path: Path) -> None:
    with opened(tmp_path, valve=SMALL) as engine:
        session = begun(engine, "abcdef")
        (prepared,) = says(session, turn("g", 800))
        assert prepared.opened is not None
        assert prepared.opened.reason == FULL
        assert not prepared.crowded
        assert "a" not in whole(session)
        assert {"f", "g"} <= whole(session), "the youngest stay"
        assert sum(map(len, shown(session).values())) * 4 / 3 < 0.65 * 6000
        for call, object_id in ids(session).items():
            assert session.recall(object_id) == body(call)
        assert check_messages(session.last_request(), "openai_chat") == []


def _epochs_of(session: Session) -> list[str]:
    return [entry.body.reason for entry in session.journal if isinstance(entry.body, EpochEntry)]


HELD_BACK = eager(batch_tokens=10**6, keep_calls=2, min_tokens=100, economics=Economics(share=0.0))
"""The policy itself takes nothing out, and the bankroll is empty."""


def test_below_the_limit_the_valve_waits_for_the_bankroll(tmp_path: Path) -> None:
    with opened(tmp_path, HELD_BACK, valve=SMALL) as engine:
        session = begun(engine, "abcdef")
        (prepared,) = says(session, turn("g"))
        assert sum(map(len, shown(session).values())) * 4 / 3 > 0.9 * 6000
        assert prepared.opened is None
        assert not prepared.crowded, "more may leave, so the host need not compact yet"


def test_below_the_limit_the_valve_opens_once_the_bankroll_covers_it(tmp_path: Path) -> None:
    rich = replace(HELD_BACK, economics=Economics(share=1.0))
    with opened(tmp_path, rich, valve=SMALL) as engine:
        session = begun(engine, "abcdefg")
        assert sum(map(len, (body(call) for call in "abcdefg"))) * 4 / 3 < 0.97 * 6000
        assert _epochs_of(session) == [FULL]


def test_at_the_limit_the_valve_goes_beyond_the_bankroll(tmp_path: Path) -> None:
    with opened(tmp_path, HELD_BACK, valve=SMALL) as engine:
        session = begun(engine, "abcdefgh")
        assert _epochs_of(session) == [FULL]


def test_with_a_limit_below_the_share_the_share_alone_decides(tmp_path: Path) -> None:
    with opened(tmp_path, HELD_BACK, valve=Valve(window=6000, limit=0.0)) as engine:
        assert _epochs_of(begun(engine, "abcdefg")) == [FULL]


@pytest.mark.parametrize("limit", [-0.1, 1.1])
def test_a_limit_that_is_no_share_is_refused(limit: float) -> None:
    with pytest.raises(BadSetting, match="valve_limit"):
        Valve(limit=limit)


def test_what_the_user_holds_stays_even_then_and_the_last_group_too(tmp_path: Path) -> None:
    with opened(tmp_path, valve=SMALL) as engine:
        session = begun(engine, "abcdef")
        session.hand.pin("a")
        session.hand.veto("b")
        says(session, turn("g", 3000))
        assert {"a", "b", "g"} <= whole(session)
        assert "c" not in whole(session)


def test_only_where_all_has_left_and_it_is_not_enough_the_host_is_to_compact(tmp_path: Path) -> None:
    with opened(tmp_path, valve=SMALL) as engine:
        session = begun(engine, "ab")
        (prepared,) = says(session, turn("g", 5000))
        assert prepared.crowded
        assert whole(session) == {"g"}
        session.note_compaction()
        session.append(ASK)
        assert not session.advance().crowded


def test_what_the_provider_counts_decides_once_it_has_said_so(tmp_path: Path) -> None:
    with opened(tmp_path, valve=SMALL) as engine:
        session = begun(engine, "ab")
        told = Usage(fresh=5300)
        session.append(Message("assistant", (ToolCall("c", "Bash", "{}"),), usage=told))
        session.append(Message("tool", (ToolResult("c", body("c"), "Bash"),)))
        prepared = session.advance()
        assert prepared.opened is not None
        assert prepared.opened.reason == FULL


def test_without_a_known_window_there_is_no_valve(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine, "abcdefghij")
        assert len(whole(session)) == 10
        session.model = "somebodys-own-model"
        says(session, turn("k"))
        assert len(whole(session)) == 11


def test_the_window_is_the_models_unless_it_is_set() -> None:
    assert window_of(Valve(), "claude-haiku-4-5") == 200_000
    assert window_of(Valve(), "nobodys-model") is None
    assert window_of(Valve(), None) is None
    assert window_of(Valve(window=1000), "claude-haiku-4-5") == 1000


def test_the_valve_can_be_shut(tmp_path: Path) -> None:
    with opened(tmp_path, valve=replace(NO_VALVE, window=10)) as engine:
        assert len(whole(begun(engine, "abcdefghij"))) == 10


@pytest.mark.parametrize(("share", "low", "window"), [(1.5, 0.6, None), (0.9, -0.1, 9), (0.5, 0.6, 9), (0.9, 0.6, 0)])
def test_a_valve_that_makes_no_sense_is_refused(share: float, low: float, window: int | None) -> None:
    with pytest.raises(BadSetting):
        Valve(share, low, window)


def test_the_estimate_is_high_and_what_must_leave_brings_it_down() -> None:
    moment = Moment(None, None, size=9000, new=0, floor=100, scale=1.2)
    for reported in (False, True):
        before = high_estimate(moment, reported=reported)
        assert before > 100 + 9000 * (1.2 if reported else 1)
        gone = excess_tokens(moment, 5000.0, reported=reported)
        assert high_estimate(moment, round(gone), reported=reported) == pytest.approx(5000, abs=2)


def test_at_the_limit_only_what_is_new_is_estimated_high_once_the_provider_has_counted() -> None:
    moment = Moment(None, None, size=9000, new=300, floor=100, scale=1.2)
    assert likely_tokens(moment, reported=True) == pytest.approx(100 + 1.2 * (9000 + 100))
    assert likely_tokens(moment, 1000, reported=True) == pytest.approx(100 + 1.2 * (8000 + 100))
    assert likely_tokens(moment, reported=False) == high_estimate(moment, reported=False)


@pytest.mark.parametrize(
    ("before", "at_marks", "again"),
    [(0, True, 10_000 + 3300), (500, True, 10_000 + 3300), (1000, True, 2300), (1200, True, 2300), (0, False, 3300)],
    ids=["at the prefix", "in front of the entry", "at the entry", "behind the entry", "an entry anywhere"],
)
def test_a_change_in_front_of_the_first_entry_is_charged_with_the_prompt_prefix(
    before: int, again: int, *, at_marks: bool
) -> None:
    prices = Economics(read=0.0, write=1.0, at_marks=at_marks)
    moment = Moment(now=10.0, last=5.0, size=3500, new=100, floor=10_000.0)
    going = [Resident("a", 1, 0, 100, 1, before=before, stays=0)]
    account = Account(anew=2000, found=1000)
    planned = plan_of(going, replace(PATIENT, economics=prices), moment, account, FULL)
    assert planned.alone.saved - planned.account.saved == pytest.approx(again)


def test_a_store_that_cannot_be_written_pages_nothing_out_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path, valve=SMALL) as engine:
        session = begun(engine, "abcdef")
        session.hand.epoch()
        blobs = session._parts.pager._blobs

        def fails(_: object) -> frozenset[object]:
            raise StoreError("no space left")

        monkeypatch.setattr(blobs, "put_objects", fails)
        (prepared,) = says(session, turn("g", 800))
        assert prepared.opened is None
        assert prepared.failure is not None
        assert "no space left" in prepared.failure
        assert prepared.crowded, "so the host may compact"
        assert whole(session) == set("abcdefg")
        monkeypatch.undo()
        (prepared,) = says(session, turn("h"))
        assert prepared.opened is not None, "as soon as it can be written again"
        assert_recallable(session)


def assert_recallable(session: Session) -> None:
    for call, object_id in ids(session).items():
        assert session.recall(object_id).startswith(f"{call} begins")


def test_what_cannot_be_read_back_is_not_restored_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path, PATIENT) as engine:
        session = begun(engine, "abcd")
        session.hand.epoch()
        says(session, turn("e"))
        session.hand.restore("a")
        session.hand.epoch()
        blobs = session._parts.pager._blobs

        def fails(_: object) -> bytes:
            raise StoreError("disk on fire")

        monkeypatch.setattr(blobs, "get", fails)
        (prepared,) = says(session, turn("f"))
        assert prepared.failure is not None
        assert "disk on fire" in prepared.failure
        assert "a" not in whole(session)
        monkeypatch.undo()
        session.hand.epoch()
        session.append(Message("assistant", (Text("hm"),)))
        session.append(ASK)
        session.advance()
        assert "a" in whole(session)
