from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pagein.providers.cache_simulator import CacheRequest, CacheSimulator, Chains
from pagein.providers.caches.breakpoint_plan import FIRST, Manner, Memory, Outline, Spot, plan_breakpoints
from pagein.providers.caches.breakpoint_rules import breakpoint_refusal
from pagein.providers.caches.cache_values import LONG, SHORT, Breakpoint
from pagein.providers.prices.models.anthropic import CACHE as ANTHROPIC


def outline(names: str, head: int = 1, bad: str = "", size: float = 1000.0) -> Outline:
    """A prompt of one-letter blocks, those in `bad` unfit for marks; a block's name is all letters up to it."""
    return Outline(
        [names[: place + 1] for place in range(len(names))],
        [name not in bad for name in names],
        head,
        [size * (place + 1) for place in range(len(names))],
    )


def positions(marks: tuple[Breakpoint, ...]) -> list[int]:
    return [mark.position for mark in marks]


def test_the_first_request_marks_system_frontier_and_end() -> None:
    assert positions(plan_breakpoints(outline("sabcd"), frontier=4).marks) == [1, 3, 5]


def test_a_request_that_appends_marks_the_previous_end_too() -> None:
    first = plan_breakpoints(outline("sabcd"), frontier=4)
    assert first.memory == Memory(Spot(5, "sabcd"), Spot(3, "sab"))
    second = plan_breakpoints(outline("sabcdefgh"), frontier=4, memory=first.memory)
    assert positions(second.marks) == [1, 3, 5, 9]


def test_an_edit_marks_the_old_frontier_in_place_of_the_previous_end() -> None:
    first = plan_breakpoints(outline("sabcdef"), frontier=4)
    edited = plan_breakpoints(outline("sabXdefg"), frontier=7, memory=first.memory)
    assert positions(edited.marks) == [1, 3, 6, 8]


def test_a_frontier_that_moves_without_an_edit_is_no_edit() -> None:
    first = plan_breakpoints(outline("sa"))
    second = plan_breakpoints(outline("sabcd"), frontier=4, memory=first.memory)
    assert positions(second.marks) == [1, 2, 3, 5]


def test_where_an_edit_reaches_before_the_old_frontier_nothing_old_is_marked() -> None:
    first = plan_breakpoints(outline("sabcdef"), frontier=4)
    assert positions(plan_breakpoints(outline("sXbcdefg"), frontier=7, memory=first.memory).marks) == [1, 6, 8]


def test_a_request_shorter_than_the_one_before_is_an_edit() -> None:
    first = plan_breakpoints(outline("sabcdef"), frontier=3)
    assert positions(plan_breakpoints(outline("sabX"), frontier=4, memory=first.memory).marks) == [1, 2, 3, 4]


def test_a_frontier_at_the_head_or_at_the_end_is_one_mark_with_it() -> None:
    assert positions(plan_breakpoints(outline("sab"), frontier=2).marks) == [1, 3]
    assert positions(plan_breakpoints(outline("sab"), frontier=4).marks) == [1, 3]


def test_a_block_that_cannot_carry_a_mark_leaves_it_to_the_one_before_in_both_requests() -> None:
    first = plan_breakpoints(outline("sabt", bad="t"), frontier=3)
    assert positions(first.marks) == [1, 2, 3]
    second = plan_breakpoints(outline("sabtcdT", bad="tT"), frontier=5, memory=first.memory)
    assert positions(second.marks) == [1, 3, 6]


def test_what_is_too_short_to_be_cached_gets_no_mark() -> None:
    assert positions(plan_breakpoints(outline("sabcd"), frontier=4, manner=Manner(min_prefix=4096)).marks) == [5]
    assert plan_breakpoints(outline("sab"), manner=Manner(min_prefix=4096)).marks == ()


def test_nothing_is_marked_where_nothing_can_be() -> None:
    assert plan_breakpoints(outline("sab", bad="sab"), frontier=2).marks == ()
    assert plan_breakpoints(outline("", head=0)).marks == ()


def test_a_mark_asks_for_no_longer_than_those_before_it() -> None:
    manner = Manner(head=SHORT, frontier=LONG, end=LONG)
    assert {mark.ttl for mark in plan_breakpoints(outline("sabcd"), frontier=4, manner=manner).marks} == {SHORT}
    long = plan_breakpoints(outline("sabcd"), frontier=4, manner=Manner(head=LONG, frontier=LONG))
    assert [mark.ttl for mark in long.marks] == [LONG, LONG, SHORT]


def test_a_mark_before_a_long_one_that_stays_is_long() -> None:
    found = plan_breakpoints(outline("sabcd"), taken=[Breakpoint(4, LONG)], slots=2)
    assert found.marks == (Breakpoint(1, LONG), Breakpoint(5, SHORT))


