"""The inline and the pooled layout: exact forms, and the laws over random sessions, for each layout the same."""

import json
from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.call_counts import counted

from pagein.model.entries import MessageEntry, NoteEntry
from pagein.model.journal_notes import ClientNote
from pagein.model.laid_prompts import LaidPrompt, LayoutFacts, PromptContents
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.model.pool_notes import PoolAct, PoolNote
from pagein.policy.layouts.pool_lines import LEGEND, metadata_line, quoted
from pagein.policy.layouts.pooled import PooledLayout
from pagein.policy.layouts.pooled_fold import PooledFold, PooledRequest
from pagein.policy.layouts.pooled_window import PAGEIN, SPEC, PooledRules
from pagein.policy.pools.pool_fold import PoolFold
from pagein.policy.pools.pool_values import PooledObject
from pagein.policy.tiers.frozen_order import CacheTerms
from pagein.providers.validity import Api
from pagein.providers.wire import check_body
from pagein.providers.wire.laid_requests import render_prompt
from pagein.testing.inline_layout import InlineLayout

Name = Literal["inline", "pooled", "pooled-spec"]
NAMES: tuple[Name, ...] = ("inline", "pooled", "pooled-spec")
APIS: tuple[Api, ...] = ("anthropic", "openai_chat", "openai_responses")
MINIMUM = 40


def count(text: str) -> float:
    return float(len(text))


@dataclass
class Agent:
    """A conversation in the making, with each of its requests."""

    name: Name = "pooled"
    rules: PooledRules = PAGEIN
    state: PooledRequest = field(default_factory=PooledRequest)
    talk: list[Message] = field(default_factory=list)
    prompts: list[LaidPrompt] = field(default_factory=list)
    states: list[PooledRequest] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    covered: int = 0
    calls: int = 0

    def __post_init__(self) -> None:
        self.rules = SPEC if self.name == "pooled-spec" else self.rules
        self.fold = PooledFold(PoolFold("s"), self.rules, CacheTerms())
        self.state = self.fold.step(PooledRequest(self.fold.pools.start("/repo")), NoteEntry.of(ClientNote("pi")))

    def says(self, text: str = "Go on.") -> "Agent":
        return self._add(Message("user", (Text(text),)))

    def works(self, *results: str, tool: str = "bash", **arguments: object) -> "Agent":
        ids = [f"c{self.calls + place}" for place in range(len(results))]
        self.calls += len(results)
        self._add(Message("assistant", tuple(ToolCall(one, tool, json.dumps(arguments)) for one in ids)))
        return self._add(
            Message("tool", tuple(ToolResult(one, text, tool) for one, text in zip(ids, results, strict=True)))
        )

    def acts(self, act: Literal["activate", "deactivate"], object_id: str) -> "Agent":
        return self.notes(PoolAct(act, object_id))

    def notes(self, act: PoolAct) -> "Agent":
        self.state = self.fold.step(self.state, NoteEntry.of(PoolNote((act,))))
        return self

    def asks(self, *, cold: bool = False) -> LaidPrompt:
        texts = ChainMap(self.texts, self.state.walk.texts)  # type: ignore[arg-type]
        self.state = self.fold.request(self.state, self.talk, count, texts=texts, cold=cold, prefix=20_000.0)
        contents = PromptContents(system="S", conversation=self.talk, objects=texts)
        facts = LayoutFacts(contents, count, MINIMUM, self.covered)
        prompt = (
            InlineLayout().lay_out(None, facts)
            if self.name == "inline"
            else PooledLayout(self.rules).lay_out(self.state.window, facts)
        )
        self.covered = prompt.covered
        self.prompts.append(prompt)
        self.states.append(self.state)
        return prompt

    def answers(self) -> "Agent":
        return self._add(Message("assistant", (Text("Done."),)))

    def file(self, path: str) -> str:
        return self.fold.pools.file_id(self.state.walk, f"/repo/{path}")

    def _add(self, message: Message) -> "Agent":
        self.talk.append(message)
        self.state = self.fold.step(self.state, MessageEntry(message))
        return self


def lines(prompt: LaidPrompt) -> list[tuple[str, str, bool]]:
    return [(block.section, block.text, block.mark) for block in prompt.blocks[1:]]


# --- exact forms ---


