import pytest

from pagein.model.messages import HostEvent, Usage
from pagein.replay.prompt.prompt_sizes import grow, host_ttl, session_facts, source_facts
from pagein.testing.story import RATIO, Story


def _prompt(tokens: int, read: int = 0) -> Usage:
    return Usage(read=read, written=tokens - read)


def test_growth_beyond_the_visible_is_hidden(story: Story) -> None:
    calls = story.asks("x" * 200).works(1000, usage=_prompt(5000)).says(usage=_prompt(7000)).calls()
    first, second = grow(calls, 4900.0, RATIO, misses=True)
    assert first.prompt == 5000
    assert second.hidden == pytest.approx(2000 - sum(second.blocks))
    assert second.prompt == 7000


def test_a_prompt_that_grew_less_than_estimated_scales_its_new_blocks(story: Story) -> None:
    calls = story.asks("x" * 200).works(1000, usage=_prompt(5000)).says(usage=_prompt(5500)).calls()
    second = grow(calls, 4900.0, RATIO, misses=True)[1]
    assert sum(second.blocks) == pytest.approx(500)
    assert second.hidden == 0


def test_a_prompt_that_hardly_grew_takes_the_rest_from_what_was_hidden(story: Story) -> None:
    story.asks("x" * 200).works(1000, usage=_prompt(5000)).works(1000, usage=_prompt(8000)).says(usage=_prompt(8100))
    sized = grow(story.calls(), 4900.0, RATIO, misses=True)
    assert sum(sized[2].blocks) == pytest.approx(0.6 * sum(sized[1].blocks), rel=0.01)
    assert sized[2].shrunk == pytest.approx(sum(sized[2].blocks) - 100)
    assert sized[2].prompt == pytest.approx(8100)


def test_a_prompt_that_collapses_without_notice_opens_a_window(story: Story) -> None:
    story.asks().works(1000, usage=_prompt(50_000)).works(10, usage=_prompt(60_000)).says(usage=_prompt(9_000))
    sized = grow(story.calls(), 4000.0, RATIO, misses=True)
    assert [one.opens_segment for one in sized] == [True, False, True]
    assert sized[2].prompt == 9000


def test_a_miss_inside_the_lifetime_is_a_fact_and_one_after_it_is_not(story: Story) -> None:
    story.asks().works(10, usage=_prompt(10_000)).works(10, usage=_prompt(10_100, read=500))
    story.waits(400).asks().works(10, usage=_prompt(10_200, read=500)).says(usage=_prompt(10_300, read=10_200))
    caps = [one.cap for one in grow(story.calls(), 5000.0, RATIO, misses=True)]
    assert caps == [None, 500.0, None, None]
    assert [one.cap for one in grow(story.calls(), 5000.0, RATIO, misses=False)] == [None] * 4


def test_the_lifetime_is_the_one_the_host_wrote_more_with(story: Story) -> None:
    story.asks().works(10, usage=Usage(written=100, written_1h=80)).says(usage=Usage(written=50))
    assert host_ttl(story.calls()) == 3600
    assert host_ttl(Story().asks().says(usage=Usage(written=50)).calls()) == 300


def test_a_source_teaches_its_sessions_what_stays_warm(story: Story) -> None:
    story.asks().works(10, usage=_prompt(10_000)).waits(1000).asks().works(10, usage=_prompt(10_100, read=3000))
    story.entries.append(HostEvent("compaction"))
    story.says(usage=_prompt(6000, read=2500))
    facts = source_facts([(session_facts(story.calls(), is_sub=False), RATIO)])
    assert facts.cold_read == 3000
    assert facts.compacted_read == 2500
    assert 5900 < facts.floor["main"] <= 6000
