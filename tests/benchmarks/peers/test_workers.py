"""Workers in processes of their own, environments, and the page."""

from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.peers.arms import ARMS, Arm, Peer
from benchmarks.peers.comparing import compare
from benchmarks.peers.driving import Worker
from benchmarks.peers.page import figures, page
from benchmarks.peers.sessions import load

from pagein.errors import HostError
from pagein.providers.prices.price_lookup import prices

DEMO = Path(__file__).resolve().parents[3] / "examples" / "demo-session.jsonl.gz"
MESSAGES = (b'{"role":"user","content":"gr\\u00fc\\u00df \\ud800"}',)
Start = Callable[[str], Worker]


def test_a_worker_says_what_it_is_and_answers_in_order(start: Start) -> None:
    with start("echoes") as worker:
        assert worker.version.startswith("pytest ")
        for _ in range(3):
            answer = worker.ask(0, 10, 20, MESSAGES)
            assert answer.messages == MESSAGES
            assert answer.seconds >= 0


def test_a_strategy_is_told_of_the_request_and_begins_anew_with_each_window(start: Start) -> None:
    with start("says how") as worker:
        said = [worker.ask(window, 10.4, 20, MESSAGES).messages[0] for window in (7, 7, 8)]
    assert [one.split(b'"')[-2] for one in said] == [b"1 7 10 20", b"2 7 10 20", b"1 8 10 20"]


def test_what_a_peer_prints_does_not_disturb_its_answers(start: Start) -> None:
    with start("chatters") as worker:
        assert worker.ask(0, 1, 1, MESSAGES).messages == MESSAGES


def test_what_a_peer_raises_is_an_error_and_the_worker_lives_on(start: Start) -> None:
    with start("raises") as worker:
        for _ in range(2):
            assert worker.ask(0, 1, 1, MESSAGES).error == "ValueError: no such thing"


def test_a_peer_cannot_reach_the_network(start: Start) -> None:
    with start("calls home") as worker:
        assert worker.ask(0, 1, 1, MESSAGES).error == "OSError: no network in a benchmark"


def test_a_worker_that_ends_is_noticed(start: Start) -> None:
    with start("ends") as worker, pytest.raises(HostError, match="ended"):
        worker.ask(0, 1, 1, MESSAGES)


def test_an_answer_may_be_larger_than_any_pipe(start: Start) -> None:
    big = b'{"role":"user","content":"%s"}' % (b"x" * 3_000_000)
    with start("echoes") as worker:
        assert worker.ask(0, 1, 1, (big,)).messages == (big,)


def test_a_peer_that_cannot_be_installed_is_reported_and_the_others_go_on(tmp_path: Path) -> None:
    class Broken(Peer):
        __slots__ = ()

        @property
        def lock(self) -> Path:
            return tmp_path / "broken.lock"

    (tmp_path / "broken.lock").write_text("not a requirement @ https://example.invalid/x\n")
    arm = Arm(Broken("broken", "nobody", "Never seen."), "", "anthropic", "full", "nothing")
    sessions, _ = load([DEMO])
    compared = compare(sessions, [prices("generic:r=.1,w=1.25")], [arm], tmp_path)
    why = compared.absent["broken"]
    assert why
    assert "example.invalid" not in why
    written = page(compared, [arm], "2026-11-21")
    assert f"| `broken` | {why}" in written
    assert "| `pagein-quiet` |" in written
    assert figures(compared, "2026-11-21")["absent"] == {"broken": why}


def test_every_package_of_every_lock_is_pinned_and_hashed() -> None:
    for peer in {arm.peer.name: arm.peer for arm in ARMS}.values():
        lines = peer.lock.read_text().replace("\\\n", " ").splitlines()
        assert lines
        assert [line for line in lines if "==" not in line or "--hash=sha256:" not in line] == []


def test_no_two_rows_have_one_name() -> None:
    assert len({arm.name for arm in ARMS}) == len(ARMS)