def test_the_form_of_a_pooled_prompt() -> None:
    agent = Agent().says("Why?").works("def f(): pass\n" * 3, tool="read", path="a.py").works("x" * 900)
    file = agent.file("a.py")
    assert lines(agent.asks()) == [
        ("metadata", f"METADATA_POOL\n- id={file} type=file path=/repo/a.py file_type=python char_count=42", True),
        ("history", "Why?", False),
        ("history", '{"path": "a.py"}', False),
        ("history", f"toolcall_ref id=c0 tool=read status=ok\nobject_ref id={file}", False),
        ("history", "{}", False),
        ("history", "toolcall_ref id=c1 tool=bash status=ok", False),
        ("active", f"ACTIVE_CONTENT id={file}\n" + "def f(): pass\n" * 3, False),
        ("active", "ACTIVE_CONTENT id=c1\n" + "x" * 900, True),
    ]
    assert agent.prompts[0].blocks[0].text == f"S\n\n{LEGEND}"


def test_by_the_letter_the_final_breakpoint_is_in_front_of_the_active_contents() -> None:
    agent = Agent("pooled-spec").says("Why?").works("out")
    prompt = agent.asks()
    assert lines(prompt)[-2:] == [
        ("history", "toolcall_ref id=c0 tool=bash status=ok", True),
        ("active", "ACTIVE_CONTENT id=c0\nout", False),
    ]
    for number in range(6):
        agent.works(f"more {number}")
    later = agent.asks()
    assert [text for section, text, _ in lines(later) if section == "active"] == [
        f"ACTIVE_CONTENT id=c{number}\nmore {number - 1}" for number in range(2, 7)
    ]
    assert "- inactive_ref id=c0" in "".join(text for section, text, _ in lines(later) if section == "news")


def test_a_short_result_stands_whole_and_is_not_shown_twice() -> None:
    agent = Agent().says().works("short")
    assert [section for section, text, _ in lines(agent.asks()) if "short" in text] == ["history"]


def test_an_edit_that_the_conversation_shows_does_not_send_the_file_again() -> None:
    agent = Agent().says().works("one\n" + "x\n" * 500, tool="read", path="a.py")
    agent.asks()
    agent.works("ok", tool="edit", path="a.py", oldText="one", newText="two")
    later = agent.asks()
    file = agent.file("a.py")
    assert [text[:40] for section, text, _ in lines(later) if section == "active"] == [f"ACTIVE_CONTENT id={file}"[:40]]
    assert any(f"- changed_ref id={file}" in text for section, text, _ in lines(later) if section == "news")
    cold = agent.answers().says().asks(cold=True)
    assert [text for section, text, _ in lines(cold) if section == "active"] == [
        f"ACTIVE_CONTENT id={file}\ntwo\n" + "x\n" * 500
    ]


def news(prompt: LaidPrompt) -> str:
    return "".join(text for section, text, _ in lines(prompt) if section == "news")


def test_a_file_that_something_else_changed_behind_an_edit_is_shown_again() -> None:
    first = "one\n" + "x\n" * 500
    for way in ("read", "note"):
        agent = Agent().says().works(first, tool="read", path="a.py")
        agent.asks()
        agent.works("ok", tool="edit", path="a.py", oldText="one", newText="two")
        formatted, file = "TWO\n" + "x\n" * 500, agent.file("a.py")
        if way == "read":
            agent.works(formatted, tool="read", path="a.py")
        else:
            version = ContentHash.of(formatted.encode()).hex
            agent.notes(PoolAct("activate", file, "file", "text", version, len(formatted), "/repo/a.py", "python"))
            agent.texts[version] = formatted
        later = agent.asks()
        assert [text for section, text, _ in lines(later) if section == "active"][-1].endswith(formatted)
        assert "changed_ref" not in news(later)


def test_a_shown_file_that_is_no_longer_active_is_told_when_it_is_edited() -> None:
    agent = Agent().says().works("one\n" + "x\n" * 500, tool="read", path="a.py")
    agent.asks()
    file = agent.file("a.py")
    agent.acts("deactivate", file).asks()
    told = news(agent.works("ok", tool="edit", path="a.py", oldText="one", newText="two").asks())
    assert f"- changed_ref id={file}" in told


def test_a_shown_file_that_is_deleted_is_told() -> None:
    agent = Agent().says().works("one\n" + "x\n" * 500, tool="read", path="a.py")
    agent.asks()
    file = agent.file("a.py")
    told = news(agent.works("", command="rm a.py").asks())
    assert f"- id={file} type=file path=/repo/a.py file_type=python status=deleted" in told


def test_a_file_that_changed_back_is_shown_again_behind_the_change() -> None:
    agent = Agent().says()
    for text in ("one\n", "two\n", "one\n"):
        agent.works(text * 100, tool="read", path="a.py").asks()
    assert [text.split("\n")[1] for section, text, _ in lines(agent.prompts[-1]) if section == "active"] == [
        "one",
        "two",
        "one",
    ]


