"""Children that share a prefix or an answer, measured by the simulated provider over real sockets."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from pagein.child_models.asked_contents import LIFETIME, AskedContents
from pagein.child_models.memoized_models import AnswerMemo, MemoizedModels, call_key
from pagein.child_models.shared_prefix_models import SharedPrefixModels
from pagein.errors import OverloadedProvider
from pagein.model.messages import Message, Text, Usage
from pagein.ports import ChildAnswer, ChildRequest, PrefixMark
from pagein.simulator import SimulatedProvider

pytest.importorskip("pydantic_ai")
from pagein.child_models.provider_models import ProviderModels

MODEL = "anthropic/claude-sonnet-5-5"
LONG = "Judge each record by these rules of the house. " * 500


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any-key")


def asked(number: int, system: str = LONG) -> ChildRequest:
    return ChildRequest("", system, (Message("user", (Text(f"record {number} " * 100),)),), max_output=100)


def batch(provider: SimulatedProvider, requests: list[ChildRequest], *, shares: bool, wait: float = 30) -> list[Usage]:
    async def run() -> list[Usage]:
        models = ProviderModels(MODEL, {"anthropic": provider.url})
        used = SharedPrefixModels(models, children=len(requests), concurrency=4, wait=wait) if shares else models
        answers = await asyncio.gather(*(used.complete(one) for one in requests))
        await models.close()
        return [one.usage for one in answers if one.usage is not None]

    return asyncio.run(run())


def test_children_with_the_same_instructions_pay_for_them_once() -> None:
    """The saving that the docs name is this one."""
    requests, costs = [asked(number) for number in range(8)], []
    for shares in (False, True):
        with SimulatedProvider([[{"wait": 0.1}, {"text": "ok"}]]) as provider:
            used = batch(provider, requests, shares=shares)
            costs.append(provider.bill().bit)
        assert [one.written > 0 for one in used] == [shares, *[False] * 7]
        assert [one.read > 0 for one in used] == [False, *[shares] * 7]
    assert costs[1] < costs[0] * 0.4


@pytest.mark.parametrize("together", [False, True], ids=["in turn", "at once"])
def test_questions_behind_the_same_content_read_it_from_the_cache_from_the_third_on(*, together: bool) -> None:
    """One question alone pays no write. At once, the second one writes and the others wait for it."""
    content = Message("user", (Text("a line of the report\n" * 2_000),))
    requests = [
        ChildRequest("", "Answer.", (replace(content, blocks=(*content.blocks, Text(f"Your task: {number}?"))),))
        for number in range(6)
    ]

    async def run() -> list[Usage]:
        models, contents = ProviderModels(MODEL, {"anthropic": provider.url}), AskedContents()

        def one(request: ChildRequest) -> Coroutine[Any, Any, ChildAnswer]:
            return SharedPrefixModels(models, children=1, concurrency=4, contents=contents).complete(request)

        answers = await asyncio.gather(*map(one, requests)) if together else [await one(each) for each in requests]
        await models.close()
        return [each.usage for each in answers if each.usage is not None]

    with SimulatedProvider([[{"wait": 0.1}, {"text": "ok"}]]) as provider:
        used = asyncio.run(run())
        cost = provider.bill().bit
    assert [each.written > 0 for each in used] == [False, True, *[False] * 4]
    assert [each.read > 0 for each in used] == [False, False, *[True] * 4]
    assert cost < 0.5 * sum(each.prompt for each in used)


def test_a_content_is_forgotten_when_its_entry_is_gone_and_a_writer_that_failed_wrote_nothing() -> None:
    now = [0.0]
    contents = AskedContents(lambda: now[0])
    roles = [contents.begin(b"a"), contents.begin(b"a"), contents.begin(b"a")]
    contents.end(b"a", is_written=False)
    roles.append(contents.begin(b"a"))
    contents.end(b"a", is_written=True)
    now[0] = LIFETIME
    roles.append(contents.begin(b"a"))
    now[0] = 2 * LIFETIME + 1
    roles += [contents.begin(b"a"), contents.begin(b"b", writes_always=True)]
    assert roles == ["plain", "write", "wait", "write", "read", "plain", "write"]


def test_a_prefix_below_the_minimum_is_told_and_nobody_waits() -> None:
    with SimulatedProvider([[{"text": "ok"}]]) as provider:
        used = batch(provider, [asked(number, "Short.") for number in range(4)], shares=True)
    assert all(one.written == one.read == 0 for one in used)


def test_the_others_go_on_when_the_first_child_fails_or_is_slow() -> None:
    class Failing:
        default_model = MODEL
        calls = 0

        def knows(self, model: str, /) -> bool:
            return bool(model)

        async def complete(self, request: ChildRequest, /) -> ChildAnswer:
            Failing.calls += 1
            if Failing.calls == 1:
                await asyncio.sleep(0.2)
                raise OverloadedProvider("busy")
            return ChildAnswer((Text("ok"),), Usage(), "end", request.model)

        async def close(self) -> None:
            return

    async def run(wait: float) -> tuple[float, list[object]]:
        Failing.calls = 0
        models = SharedPrefixModels(Failing(), children=8, concurrency=4, wait=wait)
        began = asyncio.get_running_loop().time()
        first = asyncio.ensure_future(models.complete(asked(0)))
        await asyncio.sleep(0)
        others = await asyncio.gather(*(models.complete(asked(number)) for number in range(1, 4)))
        took = asyncio.get_running_loop().time() - began
        return took, [*others, *await asyncio.gather(first, return_exceptions=True)]

    for wait, least, most in ((30.0, 0.19, 5.0), (0.01, 0.0, 0.15)):
        took, results = asyncio.run(run(wait))
        assert least <= took < most
        assert isinstance(results[-1], OverloadedProvider)
        assert len(results) == 4


def test_a_later_turn_marks_the_content_of_its_child() -> None:
    models = SharedPrefixModels(ProviderModels(MODEL), children=1, concurrency=1)
    goes_on = replace(asked(1), messages=(*asked(1).messages, Message("assistant", (Text("a"),))))
    assert models._marks(goes_on, models._plan(goes_on)) == (PrefixMark(1),)


def test_the_same_call_is_answered_from_memory_for_nothing() -> None:
    async def run(provider: SimulatedProvider) -> tuple[list[ChildAnswer], str]:
        models = MemoizedModels(ProviderModels(MODEL, {"anthropic": provider.url}), AnswerMemo())
        first = await models.complete(asked(1))
        again = await models.complete(replace(asked(1), model=MODEL, marks=(PrefixMark(0),)))
        other = await models.complete(asked(2))
        await models.close()
        return [first, again, other], models.figures.says

    with SimulatedProvider([[{"text": "ok"}]]) as provider:
        (first, again, other), told = asyncio.run(run(provider))
        assert len(provider.requests) == 2
    assert (again.text, again.usage) == (first.text, Usage())
    assert other.usage != Usage()
    assert told == "1 of 3 calls (33%) were answered from memory"


def test_whatever_changes_an_answer_changes_the_name_of_a_call() -> None:
    one = asked(1)
    others = [
        replace(one, model="a/b"),
        replace(one, system="other"),
        replace(one, messages=asked(2).messages),
        replace(one, max_output=7),
        replace(one, schema={"type": "object"}),
    ]
    assert len({call_key(each) for each in [one, *others]}) == 6
    assert call_key(replace(one, stream=True)) == call_key(one)
    assert call_key(replace(one, system="half \ud83d")) != call_key(one)  # hosts cut strings between surrogates


def test_cut_answers_are_not_remembered_and_the_memory_has_an_end() -> None:
    memo = AnswerMemo(most_bytes=100)
    memo.keep(b"cut", ChildAnswer((Text("half"),), None, "length", MODEL))
    assert memo.find(b"cut") is None
    for number in range(50):
        memo.keep(str(number).encode(), ChildAnswer((Text("x" * 30),), None, "end", MODEL))
    kept = [number for number in range(50) if memo.find(str(number).encode()) is not None]
    assert kept == [47, 48, 49]
