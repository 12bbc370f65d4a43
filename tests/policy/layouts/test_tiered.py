"""The tiered layout: its documented form, and laws over random sessions."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from pagein.errors import BadSetting
from pagein.model.laid_prompts import HistoryMessage, LaidPrompt, LayoutFacts, PromptContents
from pagein.policy.layouts.tiered import TieredLayout
from pagein.policy.tiers.tier_rules import CHOICES, PAGEIN, SEED, TierRules
from pagein.policy.tiers.tier_steps import TierFacts, step_tiers
from pagein.policy.tiers.tier_values import CACHED, START, RequestItem, TierItem, TierState
from pagein.ports import Layout
from pagein.providers.cache_simulator import Breakpoint, CacheRequest, CacheSimulator, Chains
from pagein.providers.prices.price_lookup import prices
from pagein.providers.wire import check_body
from pagein.providers.wire.laid_requests import render_prompt

PATHS = tuple(f"{name}.py" for name in "abcdefgh")


OLD_TALK = "## Conversation History (L3)\n\n### User\none\n\n### Assistant\ntwo"


def count(text: str) -> float:
    return float(len(text))


def laid(
    contents: PromptContents, places: dict[str, TierItem], rules: TierRules = SEED, *, active: tuple[str, ...] = ()
) -> list[tuple[str, str, str, bool]]:
    layout: Layout[TierState] = TieredLayout(rules)
    prompt = layout.lay_out(TierState(places, active), LayoutFacts(contents, count))
    return [(block.role, block.section, block.text, block.mark) for block in prompt.blocks]


def test_the_documented_form_of_a_whole_prompt() -> None:
    contents = PromptContents(
        prompt="Why?",
        system="You fix bugs.",
        legend="c: class",
        files={"a.py": "A", "b.py": "B", "x.py": "X"},
        symbols={"a.py": "c A", "s.py": "c S", "t.py": "c T", "u.py": "c U"},
        urls={"https://x": "page"},
        tree="a.py\nb.py",
        history=(
            HistoryMessage("user", "one"),
            HistoryMessage("assistant", "two"),
            HistoryMessage("user", "three"),
            HistoryMessage("assistant", "four"),
        ),
    )
    places = {
        "symbol:s.py": TierItem("", 12, "L0"),
        "b.py": TierItem("", 9, "L1"),
        "symbol:a.py": TierItem("", 9, "L1"),
        "symbol:t.py": TierItem("", 4, "L3"),
        "a.py": TierItem("", 3, "L3"),
        "history:0": TierItem("", 3, "L3"),
        "history:1": TierItem("", 3, "L3"),
        "x.py": TierItem("", 0),
    }
    assert laid(contents, places) == [
        ("system", "L0", "You fix bugs.\n\nc: class\n\n## Symbols (L0)\n\nc S", True),
        ("user", "L1", "## Files (L1)\n\n## b.py\n\n```\nB\n```", True),
        ("assistant", "L1", "Ok.", False),
        (
            "user",
            "L3",
            f"## Symbols (L3)\n\nc T\n\nc U\n\n## Files (L3)\n\n## a.py\n\n```\nA\n```\n\n{OLD_TALK}",
            True,
        ),
        ("assistant", "L3", "Ok.", False),
        ("user", "tree", "# Files of the repository\n\na.py\nb.py", False),
        ("assistant", "tree", "Ok.", False),
        ("user", "urls", "# Pages from the web\n\n## https://x\n\npage", False),
        ("assistant", "urls", "Ok.", False),
        ("user", "active", "# Files in work\n\n## x.py\n\n```\nX\n```", False),
        ("assistant", "active", "Ok.", False),
        ("user", "history", "three", False),
        ("assistant", "history", "four", False),
        ("user", "prompt", "Why?", False),
    ]


def test_a_prompt_with_nothing_else_is_one_message() -> None:
    assert laid(PromptContents(prompt="Why?"), {}) == [("user", "prompt", "Why?", False)]


def test_the_symbol_entry_of_a_selected_file_is_left_out_and_that_of_another_is_not() -> None:
    contents = PromptContents(
        prompt="?", files={"a.py": "A", "b.py": "B"}, selected=frozenset({"a.py"}), symbols={"a.py": "SA", "b.py": "SB"}
    )
    texts = " ".join(text for _, _, text, _ in laid(contents, {}))
    assert "SA" not in texts
    assert "SB" in texts
    assert "```\nB" not in texts  # it is not selected, and in no tier


@pytest.mark.parametrize("selected", [["b.py"], ("b.py", "gone.py"), frozenset(["b.py"])])
def test_the_selected_files_are_given_in_any_collection(selected: list[str]) -> None:
    assert PromptContents(files={"a.py": "1", "b.py": "2"}, selected=selected).chosen == {"b.py"}


def test_an_entry_that_was_demoted_is_shown_while_it_waits() -> None:
    contents = PromptContents(prompt="?", symbols={"s.py": "c S"})
    assert ("user", "active", "# Files in work\n\n## Symbols of s.py\n\nc S", False) in laid(
        contents, {"symbol:s.py": TierItem("", 0)}
    )


def test_a_file_with_fences_has_a_longer_one() -> None:
    contents = PromptContents(prompt="?", files={"a.md": "````\nx\n````"})
    assert "`````\n````\nx\n````\n`````" in laid(contents, {})[0][2]


OLD = {"history:0": TierItem("", 12, "L0"), "history:1": TierItem("", 12, "L0")}
TALK = PromptContents(
    prompt="?", system="S", history=(HistoryMessage("user", "one"), HistoryMessage("assistant", "two"))
)


@pytest.mark.parametrize(
    ("form", "blocks"),
    [
        ("markdown", [("system", "S\n\n## Conversation History (L0)\n\n### User\none\n\n### Assistant\ntwo", True)]),
        ("messages", [("system", "S", False), ("user", "one", False), ("assistant", "two", True)]),
    ],
)
def test_old_messages_are_markdown_in_the_seed_design_alone(form: str, blocks: list[tuple[str, str, bool]]) -> None:
    made = laid(TALK, OLD, replace(SEED, history_form=form))  # type: ignore[arg-type]
    assert [(role, text, mark) for role, _, text, mark in made][:-1] == blocks


@pytest.mark.parametrize(("inside", "order"), [("n", "ba"), ("entry", "ab")])
def test_a_new_n_moves_blocks_in_the_seed_design_alone(inside: str, order: str) -> None:
    places = {"a.py": TierItem("", 3, "L3", since=1), "b.py": TierItem("", 4, "L3", since=2)}
    contents = PromptContents(prompt="?", files={"a.py": "A", "b.py": "B"})
    text = laid(contents, places, replace(SEED, inside=inside))[0][2]  # type: ignore[arg-type]
    assert next(name for name in text if name in "ab") == order[0]


@pytest.mark.parametrize(
    ("tail", "sections"),
    [
        ("files first", ["active", "active", "history", "history", "prompt"]),
        ("history first", ["history", "history", "active", "prompt"]),
    ],
)
def test_active_files_stand_in_front_of_the_conversation_in_the_seed_design_alone(
    tail: str, sections: list[str]
) -> None:
    contents = replace(TALK, system="", files={"a.py": "A"})
    made = laid(contents, {}, replace(SEED, tail=tail))  # type: ignore[arg-type]
    assert [section for _, section, _, _ in made] == sections


@pytest.mark.parametrize(
    ("marks", "sections"), [("tiers", ["L0", "L1", "L2", "L3"]), ("provider", ["L1", "L2", "L3", "prompt"])]
)
def test_all_breakpoints_are_on_tiers_in_the_seed_design_alone(marks: str, sections: list[str]) -> None:
    places = {f"{tier}.py": TierItem("", 3, tier) for tier in CACHED}
    contents = PromptContents(prompt="?", system="S", files=dict.fromkeys(places, "x"))
    made = laid(contents, places, replace(SEED, marks=marks))  # type: ignore[arg-type]
    assert [section for _, section, _, mark in made if mark] == sections


def test_a_tier_is_one_block_in_the_seed_design_alone() -> None:
    places = {"a.py": TierItem("", 3, "L3", since=1), "b.py": TierItem("", 3, "L3", since=1)}
    contents = PromptContents(prompt="?", files={"a.py": "A", "b.py": "B"})
    rules = replace(SEED, blocks="item", history_form="messages")
    assert [text for _, _, text, _ in laid(contents, places, rules)] == [
        "## a.py\n\n```\nA\n```",
        "## b.py\n\n```\nB\n```",
        "Ok.",
        "?",
    ]


# --- laws over random sessions ---


@dataclass(frozen=True)
class Step:
    edited: frozenset[str]
    dropped: frozenset[str]
    unselected: frozenset[str]
    said: int
    tree: bool
    cold: bool


STEPS = st.lists(
    st.builds(
        Step,
        st.frozensets(st.sampled_from(PATHS), max_size=2),
        st.one_of(st.just(frozenset()), st.frozensets(st.sampled_from(PATHS), max_size=2)),
        st.one_of(st.just(frozenset()), st.frozensets(st.sampled_from(PATHS), max_size=3)),
        st.sampled_from([1, 1, 1, 12]),
        st.booleans(),
        st.sampled_from([False] * 9 + [True]),
    ),
    min_size=1,
    max_size=12,
)


@st.composite
def any_rules(draw: st.DrawFn) -> TierRules:
    """Any choices that go together."""
    chosen: dict[str, object] = {one.name: getattr(draw(st.sampled_from([SEED, PAGEIN])), one.name) for one in CHOICES}
    try:
        return TierRules(**chosen, cache_min_tokens=draw(st.sampled_from([0, 20, 1024])))  # type: ignore[arg-type]
    except BadSetting:
        reject()


RULES = any_rules() | st.sampled_from(
    [
        SEED,
        replace(SEED, cache_min_tokens=0),
        replace(SEED, history_form="messages", blocks="item", marks="provider", tail="history first", inside="entry"),
        replace(SEED, absent="leaves", leaving="aged", placeholder="matches", anchors=False, history_age="at once"),
        PAGEIN,
    ]
)


def contents_of(steps: list[Step]) -> Iterator[tuple[PromptContents, bool]]:
    versions = dict.fromkeys(PATHS, 0)
    history: list[HistoryMessage] = []
    for number, step in enumerate(steps):
        versions.update({path: versions[path] + 1 for path in step.edited})
        files = {
            path: f"{path} {versions[path]} " * (1 + versions[path] % 5) for path in PATHS if path not in step.dropped
        }
        symbols = {path: f"symbols of {path}" for path in (*PATHS[:3], "z.py")}
        yield (
            PromptContents(
                prompt=f"asked {number}.0",
                system="You fix bugs.",
                files=files,
                selected=frozenset(files) - step.unselected,
                symbols=symbols,
                urls={"https://x": "a page"},
                tree="the tree" if step.tree else "",
                history=tuple(history),
            ),
            step.cold,
        )
        for place in range(step.said):
            history += [
                HistoryMessage("user", f"asked {number}.{place}"),
                HistoryMessage("assistant", f"answer {number}.{place}"),
            ]


def facts_of(contents: PromptContents, *, cold: bool) -> TierFacts:
    return TierFacts(
        tuple(RequestItem(path, text, count(text)) for path, text in contents.files.items()),
        contents.chosen,
        tuple(RequestItem(f"symbol:{path}", text, count(text)) for path, text in contents.symbols.items()),
        tuple(RequestItem(f"url:{url}", text, count(text)) for url, text in contents.urls.items()),
        tuple(RequestItem(f"history:{place}", one.text, count(one.text)) for place, one in enumerate(contents.history)),
        cold=cold,
    )


def prompts_of(steps: list[Step], rules: TierRules) -> Iterator[tuple[PromptContents, TierState, LaidPrompt]]:
    state, covered = START, 0
    for contents, cold in contents_of(steps):
        state = step_tiers(state, facts_of(contents, cold=cold), rules).state
        prompt = TieredLayout(rules).lay_out(state, LayoutFacts(contents, count, 100, covered))
        covered = prompt.covered
        yield contents, state, prompt


@settings(max_examples=20)
@given(STEPS, RULES)
def test_every_prompt_is_valid_and_shows_everything_once(steps: list[Step], rules: TierRules) -> None:
    for contents, _, prompt in prompts_of(steps, rules):
        for api in ("anthropic", "openai_chat"):
            body = render_prompt(prompt, api, "claude-sonnet-5-5", max_tokens=100)
            assert check_body(body, api) == []
        whole = "\n".join(block.text for block in prompt.blocks)
        for path, text in contents.files.items():
            shown = whole.count(f"## {path}\n\n```\n{text}\n```")
            assert shown == whole.count(f"## {path}\n")
            assert shown == 1 or (shown == 0 and path not in contents.chosen)
        for path in contents.symbols:
            assert (entries := whole.count(f"symbols of {path}")) <= 1
            assert not entries or path not in contents.chosen
            assert entries or f"## {path}\n" in whole
        lines = whole.split("\n")
        assert all(lines.count(one.text) == 1 for one in contents.history)
        assert prompt.blocks[-1].text == contents.prompt
        assert whole.count("a page") == 1


@given(STEPS, RULES)
def test_at_most_four_blocks_are_marked_and_the_last_is_never_a_tier(steps: list[Step], rules: TierRules) -> None:
    for contents, _, prompt in prompts_of(steps, rules):
        assert len(prompt.marks) <= 4
        fronts = list(itertools.accumulate(block.tokens for block in prompt.blocks))
        assert all(fronts[place] >= 100 for place in prompt.marks)
        if rules.marks == "provider" and contents.history and prompt.marks:
            last = prompt.blocks[prompt.marks[-1]]
            assert last.section in ("history", "prompt") or len(prompt.marks) < 4


@given(STEPS, RULES)
def test_the_same_session_gives_the_same_bytes(steps: list[Step], rules: TierRules) -> None:
    assert list(prompts_of(steps, rules)) == list(prompts_of(steps, rules))


@given(STEPS)
def test_bytes_in_front_of_a_change_stay_and_are_read_from_the_cache(steps: list[Step]) -> None:
    """Everything that the order counts on is read by a cache with the provider's own rules."""
    chains, cache = Chains(), CacheSimulator(prices("generic:min=100").cache)
    before: tuple[TierState, LaidPrompt] | None = None
    now = 0.0
    for number, (_, state, prompt) in enumerate(prompts_of(steps, PAGEIN)):
        blocks = [(block.role, block.text) for block in prompt.blocks]
        fronts = list(itertools.accumulate(block.tokens for block in prompt.blocks))
        chain = list(itertools.accumulate(blocks, chains.extend, initial=Chains.ROOT))[1:]
        marks = tuple(Breakpoint(place + 1) for place in prompt.marks)
        now += 1000.0 if steps[number].cold else 1.0
        usage = cache.serve(CacheRequest(now, chain, fronts, marks))
        if before is not None and not steps[number].cold:
            old, laid_before = before
            kept = 0
            for key in old.order:
                item = state.items.get(key)
                if item is None or item.digest != old.items[key].digest:
                    break
                kept += 1
            entry = max((place for place in old.entries if place <= kept), default=0)
            items = [
                block for block in laid_before.blocks if block.section.startswith("L") and block.role != "assistant"
            ]
            system = [block for block in items if block.text == "You fix bugs."]
            front = [*system, *[block for block in items if block not in system][:entry]]
            assert state.order[:entry] == old.order[:entry]
            if entry and sum(block.tokens for block in front) >= 100:
                assert usage.read >= sum(block.tokens for block in front)
        before = state, prompt


