"""Paging in pi: when a compaction is cancelled, what a broken store changes, and what a branch sets for itself."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.pi_host.fake_pi import FakePi

import pagein
from pagein.engine.engine import Settings
from pagein.errors import BadInput
from pagein.pi_host.branch import UnknownEntry
from pagein.pi_host.host import PiSettings
from pagein.pi_host.session_config import (
    KEYS,
    NOTHING_SAID,
    REPLACED,
    config_table,
    held_settings,
    parse_config,
    read_config,
)
from pagein.settings.sources import load_config

LARGE = "".join(f"row {number} of an output that nobody needs for long\n" for number in range(900))
HALF = {"tokens": 50_000, "window": 100_000}
PRINT = ("bash", {"command": "print large.txt"})
THEIRS = (
    "enabled maxDepth maxConcurrency tokenBudgetPercent safetyValvePercent manifestBudget warmTurns childTimeoutSec "
    "operationTimeoutSec maxChildCalls childMaxTokens childModel retentionDays maxIngestFiles maxIngestBytes"
)
"""The keys of `rlm-config` in the specification."""


@pytest.fixture
def pi(tmp_path: Path) -> Iterator[FakePi]:
    (tmp_path / "large.txt").write_text(LARGE, encoding="utf-8")
    with pagein.open(tmp_path / "s.pagein", workspace=tmp_path, patience=0.05) as engine:
        made = FakePi(engine, tmp_path, PiSettings(reads="off", pages=True))
        made.say("read it")
        yield made


def paged_out(pi: FakePi) -> str:
    """Print the large file, and return what the model is shown of it."""
    pi.call(PRINT)
    (shown,) = pi.request(HALF)
    assert "rlm_peek" in shown
    return shown


@pytest.mark.parametrize(
    ("usage", "cancelled"),
    [
        ({"tokens": 60_000, "window": 100_000}, True),
        ({"tokens": 91_000, "window": 100_000}, False),
        (None, False),
    ],
)
def test_a_compaction_is_cancelled_only_while_the_request_fits(
    pi: FakePi, usage: dict[str, int] | None, *, cancelled: bool
) -> None:
    pi.request(HALF)
    verdict = pi.ask("compact", usage=usage)
    assert verdict["cancel"] is cancelled
    assert ("/rlm off" in verdict["reason"]) is cancelled


def test_a_compaction_is_let_through_without_paging_and_after_an_error_of_the_provider(pi: FakePi) -> None:
    assert pi.ask("compact", usage=HALF)["cancel"]
    pi.add("message", message={"role": "assistant", "content": [], "stopReason": "error", "timestamp": 1})
    assert not pi.ask("compact", usage=HALF)["cancel"], "the provider found the request too long"
    pi.add("message", message={"role": "assistant", "content": [], "stopReason": "stop", "timestamp": 1})
    assert pi.ask("compact", usage=HALF)["cancel"]
    pi.order("rlm", "off")
    assert not pi.ask("compact", usage=HALF)["cancel"]


def test_while_the_store_fails_pi_is_as_without_paging_and_then_the_stubs_are_back(pi: FakePi) -> None:
    shown = paged_out(pi)
    with closing(sqlite3.connect(pi.folder / "s.pagein", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        pi.say("go on")
        assert pi.request(HALF) == [LARGE], "a stub could not be recalled"
        assert "journal was not kept" in pi.failure
        assert not pi.ask("compact", usage=HALF)["cancel"]
        other.execute("ROLLBACK")
    pi.say("go on")
    assert pi.request(HALF) == [shown]
    assert pi.failure == ""
    assert pi.ask("compact", usage=HALF)["cancel"]


def test_while_pi_does_not_know_how_full_the_window_is_old_stubs_stay_and_nothing_new_leaves(pi: FakePi) -> None:
    shown = paged_out(pi)
    pi.call(PRINT)
    assert pi.request(None) == [shown, LARGE]


def test_a_pinned_text_stands_behind_the_message_that_was_the_newest_and_survives_a_restart(pi: FakePi) -> None:
    paged_out(pi)
    pi.engine.session("pi-s1").hand.say("Never touch the migrations.")
    pi.call(PRINT)
    pi.request(HALF)
    ((place, text),) = pi.inserts
    assert "Never touch the migrations." in text
    assert place == pi.branch()[-1]["message"]["toolCallId"]
    before = pi.inserts
    pi.say("go on")
    pi.request(HALF)
    assert pi.inserts == before, "it was sent there, so it stays there"


def test_what_a_branch_configures_opens_the_session_anew_and_holds_there_alone(pi: FakePi) -> None:
    before = pi.leaf
    assert "maxChildCalls=7" in pi.order("rlm", "config maxChildCalls=7 manifestBudget=3K safetyValvePercent=80")
    with pytest.raises(UnknownEntry):
        pi.ask("begin")
    pi.forget()
    pi.ask("begin")
    assert dict(pi.given) == {"child_calls": 7, "manifest_budget": 3000, "valve": 0.8, "valve_limit": 0.8}
    table = pi.order("rlm", "config")
    rows = {row.split()[0]: row.split()[1:4] for row in table.splitlines()}
    assert rows["maxChildCalls"] == ["7", "session", "child_calls"]
    assert rows["manifest"] == ["off", "settings", "manifest"], "in the words that set it"
    pi.leaf = before
    with pytest.raises(UnknownEntry):
        pi.ask("begin")
    assert dict(pi.given) == {}
    pi.forget()
    pi.order("rlm", "on")
    rows = {row.split()[0]: row.split()[1:4] for row in pi.order("rlm", "config").splitlines()}
    assert rows["enabled"] == ["on", "session", "pi_paging;"]


def test_a_model_with_another_window_is_paged_for_its_own(pi: FakePi) -> None:
    hello = {"protocol": 1, "extension": "0", "session": "s1", "cwd": str(pi.folder), "window": 200_000}
    pi._send("hello", hello)
    pi.request({"tokens": 9_000, "window": 200_000})
    assert pi.given["window"] == 200_000
    pi.order("rlm", "config maxChildCalls=7")
    with pytest.raises(UnknownEntry):
        pi.request({"tokens": 9_000, "window": 32_000})
    pi.forget()
    pi.request({"tokens": 9_000, "window": 32_000})
    assert dict(pi.given) == {"window": 32_000, "child_calls": 7}


def test_every_key_of_the_specification_is_ours_or_says_what_replaces_it() -> None:
    assert set(THEIRS.split()) == {*KEYS, *REPLACED} - {"manifest"}
    for words, reason in (("warmTurns=3", "residency"), ("maxDepth=two", "whole number"), ("speed=9", "maxDepth")):
        with pytest.raises(BadInput, match=reason):
            parse_config(words)
    theirs = {"enabled": True, "maxDepth": 2, "maxChildCalls": "many", "manifestBudget": 2000, "retentionDays": 30}
    read = read_config(theirs, NOTHING_SAID)
    assert (read.enabled, dict(read.values)) == (True, {"maxDepth": 2, "manifestBudget": 2000})
    table = config_table(NOTHING_SAID, load_config(environment={}).values, {})
    assert "childTimeoutSec      120        settings  child_seconds\n" in table
    assert set(THEIRS.split()) <= {row.split()[0] for row in table.splitlines()}


def test_a_value_that_cannot_hold_leaves_the_others_in_force_and_is_shown_as_refused() -> None:
    theirs = {"maxDepth": 3, "maxChildCalls": 2, "safetyValvePercent": 50, "childMaxTokens": 900}
    config = read_config(theirs, NOTHING_SAID)
    held = held_settings(config.settings, lambda given: load_config(given=given, environment={}))
    assert held == {"child_calls": 2, "child_tokens": 900}
    rows = config_table(config, load_config(environment={}).values, held).splitlines()
    assert [one.split("  ")[0] for one in rows if " is refused)" in one] == ["maxDepth", "safetyValvePercent"]
    assert [one.split()[:3] for one in rows if one.startswith("maxDepth ")] == [["maxDepth", "1", "settings"]]
    assert [one.split()[:3] for one in rows if one.startswith("maxChildCalls ")] == [["maxChildCalls", "2", "session"]]


def test_the_words_about_paging_stand_at_the_end_of_the_system_prompt_and_a_person_may_change_them(pi: FakePi) -> None:
    usual = pi.ask("begin")["prompt"]
    assert "look for it with rlm_search before you say that you do not have it" in usual
    pi.order("rlm", "prompt Be brief. {{default}}")
    assert pi.ask("begin")["prompt"] == f"Be brief. {usual}"
    assert pi.ask("begin")["tools"] == ["rlm_peek", "rlm_search", "rlm_ingest", "rlm_stats"]
    pi.order("rlm", "off")
    assert pi.ask("begin") == {"tools": [], "prompt": "", "headers": {}, "notice": "", "widget": []}


def test_what_left_with_the_last_request_of_a_process_stays_away_in_the_next_and_when_pi_comes_back(pi: FakePi) -> None:
    (pi.folder / "part.txt").write_text("".join(f"row {number} that nobody needs\n" for number in range(200)), "utf-8")
    for _ in range(12):
        pi.call(("bash", {"command": "print part.txt"}))
    pi.say("go on")
    pi.order("rlm", "externalize")
    asked, shown = pi.leaf, pi.request(HALF)
    assert sum("rlm_peek" in one for one in shown) > 5
    answer = {"role": "assistant", "content": [], "stopReason": "stop", "timestamp": 1}
    pi.add("message", message=answer)  # told to no process before the next prompt
    pi.say("and again")
    pi.restart("s1")
    assert pi.request(HALF) == shown
    assert "bash call_2: [pagein: pg-" in pi.order("rlm", "inspect")
    pi.restart("s1")
    assert "not known before the next request" in pi.order("rlm", "inspect"), "it does not say that there is none"
    pi.leaf = asked
    pi.say("another way")
    assert pi.request(HALF) == shown


def test_while_pagein_is_off_no_command_says_that_something_is_at_work(pi: FakePi) -> None:
    shown = paged_out(pi)
    pi.is_off = True
    assert pi.request(HALF) == [LARGE]
    assert pi.ask("begin")["widget"] == []
    for words in ("on", "status"):
        assert pi.order("rlm", words).endswith("`pagein on` in a shell ends that.")
    pi.is_off = False
    assert pi.request(HALF) == [shown]


def test_paging_that_is_switched_is_logged_as_an_operation(pi: FakePi) -> None:
    pi.order("rlm", "off")
    pi.order("rlm", "on")
    lines = (pi.folder / "s.pagein.trajectory.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["operation"] for line in lines] == ["toggle_off", "toggle_on"]


def test_a_session_that_goes_on_shows_its_widget_before_the_first_request(pi: FakePi) -> None:
    paged_out(pi)
    pi.add("message", message={"role": "assistant", "content": [], "stopReason": "stop", "timestamp": 1})
    pi.ask("begin")
    pi.restart("s1")
    (line,) = pi.ask("begin", usage=HALF)["widget"]
    assert line.startswith("pagein: window 50%, 0 stubs and 1 preview,")


def test_the_list_of_what_left_names_the_tools_that_pi_has(tmp_path: Path) -> None:
    (tmp_path / "some.txt").write_text(LARGE[:6000], encoding="utf-8")
    with pagein.open(tmp_path / "s.pagein", workspace=tmp_path, settings=Settings(manifest=True)) as engine:
        pi = FakePi(engine, tmp_path, PiSettings(reads="off", pages=True))
        for number in range(6):
            pi.say(f"print it, {number}")
            pi.call(("bash", {"command": "print some.txt"}))
        pi.order("rlm", "externalize")
        pi.request(HALF)
    ((_, page),) = pi.inserts
    assert page.endswith("\nUse rlm_search or rlm_peek to access this content.")


def test_words_of_rlm_may_be_in_capitals(pi: FakePi) -> None:
    pi.ask("begin", usage=HALF)
    for word in ("ON", "on"):
        (line,) = pi.ask("command", name="rlm", args=word)["widget"]
        assert line.startswith("pagein: window 50%"), word
    assert pi.ask("command", name="rlm", args="Off")["widget"] == []


def test_a_word_that_rlm_does_not_have_is_answered_with_those_it_has(pi: FakePi) -> None:
    assert "/rlm externalize" in pi.order("rlm", "explain")
    for word in ("store", "trace", "cancel", "clear", "resume", "inspect", "externalize"):
        assert pi.order("rlm", word)