def test_slots_that_are_taken_are_not_used() -> None:
    assert plan_breakpoints(
        outline("sabcd"), frontier=4, taken=[Breakpoint(2), Breakpoint(3), Breakpoint(4)], slots=1
    ).marks == (Breakpoint(5),)
    assert (
        plan_breakpoints(
            outline("sabcd"), frontier=4, taken=[Breakpoint(place) for place in range(1, 5)], slots=0
        ).marks
        == ()
    )


def test_the_end_is_left_to_a_provider_that_marks_it_by_itself() -> None:
    first = plan_breakpoints(outline("sabcd"), frontier=4, manner=Manner(ends=False), slots=3)
    assert positions(first.marks) == [1, 3]
    second = plan_breakpoints(outline("sabcdef"), frontier=4, memory=first.memory, manner=Manner(ends=False), slots=3)
    assert positions(second.marks) == [1, 3, 5]


def test_more_blocks_than_the_provider_looks_back_over_are_read_all_the_same() -> None:
    chains, simulator = Chains(), CacheSimulator(ANTHROPIC)
    memory, prompt, parent = FIRST, [], Chains.ROOT
    reads = []
    for turn in range(3):
        for block in range(30):
            parent = chains.extend(parent, (turn, block))
            prompt.append(parent)
        sizes = [1000.0 * (place + 1) for place in range(len(prompt))]
        chosen = plan_breakpoints(Outline(prompt, [True] * len(prompt), 1, sizes), memory=memory)
        reads.append(simulator.serve(CacheRequest(float(turn), list(prompt), sizes, chosen.marks)).read)
        memory = chosen.memory
    assert reads == [0, 30_000, 60_000]


def test_an_edit_reads_up_to_the_old_frontier() -> None:
    chains, simulator = Chains(), CacheSimulator(ANTHROPIC)

    def names(letters: str) -> list[int]:
        found, parent = [], Chains.ROOT
        for letter in letters:
            parent = chains.extend(parent, letter)
            found.append(parent)
        return found

    def serve(at: float, letters: str, frontier: int, memory: Memory) -> tuple[float, Memory]:
        prompt = names(letters)
        sizes = [5000.0 * (place + 1) for place in range(len(prompt))]
        chosen = plan_breakpoints(Outline(prompt, [True] * len(prompt), 1, sizes), frontier, memory)
        return simulator.serve(CacheRequest(at, prompt, sizes, chosen.marks)).read, chosen.memory

    _, memory = serve(0, "sabcdefghijklmnopqrstuvwxyzABCDEF", 9, FIRST)
    read, memory = serve(1, "sabcdefgXijklmnopqrstuvwxyzABCDEFG", 20, memory)
    assert read == 8 * 5000
    read, _ = serve(2, "sabcdefgXijklmnopqrYtuvwxyzABCDEFGH", 25, memory)
    assert read == 19 * 5000


@st.composite
def prompts(draw: st.DrawFn) -> Outline:
    names = draw(st.text("ab", max_size=12))
    made = outline(names, head=draw(st.integers(0, len(names))), size=draw(st.sampled_from([10.0, 1000.0])))
    return replace(made, eligible=draw(st.lists(st.booleans(), min_size=len(names), max_size=len(names))))


MANNERS = st.builds(
    Manner,
    head=st.sampled_from([SHORT, LONG]),
    frontier=st.sampled_from([SHORT, LONG]),
    end=st.sampled_from([SHORT, LONG]),
    min_prefix=st.sampled_from([0, 4096]),
    ends=st.booleans(),
)


@given(prompts(), prompts(), MANNERS, st.data())
def test_whatever_is_asked_the_marks_are_taken(
    first: Outline, then: Outline, manner: Manner, data: st.DataObject
) -> None:
    eligible = [place for place, able in enumerate(then.eligible, 1) if able]
    chosen = sorted(data.draw(st.sets(st.sampled_from(eligible), max_size=4))) if eligible else []
    turning = data.draw(st.integers(0, len(chosen)))
    taken = [Breakpoint(place, LONG if index < turning else SHORT) for index, place in enumerate(chosen)]
    memory = plan_breakpoints(first, data.draw(st.none() | st.integers(1, 14)), manner=manner).memory
    found = plan_breakpoints(then, data.draw(st.none() | st.integers(1, 14)), memory, manner, taken, 4 - len(taken))
    everything = (*found.marks, *taken)
    assert breakpoint_refusal(everything) is None
    assert len({mark.position for mark in everything}) == len(everything)
    assert all(then.eligible[mark.position - 1] for mark in found.marks)
    assert list(found.marks) == sorted(found.marks, key=lambda mark: mark.position)
    assert then.cumulative is not None
    assert all(then.cumulative[mark.position - 1] >= manner.min_prefix for mark in found.marks)
