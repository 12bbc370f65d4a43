"""Vectors for the rules of docs/reference/caches.md, each a short story told to a simulator.

"1k blocks" are blocks of 1 000 tokens; prices are r = .1 and w = 1.25 unless a vector says otherwise.
"""

from dataclasses import replace

import pytest
from tests.providers.caches.prompts import Conversation, blocks

from pagein.errors import BadInput
from pagein.providers.cache_simulator import KINDS, LONG, Breakpoint, bill
from pagein.providers.caches.breakpoint_rules import BreakpointRefusal, breakpoint_refusal, with_automatic
from pagein.providers.caches.invalidation import PromptSettings, anthropic_domains
from pagein.providers.prices.price_lookup import prices

ANTHROPIC = KINDS["anthropic"].least(1024)
GENERIC = prices("generic:r=.1,w=1.25")


def test_v1_an_entry_beyond_twenty_positions_is_found_only_from_a_second_mark() -> None:
    for marks, read in (((35,), 0), ((15, 35), 15_000)):
        talk = Conversation(ANTHROPIC)
        talk.ask(0, blocks(10), [10])
        talk.ask(1, blocks(15), [15])
        assert talk.ask(2, blocks(35), marks).read == read


def test_v2_a_timestamp_in_the_marked_block_writes_everything_every_time() -> None:
    talk = Conversation(ANTHROPIC)
    for turn in range(4):
        served = talk.ask(turn, [*blocks(4), (("clock", turn), 1000)], [5])
        assert (served.read, served.written, served.fresh) == (0, 5000, 0)


def test_v3_mixed_lifetimes_are_billed_each_at_its_own_price() -> None:
    talk = Conversation(ANTHROPIC)
    prompt = [("a", 2000.0), ("b", 3000.0), ("c", 2000.0), ("d", 400.0)]
    talk.ask(0, prompt[:1], [Breakpoint(1, LONG)])
    served = talk.ask(1, prompt, [Breakpoint(2, LONG), Breakpoint(3)])
    assert (served.read, served.written_1h, served.written_5m, served.fresh) == (2000, 3000, 2000, 400)
    assert bill(served, GENERIC) == pytest.approx(9100)


@pytest.mark.parametrize(("size", "written"), [(511, 0), (512, 512)])
def test_v4_below_the_minimum_nothing_is_cached_and_nothing_is_refused(size: int, written: int) -> None:
    talk = Conversation(prices("claude-opus-5").cache)
    assert talk.ask(0, [("a", size)], [1]).written == written
    assert talk.ask(1, [("a", size)], [1]).read == written


@pytest.mark.parametrize(("at", "read"), [(299, 3000), (301, 0)])
def test_v5_a_lifetime_counts_from_the_start_of_the_request_not_of_its_answer(at: float, read: int) -> None:
    talk = Conversation(ANTHROPIC)
    talk.ask(0, blocks(3), [3], answered_at=240)
    assert talk.ask(at, blocks(3), [3]).read == read


@pytest.mark.parametrize(("refreshing", "read"), [(True, 2000), (False, 0)])
def test_v6_reading_at_the_end_keeps_the_system_entry_alive(refreshing: bool, read: int) -> None:  # noqa: FBT001  a column of the table
    talk = Conversation(replace(ANTHROPIC, ancestor_refresh=refreshing))
    talk.ask(0, blocks(5), [2, 5])
    talk.ask(200, blocks(5), [5])
    fork = [*blocks(2), ("another question", 1000.0)]
    assert talk.ask(400, fork, [2, 3]).read == read


def test_v7_concurrent_cold_requests_both_pay_the_write() -> None:
    talk = Conversation(ANTHROPIC)
    first = talk.ask(0, blocks(3), [3], answered_at=2)
    second = talk.ask(1, blocks(3), [3], answered_at=3)
    assert first.written == second.written == 3000
    assert second.reason == "unanswered"
    assert talk.ask(2, blocks(3), [3]).read == 3000


def test_v8_marks_that_the_provider_refuses_are_refused_with_its_rule() -> None:
    five = tuple(Breakpoint(position) for position in range(1, 6))
    late_hour = (Breakpoint(1), Breakpoint(2, LONG))
    answers = (breakpoint_refusal(five), with_automatic(five[:4], last=5), breakpoint_refusal(late_hour))
    assert [answer.rule for answer in answers if isinstance(answer, BreakpointRefusal)] == ["M14", "M16", "M15"]
    for marks in (five, late_hour, (Breakpoint(0),), (Breakpoint(9),), (Breakpoint(1, 60),)):
        with pytest.raises(BadInput):
            Conversation(ANTHROPIC).ask(0, blocks(8), marks)