@given(st.integers(0, 30), st.integers(1, 60))
def test_a_long_answer_is_read_behind_the_previous_end(calls: int, more: int) -> None:
    """The previous end carries a breakpoint where the look-back would miss it."""
    talk = [HistoryMessage("user", "u " * 200), HistoryMessage("assistant", "a")] * (calls + 1)
    first = PromptContents(prompt="?", system="S" * 200, history=tuple(talk))
    later = replace(first, history=(*talk, *[HistoryMessage("user", "?"), HistoryMessage("assistant", "a")] * more))
    chains, cache = Chains(), CacheSimulator(prices("generic:min=100").cache)
    covered, read = 0, 0.0
    for number, contents in enumerate((first, later)):
        prompt = TieredLayout(PAGEIN).lay_out(START, LayoutFacts(contents, count, 100, covered))
        covered = prompt.covered
        blocks = [(block.role, block.text) for block in prompt.blocks]
        chain = list(itertools.accumulate(blocks, chains.extend, initial=Chains.ROOT))[1:]
        fronts = list(itertools.accumulate(block.tokens for block in prompt.blocks))
        marks = tuple(Breakpoint(place + 1) for place in prompt.marks)
        read = cache.serve(CacheRequest(float(number), chain, fronts, marks)).read
    assert read == sum(count(one.text) for one in (*talk, HistoryMessage("user", "?"))) + 200
