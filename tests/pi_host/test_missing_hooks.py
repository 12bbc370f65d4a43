"""A host that lacks a hook loses what rests on that hook, and nothing else."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.pi_host.fake_pi import FakePi

import pagein
from pagein.pi_host.host import PiSettings

LARGE = "".join(f"row {number} of an output that nobody needs for long\n" for number in range(900))
TEXT = "a line of the file\nanother line of the file\n"
HALF = {"tokens": 50_000, "window": 100_000}


@pytest.fixture
def pi(tmp_path: Path) -> Iterator[FakePi]:
    (tmp_path / "large.txt").write_text(LARGE, encoding="utf-8")
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    with pagein.open(tmp_path / "s.pagein", workspace=tmp_path) as engine:
        made = FakePi(engine, tmp_path, PiSettings(pages=True))
        made.say("go")
        yield made


def test_without_events_of_tools_reads_pass_and_large_outputs_leave_and_come_back(pi: FakePi) -> None:
    pi.missing = {"calls"}
    read = ("read", {"path": "a.txt"})
    assert pi.call(read) + pi.call(read) == [TEXT, TEXT]
    pi.call(("bash", {"command": "print large.txt"}))
    shown = pi.request(HALF)[-1]
    assert len(shown) < len(LARGE) / 2
    name = shown.split('rlm_peek("')[1].split('"')[0]
    peek = {"id": "call_peek", "name": "rlm_peek", "input": {"id": name, "offset": 0, "length": 100}}
    assert pi.ask("tool", call=peek)["text"].startswith(LARGE[:100])


def test_without_a_hook_before_requests_nothing_leaves_and_what_reads_say_holds(pi: FakePi) -> None:
    pi.missing = {"context"}
    (printed,) = pi.call(("bash", {"command": "print large.txt"}))
    assert pi.call(("read", {"path": "a.txt"})) == [TEXT]
    (marker,) = pi.call(("read", {"path": "a.txt"}))
    assert marker == "[readcache: unchanged, 3 lines]"
    assert pi.request(HALF) == [printed, TEXT, marker], "what the marker rests on stands in the request"
    assert printed == LARGE


def test_without_tools_of_our_own_every_result_is_recalled_from_the_store(pi: FakePi, tmp_path: Path) -> None:
    pi.call(("bash", {"command": "print large.txt"}))
    name = pi.request(HALF)[-1].split('rlm_peek("')[1].split('"')[0]
    pi.ask("context", usage=HALF)
    with pagein.open(tmp_path / "s.pagein", workspace=tmp_path) as another:
        assert another.recall(name) == LARGE, "as `pagein peek` finds it"


def test_without_a_name_of_the_session_each_start_has_a_journal_of_its_own(pi: FakePi) -> None:
    names = set()
    for _ in range(2):
        pi.restart("")
        names.add(pi.ask("begin", address="http://127.0.0.1:8790")["headers"]["x-pagein-session"])
        assert pi.call(("read", {"path": "a.txt"})) + pi.call(("read", {"path": "a.txt"})) != [TEXT, TEXT]
    assert len(names) == 2