def test_an_object_whose_content_has_left_has_no_older_content_in_the_window() -> None:
    agent = Agent().says().works("old\n" * 300, tool="read", path="a.py")
    agent.asks()
    for number in range(40):
        agent.works(f"{number} " * 200).asks()
    agent.works("new\n" * 4000, tool="read", path="a.py").asks()
    for number in range(40):
        agent.works(f"{number} " * 10).asks()
    file = agent.file("a.py")
    for prompt in agent.prompts:
        texts = [text for _, text, _ in lines(prompt)]
        gone = [place for place, text in enumerate(texts) if f"- inactive_ref id={file}" in text]
        shown = [place for place, text in enumerate(texts) if text.startswith(f"ACTIVE_CONTENT id={file}")]
        assert not gone or not shown or max(shown) > max(gone)


@pytest.mark.parametrize("name", ["pooled", "pooled-spec"])
def test_the_line_of_a_file_is_told_anew_once_its_content_no_longer_tells_it(name: Name) -> None:
    agent = Agent(name).says().works("one\n" * 2000, tool="read", path="a.py")
    agent.asks()
    agent.works("ok", tool="write", path="a.py", content="two\n").asks()
    agent.acts("deactivate", agent.file("a.py"))
    for number in range(60):
        agent.works(f"{number} " * 10).asks()
    gone = next(told for told in map(news, agent.prompts) if f"- inactive_ref id={agent.file('a.py')}" in told)
    assert f"- id={agent.file('a.py')} type=file path=/repo/a.py file_type=python char_count=4\n" in gone


def test_a_listed_file_that_a_command_wrote_is_told_to_be_unread() -> None:
    agent = Agent().says().works("one\n" * 300, tool="read", path="a.py")
    agent.asks()
    agent.works("", command="sed -i s/one/two/ a.py")
    file = agent.file("a.py")
    assert f"- id={file} type=file path=/repo/a.py file_type=python [unread]\n- changed_ref id={file}" in news(
        agent.asks()
    )


def test_a_call_with_the_id_of_an_earlier_one_keeps_its_own_result() -> None:
    agent = Agent().says().works("first " * 300)
    agent.calls = 0
    prompt = agent.works("second " * 300).asks()
    texts = [text for _, text, _ in lines(prompt)]
    assert "second " * 300 in texts
    assert "ACTIVE_CONTENT id=c0\n" + "first " * 300 in texts


def test_what_many_calls_of_one_reply_showed_is_shown_once() -> None:
    agent = Agent().says().works(*(f"{number}" * 900 for number in range(9)))
    shown = [text for section, text, _ in lines(agent.asks()) if section == "active"]
    assert sorted(text.partition("\n")[0] for text in shown) == [f"ACTIVE_CONTENT id=c{number}" for number in range(9)]


def test_contents_leave_in_a_batch_once_they_have_cost_as_much_as_the_rewrite() -> None:
    agent = Agent().says().works("big " * 2000)
    agent.asks()
    for number in range(60):
        agent.works(f"{number} " * 10).asks()
    assert agent.state.window.epochs >= 1
    assert not any(text.startswith("ACTIVE_CONTENT id=c0") for _, text, _ in lines(agent.prompts[-1]))
    told = next(text for prompt in agent.prompts for section, text, _ in lines(prompt) if section == "news")
    assert told == "POOL_NEWS\n- inactive_ref id=c0"


@pytest.mark.parametrize(
    ("one", "line"),
    [
        (
            PooledObject("c", "toolcall", "text", "v", 3, tool="ls", status="fail"),
            "- id=c type=toolcall tool=ls status=fail",
        ),
        (
            PooledObject("f", "file", "text", "v", 3, "/a.md", "markdown"),
            "- id=f type=file path=/a.md file_type=markdown char_count=3",
        ),
        (
            PooledObject("f", "file", path="/a b", file_type="text"),
            '- id=f type=file path="/a b" file_type=text [unread]',
        ),
        (PooledObject("f", "file", "none", path="/a", deleted=True), "- id=f type=file path=/a status=deleted"),
    ],
)
def test_the_line_of_an_object(one: PooledObject, line: str) -> None:
    assert metadata_line(one) == line


@given(st.text(min_size=1))
def test_no_value_can_be_taken_for_another_field_or_line(value: str) -> None:
    told = quoted(value)
    assert len(told.splitlines()) == 1
    assert told == value or json.loads(told) == value
    assert " " not in told or told.startswith('"')


# --- laws ---

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["says", "works", "many", "reads", "edits", "activates", "deactivates", "cold"]),
        st.integers(0, 9),
    ),
    max_size=14,
)
PATHS = ("a.py", "b.py", "c.md")


