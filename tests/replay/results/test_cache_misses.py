"""Why recorded calls read less than was there: told from usage, times and what the host did."""

from dataclasses import replace
from itertools import pairwise

import pytest

from pagein.model.bill import Miss
from pagein.model.messages import HostEvent, Message, Usage
from pagein.providers.prices.price_lookup import prices
from pagein.replay.prompt.billable_session import on_own_cache
from pagein.replay.results.cache_misses import SessionMisses, examine_session, report
from pagein.replay.results.prediction import own_prices
from pagein.testing.story import Story

OWN = own_prices("claude-opus-4-6")
STEP = 3000


def _told(reads: list[int | None], *, waits: dict[int, float] | None = None, first: int = 20_000) -> Story:
    """Calls whose prompts grow by `STEP`; a number is what a call read, None all that the call before held."""
    story, size, held = Story().asks(), first, 0
    for number, read in enumerate(reads):
        got = held if read is None else read
        usage = Usage(fresh=0, read=got, written=size - got, output=50)
        story.works(STEP, wait=(waits or {}).get(number, 10.0), usage=usage)
        held, size = size, size + STEP
    return story


def _examined(story: Story) -> SessionMisses:
    recording = story.recording(OWN)
    return examine_session(on_own_cache(recording, OWN, misses=False), OWN)


def _only(story: Story) -> Miss:
    (miss,) = _examined(story).misses
    return miss


def test_a_complete_cache_read_needs_no_explanation() -> None:
    found = _examined(_told([0, None, None, None, None]))
    assert (found.calls, found.misses) == (5, ())
    assert found.bill > 0


def test_a_cache_miss_within_the_ttl_is_unexplained() -> None:
    miss = _only(_told([0, None, None, 1000, None]))
    assert (miss["call"], miss["cause"], miss["who"], miss["idle"]) == (3, "unexplained", "provider", 10.0)
    assert (miss["read"], miss["expected"], miss["missed"]) == (1000, 26_000, 25_000)
    assert miss["cost"] == pytest.approx(25_000 * (1.25 - 0.1))


def test_a_pause_beyond_the_lifetime_is_nobodys_fault() -> None:
    miss = _only(_told([0, None, None, 0, None], waits={2: 400.0}))
    assert (miss["call"], miss["cause"], miss["who"], miss["idle"]) == (3, "expired", "nobody", 400.0)


def test_another_model_reads_nothing_from_the_first_models_cache() -> None:
    story = _told([0, None, None, 0, None])
    calls = [place for place, one in enumerate(story.entries) if isinstance(one, Message) and one.role == "assistant"]
    for place in calls[3:]:
        entry = story.entries[place]
        assert isinstance(entry, Message)
        story.entries[place] = replace(entry, model="claude-haiku-4-5")
    miss = _only(story)
    assert (miss["call"], miss["cause"], miss["who"]) == (3, "model", "client")


def test_a_miss_by_content_that_the_client_dropped_is_the_clients() -> None:
    story = _told([0, None, None, None])
    story.works(STEP, usage=Usage(read=2000, written=25_000, output=50))
    miss = _only(story)
    assert (miss["call"], miss["cause"], miss["who"]) == (4, "messages", "client")
    assert "took something out of the prompt" in miss["words"]
    assert miss["missed"] == 25_000


def test_a_compaction_is_told_as_one() -> None:
    story = _told([0, None, None, None])
    story.entries.append(HostEvent("compaction"))
    story.works(STEP, usage=Usage(read=2000, written=6000, output=50))
    miss = _only(story)
    assert (miss["call"], miss["cause"], miss["who"], miss["missed"]) == (4, "compaction", "client", 6000)


def test_a_prompt_below_the_minimum_is_not_cached() -> None:
    story, size = Story().asks(), 2500
    for _ in range(3):
        story.works(100, usage=Usage(fresh=size, output=10))
        size += 120
    assert {one["cause"] for one in _examined(story).misses} == {"below minimum"}


def test_a_recording_without_usage_has_no_call_to_examine() -> None:
    found = _examined(Story().asks().works(100).works(100).says())
    assert (found.calls, found.bill, found.misses) == (0, 0, ())


def test_a_report_adds_up_by_source_and_names_every_miss() -> None:
    one = _examined(_told([0, None, 1000, None, 0], waits={3: 400.0}))
    other = replace(_examined(_told([0, None, None])), source="elsewhere")
    found = report([one, other, one])
    assert set(found["sources"]) == {"tests", "elsewhere"}
    checkup = found["sources"]["tests"]
    assert checkup["calls"] == 10
    assert {one["cause"]: one["calls"] for one in checkup["ailments"]} == {"unexplained": 2, "expired": 2}
    assert len(found["misses"]) == 4
    assert sum(one["cost"] for one in checkup["ailments"]) == pytest.approx(sum(one["cost"] for one in found["misses"]))
    assert all(earlier["cost"] >= later["cost"] for earlier, later in pairwise(checkup["ailments"]))
    assert found["sources"]["elsewhere"]["ailments"] == []


def test_on_a_cache_without_a_fee_a_miss_costs_the_whole_price() -> None:
    charged = prices("generic:r=.1,w=1,cache=openai-legacy")
    story = _told([0, None, None, 1024, None])
    for place, entry in enumerate(story.entries):
        if isinstance(entry, Message) and entry.role == "assistant":
            story.entries[place] = replace(entry, model="gpt-4o")
    pure = on_own_cache(story.recording(charged), charged, misses=False)
    (miss,) = examine_session(pure, charged).misses
    assert miss["cause"] == "unexplained"
    assert miss["cost"] == pytest.approx(miss["missed"] * 0.9)
