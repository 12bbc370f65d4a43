"""Cases beside the vectors: recordings, shared prefixes, rewinds, other kinds of cache, and the work done per call."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import overload

import pytest
from tests.providers.caches.prompts import Conversation, blocks

from pagein.errors import BadInput
from pagein.providers.cache_simulator import KINDS, LONG, Breakpoint, CacheRequest, CacheSimulator, Chains
from pagein.providers.caches.invalidation import PromptSettings, anthropic_domains

ANTHROPIC = KINDS["anthropic"].least(1024)
OPENAI = KINDS["openai"]


def test_an_unexplained_miss_rewrites_what_was_not_read_and_loses_it() -> None:
    talk = Conversation(ANTHROPIC)
    talk.ask(0, blocks(10), [4, 10])
    missed = talk.ask(10, blocks(12), [4, 12], read_cap=4500)
    assert (missed.read, missed.written, missed.hit, missed.reason) == (4500, 7500, 4, "capped")
    assert talk.ask(20, [*blocks(10), ("edited", 1000.0)], [4, 11]).read == 4000


def test_a_cap_above_the_hit_changes_nothing() -> None:
    talk = Conversation(ANTHROPIC)
    talk.ask(0, blocks(10), [10])
    served = talk.ask(1, blocks(12), [12], read_cap=11_000)
    assert (served.read, served.reason) == (10_000, "hit")


def test_what_others_keep_warm_is_read_without_an_entry_and_lives_on() -> None:
    talk = Conversation(ANTHROPIC)
    first = talk.ask(0, blocks(5), [2, 5], warm=2000)
    assert (first.read, first.written, first.hit, first.reason) == (2000, 3000, 2, "warm")
    assert talk.ask(10, [*blocks(2), ("another", 1000.0)], [2, 3]).read == 2000


def test_nothing_warm_is_read_beyond_the_last_mark_or_without_one() -> None:
    talk = Conversation(ANTHROPIC)
    assert talk.ask(0, blocks(5), [2], warm=4000).read == 2000
    assert talk.ask(0, blocks(5), [], warm=4000).read == 0


def test_a_rewind_that_wrote_in_between_is_kept_alive_by_its_own_mark() -> None:
    talk = Conversation(ANTHROPIC)
    talk.ask(0, blocks(35), [2, 35])
    talk.ask(100, [*blocks(15), ("rewound", 1000.0)], [2, 15, 16])
    talk.ask(290, blocks(36), [2, 15, 36])
    assert talk.ask(550, [*blocks(15), ("rewound again", 1000.0)], [2, 15, 16]).read == 15_000


def test_an_hour_entry_outlives_the_five_minute_entry_that_it_extends() -> None:
    talk = Conversation(ANTHROPIC)
    talk.ask(0, blocks(3), [3])
    talk.ask(10, blocks(6), [Breakpoint(6, LONG)])
    assert talk.ask(2000, blocks(3), [3]).reason == "expired"
    assert talk.ask(2001, blocks(6), [6]).read == 6000


def test_of_two_concurrent_writes_the_first_answer_makes_the_prefix_readable() -> None:
    talk = Conversation(ANTHROPIC)
    talk.ask(0, blocks(3), [3], answered_at=5)
    talk.ask(1, blocks(3), [3], answered_at=50)
    assert talk.ask(6, blocks(3), [3]).read == 3000


def test_grace_prolongs_a_lifetime() -> None:
    talk = Conversation(replace(ANTHROPIC, grace=60))
    talk.ask(0, blocks(3), [3])
    assert talk.ask(355, blocks(3), [3]).read == 3000


def test_conversations_of_one_account_share_their_system_prompt() -> None:
    talk = Conversation(ANTHROPIC)
    talk.ask(0, [*blocks(2), ("hers", 1000.0)], [2, 3])
    assert talk.ask(1, [*blocks(2), ("his", 1000.0)], [2, 3]).read == 2000


def test_the_matrix_of_what_a_setting_voids() -> None:
    chains = Chains()
    plain = anthropic_domains(chains, PromptSettings("m"), ["t1", "t2"], ["s"])

    def voids(settings: PromptSettings) -> str:
        head = anthropic_domains(chains, settings, ["t1", "t2"], ["s"])
        same = (head.chain[: head.tools] == plain.chain[: plain.tools], head.chain == plain.chain)
        return {(False, False): "tools", (True, False): "system", (True, True): "messages"}[same]

    assert voids(PromptSettings("other")) == "tools"
    assert voids(PromptSettings("m", features=("beta",))) == "tools"
    for of_system in (
        PromptSettings("m", web_search=True),
        PromptSettings("m", citations=True),
        PromptSettings("m", speed="fast"),
    ):
        assert voids(of_system) == "system"
    for of_messages in (
        PromptSettings("m", tool_choice="any"),
        PromptSettings("m", parallel_tools=False),
        PromptSettings("m", images=True),
        PromptSettings("m", effort="high"),
        PromptSettings("m", thinking=1024),
    ):
        assert voids(of_messages) == "messages"
        assert anthropic_domains(chains, of_messages, ["t1", "t2"], ["s"]).messages != plain.messages
    assert voids(PromptSettings("m", effort="high", thinking_voids_all=True)) == "tools"
    assert anthropic_domains(chains, PromptSettings("m"), ["t2", "t1"], ["s"]).chain[0] != plain.chain[0]


def test_from_gpt_5_6_on_the_provider_marks_the_newest_message_itself() -> None:
    talk = Conversation(OPENAI)
    assert talk.ask(0, blocks(40)).written == 40_000
    assert talk.ask(1, blocks(90)).read == 40_000  # no limit on the look-back


@pytest.mark.parametrize(
    ("eligible", "second"), [("last_user_or_tool", (2000, 2000)), ("last_user", (1000, 0)), ("none", (0, 0))]
)
def test_where_the_provider_marks_is_a_parameter(eligible: str, second: tuple[int, int]) -> None:
    talk = Conversation(replace(OPENAI, implicit_eligible=eligible, min_prefix=0))  # type: ignore[arg-type]  # the literals
    talk.ask(0, blocks(2), newest_user=1, newest_tool=2)
    served = talk.ask(1, blocks(5), newest_user=1, newest_tool=4)
    assert (served.read, served.written) == second


def test_without_implicit_marks_only_the_marked_blocks_are_matched() -> None:
    talk = Conversation(replace(OPENAI, implicit_eligible="none"))
    talk.ask(0, blocks(5), [2, 5])
    assert talk.ask(1, blocks(9), [9]).read == 0
    assert talk.ask(2, blocks(9), [2, 9]).read == 9000


def test_from_gpt_5_6_on_only_the_latest_four_marks_are_written() -> None:
    talk = Conversation(replace(OPENAI, implicit_eligible="none"))
    talk.ask(0, blocks(10), [2, 4, 6, 8, 10])
    fork = [*blocks(3), ("fork", 1000.0)]
    assert talk.ask(1, fork, [2, 4]).read == 0
    assert talk.ask(2, [*blocks(4), ("other", 1000.0)], [4, 5]).read == 4000


def test_from_gpt_5_6_on_a_long_mark_lives_twelve_hours() -> None:
    talk = Conversation(replace(OPENAI, implicit_eligible="none"))
    assert talk.ask(0, blocks(2), [Breakpoint(2, LONG)]).written_1h == 2000
    assert talk.ask(43_000, blocks(2), [2]).read == 2000
    assert talk.ask(43_001 + 1801 + 43_200, blocks(2), [2]).read == 0


def test_automatic_prefix_caching_matches_anywhere_and_needs_no_mark() -> None:
    talk = Conversation(KINDS["openai-legacy"])
    talk.ask(0, blocks(10))
    served = talk.ask(1, [*blocks(5), ("edited", 1000.0)])
    assert (served.read, served.written, served.fresh, served.hit) == (4992, 0, 1008, 4)
    assert talk.ask(700, blocks(5)).reason == "expired"


def test_automatic_prefix_caching_keeps_the_used_part_alive_only() -> None:
    talk = Conversation(KINDS["openai-legacy"].with_ttl(600))
    talk.ask(0, blocks(8))
    talk.ask(500, blocks(4))
    assert talk.ask(900, blocks(8)).read == 3968


def test_a_cache_that_promises_nothing_is_billed_by_expectation() -> None:
    talk = Conversation(replace(KINDS["gemini"], min_prefix=1024, hit_probability=0.5))
    talk.ask(0, blocks(4))
    assert talk.ask(1, blocks(4)).read == 2000


def test_units_end_where_requests_and_answers_end() -> None:
    talk = Conversation(KINDS["deepseek"])
    first = talk.request(0, blocks(2))
    grown = talk.request(1, [*blocks(3), ("news", 1000.0)])
    talk.simulator.serve(replace(first, answer=grown.chain[2]))
    assert talk.simulator.serve(grown).read == 3000


def test_units_inside_a_long_input_are_read_by_their_interval() -> None:
    talk = Conversation(replace(KINDS["deepseek"], interval=1500))
    talk.ask(0, [("long", 4000.0), ("B", 10.0)])
    assert talk.ask(1, [("long", 4000.0), ("C", 10.0)]).read == 3000


def test_a_unit_dies_with_its_lifetime() -> None:
    talk = Conversation(KINDS["deepseek"].with_ttl(100))
    talk.ask(0, blocks(3))
    assert talk.ask(101, blocks(3)).read == 0


def test_without_a_cache_everything_is_fresh() -> None:
    talk = Conversation(KINDS["none"])
    assert [talk.ask(at, blocks(3), [3]).fresh for at in range(2)] == [3000, 3000]


@pytest.mark.parametrize("kind", list(KINDS))
def test_an_empty_prompt_is_served(kind: str) -> None:
    served = CacheSimulator(KINDS[kind]).serve(CacheRequest(0, [], [], output=5))
    assert (served.prompt, served.output) == (0, 5)


def test_a_mark_outside_the_prompt_is_an_error_that_names_it() -> None:
    with pytest.raises(BadInput, match=r"position=7.*2 blocks"):
        Conversation(ANTHROPIC).ask(0, blocks(2), [7])


class Counted(Sequence[int]):
    """A list that counts how often it is looked into."""

    def __init__(self, items: list[int]) -> None:
        self.items = items
        self.looks = 0

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> list[int]: ...
    def __getitem__(self, at: int | slice) -> int | list[int]:
        found = self.items[at]
        self.looks += len(found) if isinstance(found, list) else 1
        return found


@pytest.mark.parametrize("pause", [1, 280])
def test_work_per_call_grows_with_new_blocks_and_marks_not_with_the_prompt(pause: int) -> None:
    chains = Chains()
    simulator = CacheSimulator(ANTHROPIC)
    chain = Counted([])
    cumulative: list[float] = []
    parent, looks = Chains.ROOT, []
    draw = random.Random(1)  # noqa: S311  a fixed walk
    for call in range(600):
        for _ in range(draw.randint(1, 8)):
            parent = chains.extend(parent, len(chain))
            chain.items.append(parent)
            cumulative.append(500.0 * len(chain))
        end = len(chain)
        before = chain.looks
        simulator.serve(
            CacheRequest(
                call * pause,
                chain,
                cumulative,
                (Breakpoint(1, LONG), Breakpoint(max(1, end // 2), LONG), Breakpoint(end)),
            )
        )
        looks.append(chain.looks - before)
    assert max(looks[50:]) <= 8 + 3 * 20