def play(agent: Agent, steps: list[tuple[str, int]]) -> Agent:
    agent.says("Begin.").asks()
    for what, which in steps:
        path, met = PATHS[which % 3], sorted(agent.state.walk.state.index) or ["none"]
        match what:
            case "says":
                agent.answers().says(f"words {which}").asks()
            case "cold":
                agent.answers().says("back").asks(cold=True)
            case "works":
                agent.works("y" * 300 * which).asks()
            case "many":
                agent.works(*(f"{place}" * 1200 for place in range(which + 1))).asks()
            case "reads":
                agent.works(f"text {which}\n" * 300, tool="read", path=path).asks()
            case "edits":
                agent.works(
                    "ok", tool="edit", path=path, oldText=f"text {which}\n" * 300, newText="word\n" * 200
                ).asks()
            case _:
                agent.acts("activate" if what == "activates" else "deactivate", met[which % len(met)])
    return agent


def sent(prompt: LaidPrompt, *, until_final: bool) -> list[tuple[str, str]]:
    """What a prompt has, up to its final breakpoint if the rest is not repeated."""
    blocks = prompt.blocks[: prompt.marks[-1] + 1] if until_final and prompt.marks else prompt.blocks
    return [(block.role, block.text) for block in blocks]


def check_frozen(agent: Agent) -> None:
    for (before, after), (was, now) in zip(pairwise(agent.prompts), pairwise(agent.states), strict=True):
        if agent.name == "inline" or now.window.epochs == was.window.epochs:
            kept = sent(before, until_final=agent.name == "pooled-spec")
            assert sent(after, until_final=False)[: len(kept)] == kept


def results(agent: Agent) -> Iterator[ToolResult]:
    return (block for message in agent.talk for block in message.blocks if isinstance(block, ToolResult))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(STEPS)
def test_laws_of_layouts(name: Name, steps: list[tuple[str, int]]) -> None:
    agent = play(Agent(name), steps)
    check_frozen(agent)
    for prompt, state in zip(agent.prompts, agent.states, strict=True):
        for api in APIS:
            assert list(check_body(render_prompt(prompt, api, "m", max_tokens=9), api)) == []  # valid
        assert len(prompt.marks) <= 4
        fronts, total = [], 0.0
        for block in prompt.blocks:
            total += block.tokens
            fronts.append(total)
        assert all(fronts[place] >= MINIMUM for place in prompt.marks)
        if name == "inline":
            continue
        walk, window = state.walk, state.window
        shown = {one.id: one for one in window.shown}
        for one in walk.state.active:  # all that is active is shown, as it is or with its edits behind it
            if window.references.get(one.id) != "":
                assert one.version in (shown[one.id].version, shown[one.id].present)
        contents = [block.text for block in prompt.blocks if block.section == "active"]
        assert contents == [  # proven: what is shown as a version is that version
            f"ACTIVE_CONTENT id={one.id}\n{walk.texts[one.version]}" for one in window.shown
        ]
        if name == "pooled":
            assert window.saved >= -0.021 * window.bill  # worth it
        else:
            assert len(shown) == len(contents) == len(walk.state.active)  # never two versions
    for result in results(agent):  # lossless: what is no longer shown is in the index
        whole = any(block.content == result for block in agent.prompts[-1].blocks) if agent.talk else True
        if not whole and agent.name != "inline":
            found = agent.state.walk.state.index[result.call_id]
            assert agent.state.walk.texts[found.version or ""] == result.text


@settings(max_examples=25)
@given(STEPS, STEPS, st.sampled_from(["pooled", "pooled-spec"]))
def test_a_branch_has_the_prompts_of_its_own_entries(
    steps: list[tuple[str, int]], other: list[tuple[str, int]], name: Name
) -> None:
    first = play(Agent(name), steps)
    fork = replace(first, talk=list(first.talk), prompts=[], states=[])
    fork.state, at = first.state, first.asks()
    play(first, other)  # whatever another branch does
    assert fork.asks() == at


# --- work ---


def test_a_turn_costs_the_same_after_two_thousand() -> None:
    agent = Agent()

    def turn(number: int) -> None:
        agent.says(f"words {number}").works(f"out {number} " * 120)
        agent.state = agent.fold.request(agent.state, agent.talk, count, prefix=20_000.0)
        agent.answers()

    work = {}
    for number in range(2000):
        if number in (200, 1999):
            _, calls = counted(lambda number=number: turn(number))  # type: ignore[misc]
            work[number] = sum(calls.values())
        else:
            turn(number)
    assert work[1999] < 1.25 * work[200]
    assert len(agent.state.window.shown) < 200