def test_v8_an_automatic_mark_takes_a_free_slot_or_clashes() -> None:
    marks = (Breakpoint(1, LONG), Breakpoint(5))
    assert with_automatic(marks, last=6) == (*marks, Breakpoint(6))
    assert with_automatic(marks, last=5) == marks
    assert with_automatic(marks, last=0) == marks
    clash = with_automatic(marks, last=5, ttl=LONG)
    assert isinstance(clash, BreakpointRefusal)
    assert clash.rule == "M16"
    assert "ttl='1h' but the target block already has cache_control with ttl='5m'" in clash.message


def test_v9_another_tool_choice_voids_the_messages_and_leaves_the_system() -> None:
    talk = Conversation(ANTHROPIC)

    def chain(settings: PromptSettings) -> list[int]:
        head = anthropic_domains(talk.chains, settings, ["tool"], ["system"])
        return [*head.chain, talk.chains.extend(head.messages, "question")]

    request = talk.request(0, blocks(3), [2, 3])
    served = [
        talk.simulator.serve(replace(request, chain=chain(settings)))
        for settings in (
            PromptSettings("m"),
            PromptSettings("m"),
            PromptSettings("m", tool_choice="any"),
            PromptSettings("other"),
        )
    ]
    assert [s.read for s in served] == [0, 3000, 2000, 0]


@pytest.mark.parametrize(("size", "read"), [(1023, 0), (2006, 1920)])
def test_v10_automatic_prefix_caching_reads_whole_steps_of_128_from_1024_on(size: int, read: int) -> None:
    talk = Conversation(KINDS["openai-legacy"])
    talk.ask(0, [("same", size)])
    assert talk.ask(1, [("same", size)]).read == read


def test_v11_only_the_third_request_that_shares_a_prefix_reads_it() -> None:
    talk = Conversation(KINDS["deepseek"])
    reads = [talk.ask(at, [("A", 1000), (rest, 1000)]).read for at, rest in enumerate("BCD")]
    assert reads == [0, 0, 1000]


def test_v12_the_last_token_is_always_computed_again() -> None:
    talk = Conversation(KINDS["vllm"])
    talk.ask(0, [("same", 1000)])
    assert talk.ask(1, [("same", 1000)]).read == 992


@pytest.mark.parametrize(("size", "into", "out"), [(100_000, 0.10, 0.50), (100_001, 0.50, 2.50)])
def test_v13_above_the_cliff_every_token_of_the_request_costs_more(size: int, into: float, out: float) -> None:
    haiku = prices("claude-haiku-5-5")
    served = Conversation(haiku.cache).ask(0, [("a", size)], output=2000)
    assert haiku.usd(bill(served, haiku)) == pytest.approx((size * into + 2000 * out) / 1e6)


def test_v14_a_prefix_that_ends_between_two_breakpoints_is_no_partial_hit() -> None:
    talk = Conversation(KINDS["openai"])
    talk.ask(0, blocks(5))
    talk.ask(1, blocks(15))
    fork = [*blocks(10), ("another", 1000.0)]
    assert talk.ask(2, fork).read == 5000


def test_v15_an_entry_out_of_reach_is_written_again() -> None:
    talk = Conversation(ANTHROPIC)
    served = [talk.ask(at, blocks(count), [count]) for at, count in ((0, 10), (10, 15), (20, 35))]
    assert [(s.read, s.written) for s in served] == [(0, 10_000), (10_000, 5_000), (0, 35_000)]


def test_v16_a_second_mark_brings_it_into_reach() -> None:
    talk = Conversation(ANTHROPIC)
    talk.ask(0, blocks(10), [10])
    talk.ask(10, blocks(15), [15])
    third = talk.ask(20, blocks(35), [15, 35])
    assert (third.read, third.written) == (15_000, 20_000)


def test_v17_the_twentieth_position_is_the_last_one_checked() -> None:
    for count, read in ((16, 16_000), (15, 0)):
        talk = Conversation(ANTHROPIC)
        talk.ask(0, blocks(count), [count])
        assert talk.ask(1, blocks(35), [35]).read == read


def test_v18_the_timestamp_trap_reads_nothing_on_all_five_requests() -> None:
    talk = Conversation(ANTHROPIC)
    reads = [talk.ask(at, [*blocks(5), (("clock", at), 100)], [6]).read for at in range(0, 50, 10)]
    assert reads == [0] * 5


def test_v19_a_short_prompt_is_fresh() -> None:
    served = Conversation(ANTHROPIC).ask(0, [("a", 500)], [1])
    assert (served.written, served.fresh, served.reason) == (0, 500, "below_minimum")


def test_v20_each_read_starts_the_lifetime_anew() -> None:
    talk = Conversation(ANTHROPIC)
    assert [talk.ask(at, blocks(3), [3]).read for at in (0, 299, 590, 900)] == [0, 3000, 3000, 0]
