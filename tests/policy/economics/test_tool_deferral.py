"""Which tools stay out of the prompt, at what price and on what evidence."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pagein.policy.economics.rewrite_cost import Economics
from pagein.policy.economics.tool_deferral import LEAST_CALLS, SessionTools, ToolSize, deferred_tools

PRICES = Economics()
SEARCH = 500.0
TOOLS = [ToolSize("Workflow", 7000.0), ToolSize("CronCreate", 1400.0), ToolSize("CronDelete", 150.0)]
NAMES = frozenset(one.name for one in TOOLS)
SESSION = SessionTools(NAMES, frozenset({"Bash"}), 45, 60_000.0)


def chosen(
    *sessions: SessionTools,
    tools: list[ToolSize] = TOOLS,
    economics: Economics = PRICES,
    now: float | None = None,
) -> tuple[str, ...]:
    return deferred_tools(tools, sessions, economics, SEARCH, now)


def test_without_evidence_nothing_is_deferred() -> None:
    assert chosen() == ()
    assert chosen(replace(SESSION, calls=LEAST_CALLS - 1)) == ()
    assert chosen(replace(SESSION, offered=frozenset({"Bash"}))) == (), "a tool that was not offered was not spurned"


def test_where_each_session_uses_other_tools_only_large_ones_go() -> None:
    """The more tools were used only once, the more uses of others are to be expected."""
    several = [*TOOLS, *(ToolSize(f"t{place}", 900.0) for place in range(8))]
    offered = frozenset(one.name for one in several)
    same = replace(SESSION, offered=offered)
    wild = replace(same, used=frozenset(f"t{place}" for place in range(8)))
    assert chosen(same, tools=several) == tuple(one.name for one in several)
    assert chosen(wild, tools=several) == ("Workflow",)
    assert chosen(wild, wild, tools=several) == ("Workflow", "CronCreate"), "the same tools again: habits"


def test_a_tool_that_any_session_used_is_never_deferred() -> None:
    used = replace(SESSION, used=frozenset({"Workflow"}))
    assert "Workflow" not in chosen(used, *[SESSION] * 10)
    assert "Workflow" not in chosen(replace(used, offered=frozenset()), *[SESSION] * 10), "whoever offered it"


def test_nothing_is_deferred_where_all_together_do_not_pay_for_the_tool_that_searches() -> None:
    sessions = [replace(SESSION, offered=frozenset({"CronList"}))] * 15
    assert chosen(*sessions, tools=[ToolSize("CronList", 400.0)]) == ()
    assert chosen(*sessions, tools=[ToolSize("CronList", 900.0)]) == ("CronList",)


def test_short_sessions_with_long_prompts_keep_their_tools() -> None:
    tools = TOOLS[1:]
    assert chosen(SESSION, tools=tools) == ("CronCreate",)
    assert chosen(replace(SESSION, calls=LEAST_CALLS, prompt=600_000.0), tools=tools) == ()


def test_a_warm_prompt_front_is_given_up_only_for_more_than_its_writing() -> None:
    warm = replace(SESSION, calls=LEAST_CALLS, front=30_000.0, sent=1_000.0)
    end = 1_000.0 + PRICES.lifetime
    assert chosen(warm, now=end) == ()
    assert chosen(warm, now=end + 1) == chosen(warm) == ("Workflow", "CronCreate")
    assert chosen(replace(warm, offered=frozenset({"Workflow"}), calls=99), now=end) == ("Workflow",), "other tools"
    assert chosen(replace(warm, calls=60), now=end) == ("Workflow", "CronCreate"), "long sessions win it back"


def test_the_tools_of_a_warm_session_stay_deferred() -> None:
    tools = [*TOOLS, ToolSize("CronList", 300.0)]
    names = frozenset(one.name for one in tools)
    before = replace(SESSION, offered=names, deferred=frozenset({"Workflow"}), front=40_000.0, sent=1_000.0)
    assert chosen(before, tools=tools, now=1_100.0) == ("Workflow",)
    assert set(chosen(before, tools=tools, now=2_000.0)) > {"Workflow"}
    used = replace(before, used=frozenset({"Workflow"}))
    assert "Workflow" not in chosen(used, tools=tools, now=1_100.0), "what a session used is offered to the next"


@given(
    st.lists(st.floats(1, 20_000), min_size=1, max_size=30),
    st.lists(
        st.tuples(st.integers(0, 300), st.floats(0, 900_000), st.frozensets(st.integers(0, 29), max_size=4)),
        max_size=20,
    ),
    st.floats(0.02, 1.0),
    st.floats(1.0, 2.0),
)
def test_more_evidence_of_the_same_kind_defers_no_less(
    sizes: list[float], seen: list[tuple[int, float, frozenset[int]]], read: float, write: float
) -> None:
    tools = [ToolSize(str(place), size) for place, size in enumerate(sizes)]
    offered = frozenset(one.name for one in tools)
    sessions = [SessionTools(offered, frozenset(map(str, used)), calls, prompt) for calls, prompt, used in seen]
    economics = Economics(read=read, write=write)
    once = deferred_tools(tools, sessions, economics, SEARCH)
    assert set(once) <= set(deferred_tools(tools, [*sessions, *sessions], economics, SEARCH))
    assert set(once) <= offered - {name for one in sessions for name in one.used}


@given(st.sets(st.sampled_from(sorted(NAMES))), st.sets(st.sampled_from(sorted(NAMES))), st.floats(0.0, 900.0))
def test_cold_floor_paging_never_gives_up_a_front_that_a_cache_may_hold(
    deferred: set[str], used: set[str], pause: float
) -> None:
    """A session that changed the front and ended at once would cost more than without floor paging (law 5)."""
    before = replace(SESSION, deferred=frozenset(deferred), used=frozenset(used), front=40_000.0, sent=1_000.0)
    found = deferred_tools(TOOLS, [before], PRICES, SEARCH, 1_000.0 + pause, keeps_front=True)
    free = deferred_tools(TOOLS, [replace(before, sent=None)], PRICES, SEARCH, 1_000.0 + pause)
    assert set(found) == (deferred if pause <= PRICES.lifetime else set(free))
