"""Reported usage and bills equal the figures of the cache simulator for the same prompts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.simulator.raw_clients import MODELS, Clock, Heard, Wire, answered, ask, begun, grown, results, talk

from pagein.model.messages import Usage
from pagein.providers.cache_simulator import (
    LONG,
    SHORT,
    Breakpoint,
    CacheRequest,
    CacheSimulator,
    CacheUsage,
    Chains,
    bill,
)
from pagein.providers.prices.price_lookup import prices
from pagein.providers.tokens.counters import counter_for
from pagein.providers.validity import Api
from pagein.simulator import ProviderSettings, SimulatedProvider
from pagein.simulator.accounts import Accounts
from pagein.simulator.model_call import parse_call

ON = date(2026, 9, 21)


def tokens(model: str, text: str) -> int:
    return ceil(counter_for(model).count(text)) if text else 0


@dataclass
class Twin:
    """The simulator on its own, fed with blocks that are named by their text."""

    model: str

    def __post_init__(self) -> None:
        self.chains = Chains()
        self.prices = prices(self.model, ON)
        self.simulator = CacheSimulator(self.prices.cache)
        self.bit = 0.0

    def serve(
        self, at: float, blocks: Sequence[str], marks: Iterable[Breakpoint], output: str, **more: int
    ) -> CacheUsage:
        parent, total = Chains.ROOT, 0
        chain: list[int] = []
        cumulative: list[float] = []
        for text in blocks:
            parent, total = self.chains.extend(parent, text), total + tokens(self.model, text)
            chain.append(parent)
            cumulative.append(total)
        request = CacheRequest(at, chain, cumulative, tuple(marks), tokens(self.model, output), **more)
        served = self.simulator.serve(request)
        self.bit += bill(served, self.prices, at)
        return served


def usage(heard: Heard, api: Api) -> tuple[int, int, int, int]:
    """Fresh, read, written, output."""
    told = heard.body["usage"]
    if api == "anthropic":
        return (
            told["input_tokens"],
            told["cache_read_input_tokens"],
            told["cache_creation_input_tokens"],
            told["output_tokens"],
        )
    kind = "prompt" if api == "openai_chat" else "input"
    details = told[f"{kind}_tokens_details"]
    read, written = details["cached_tokens"], details.get("cache_write_tokens", 0)
    out = told["completion_tokens" if api == "openai_chat" else "output_tokens"]
    return told[f"{kind}_tokens"] - read - written, read, written, out


def figures(served: CacheUsage) -> tuple[int, int, int, int]:
    return round(served.fresh), round(served.read), round(served.written), round(served.output)


def words(number: int, size: int) -> str:
    return f"{number}: " + "word " * size


# A step: seconds since the step before, size of what the user says, whether system, previous end and end are marked.
STEPS = st.lists(
    st.tuples(
        st.sampled_from([0, 10, 299, 301, 3000, 4000]),
        st.integers(0, 3000),
        st.booleans(),
        st.booleans(),
        st.booleans(),
        st.sampled_from([None, "1h"]),
    ),
    min_size=1,
    max_size=7,
)


def marked(text: str, ttl: str | None, *, mark: bool) -> list[Wire]:
    control = {"cache_control": {"type": "ephemeral", **({"ttl": ttl} if ttl else {})}}
    return [{"type": "text", "text": text, **(control if mark else {})}]


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_usage_of_messages_is_what_the_simulator_says(
    steps: list[tuple[int, int, bool, bool, bool, str | None]],
) -> None:
    clock, model = Clock(1_790_000_000.0), "claude-sonnet-4-5"
    system, reply = words(0, 2500), "a short answer"

    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> None:
        twin, said = Twin(model), list[str]()
        for number, (gap, size, of_system, of_previous, of_end, ttl) in enumerate(steps, 1):
            clock.at += gap
            said.append(words(number, size))
            turns: list[Wire] = []
            blocks, marks = [system], [Breakpoint(1, LONG if ttl else SHORT)] if of_system else []
            for place, text in enumerate(said):
                is_end, is_previous = place == len(said) - 1, place == len(said) - 2
                mark = (is_end and of_end) or (is_previous and of_previous)
                turns.append({"role": "user", "content": marked(text, ttl, mark=mark)})
                blocks.append(text)
                if mark:
                    marks.append(Breakpoint(len(blocks), LONG if ttl else SHORT))
                if not is_end:
                    turns.append({"role": "assistant", "content": reply})
                    blocks.append(reply)
            body = {"model": model, "max_tokens": 10, "system": marked(system, ttl, mark=of_system), "messages": turns}
            heard = await ask(session, provider.url, "anthropic", body)
            assert usage(heard, "anthropic") == figures(twin.serve(clock.at, blocks, marks, reply))
        assert provider.bill().bit == pytest.approx(twin.bit)

    talk(lambda _: reply, converse, now=clock, prices=f"{model}@{ON}")


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from([0, 60, 601, 1700, 1900]), st.integers(0, 2000)), min_size=1, max_size=6))
@pytest.mark.parametrize("api", ["openai_chat", "openai_responses"])
@pytest.mark.parametrize("model", ["gpt-5.1", "gpt-5.6-terra"])
def test_usage_of_openai_is_what_the_simulator_says(api: Api, model: str, steps: list[tuple[int, int]]) -> None:
    clock, reply = Clock(1_790_000_000.0), "a short answer"

    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> None:
        twin, said, blocks = Twin(model), list[Wire](), list[str]()
        for number, (gap, size) in enumerate(steps):
            clock.at += gap
            blocks.append(words(number, size))
            said.append({"role": "user", "content": blocks[-1]})
            body = {"model": model, "messages" if api == "openai_chat" else "input": said}
            heard = await ask(session, provider.url, api, body)
            served = twin.serve(clock.at, blocks, (), reply, newest_user=len(blocks))
            assert usage(heard, api) == figures(served)
            blocks.append(reply)
            said.append({"role": "assistant", "content": reply})
        assert provider.bill().bit == pytest.approx(twin.bit)

    talk(lambda _: reply, converse, now=clock, prices=f"{model}@{ON}")


LONG_TEXT = "word " * 5000


def both(
    first: Wire, second: Wire, api: Api = "anthropic", *, gap: float = 0, headers: Sequence[dict[str, str]] = ({}, {})
) -> int:
    """What the second request reads of the first."""
    clock = Clock()

    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> int:
        told = await ask(session, provider.url, api, first, **headers[0])
        assert told.status == 200, told.body
        clock.at += gap
        return usage(await ask(session, provider.url, api, second, **headers[1]), api)[1]

    return talk(["a", "b", "c"], converse, now=clock)


def prompt(**more: Any) -> Wire:  # noqa: ANN401 - fields of a body
    system = [{"type": "text", "text": LONG_TEXT, "cache_control": {"type": "ephemeral"}}]
    ask_it = [{"type": "text", "text": LONG_TEXT, "cache_control": {"type": "ephemeral"}}]
    return begun("anthropic", "", system=system) | {"messages": [{"role": "user", "content": ask_it}]} | more


HALF = Accounts().prompts.tokens(MODELS["anthropic"], LONG_TEXT)


@pytest.mark.parametrize(
    ("change", "share"),
    [
        ({}, 2),
        ({"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}, 1),
        ({"output_config": {"effort": "low"}}, 1),
        ({"thinking": {"type": "adaptive"}}, 1),
        ({"speed": "fast"}, 0),
        ({"tools": []}, 0),
        ({"model": "claude-sonnet-5-5"}, 0),
        ({"temperature": 1}, 2),
        ({"metadata": {"user_id": "x"}}, 2),
    ],
)
def test_a_changed_setting_voids_what_the_provider_says_it_voids(change: Wire, share: int) -> None:
    tools = sum(
        Accounts()
        .prompt(parse_call(f'{{"model":"{MODELS["anthropic"]}","tools":{text},"messages":[]}}'.encode(), "anthropic"))
        .tokens
        for text in [
            '[{"name":"read","input_schema":{"type":"object"}}]',
            '[{"name":"edit","input_schema":{"type":"object"}}]',
        ]
    )
    assert both(prompt(), prompt(**change)) == share * HALF + (tools if share else 0)


def test_beta_headers_are_part_of_what_the_cache_knows_a_prompt_by() -> None:
    here, there = {"anthropic-beta": "a-1,b-2"}, {"anthropic-beta": "b-2, a-1"}
    assert both(prompt(), prompt(), headers=(here, there)) > 2 * HALF - 10
    assert both(prompt(), prompt(), headers=(here, {})) == 0


def test_accounts_share_no_cache() -> None:
    mine, yours = {"x-api-key": "mine"}, {"x-api-key": "yours"}
    assert both(prompt(), prompt(), headers=(mine, mine)) > 0
    assert both(prompt(), prompt(), headers=(mine, yours)) == 0
    assert both(prompt(), prompt(), headers=({"authorization": "Bearer mine"}, mine)) > 0


def test_what_is_written_can_be_read_from_the_first_byte_of_the_answer() -> None:
    clock = Clock()

    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> list[int]:
        read = []
        for gap in (0.0, 0.01, 0.05):
            clock.at += gap
            read.append(usage(await ask(session, provider.url, "anthropic", prompt()), "anthropic")[1])
        return read

    slow = [[{"text": "a"}, {"wait": 0.03}]]
    assert [bool(read) for read in talk(slow, converse, now=clock)] == [False, False, True]


def test_a_top_level_mark_stands_at_the_end() -> None:
    bare = begun("anthropic", LONG_TEXT) | {"cache_control": {"type": "ephemeral"}}
    assert both(bare, bare) > HALF


def test_the_key_of_a_prompt_tells_caches_of_openai_apart() -> None:
    one, two = (begun("openai_chat", LONG_TEXT, prompt_cache_key=name) for name in ("one", "two"))
    assert both(one, one, "openai_chat") > 0
    assert both(one, two, "openai_chat") == 0


def test_retention_of_a_day_outlives_a_night() -> None:
    kept, lost = begun("openai_chat", LONG_TEXT, prompt_cache_retention="24h"), begun("openai_chat", LONG_TEXT)
    assert both(kept, kept, "openai_chat", gap=30_000) > 0
    assert both(lost, lost, "openai_chat", gap=30_000) == 0


def test_explicit_caching_without_breakpoints_is_none_at_all() -> None:
    def body(mode: str, *, mark: bool) -> Wire:
        text = {
            "type": "text",
            "text": LONG_TEXT,
            **({"prompt_cache_breakpoint": {"mode": "explicit"}} if mark else {}),
        }
        said = [{"role": "user", "content": [text]}, {"role": "user", "content": LONG_TEXT}]
        return {"model": "gpt-5.6-terra", "messages": said, "prompt_cache_options": {"mode": mode}}

    whole = both(body("implicit", mark=False), body("implicit", mark=False), "openai_chat")
    assert both(body("explicit", mark=True), body("explicit", mark=True), "openai_chat") == whole / 2
    assert both(body("explicit", mark=False), body("explicit", mark=False), "openai_chat") == 0


def test_models_that_strip_earlier_thinking_lose_the_cache_behind_it() -> None:
    def run(model: str) -> int:
        async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> int:
            body = begun("anthropic", LONG_TEXT, model=model, cache_control={"type": "ephemeral"})
            for _ in range(2):
                answer = answered("anthropic", await ask(session, provider.url, "anthropic", body))
                body = grown(body, *answer, *results("anthropic", answer, LONG_TEXT))
            body = grown(body, {"role": "user", "content": "next"})
            return usage(await ask(session, provider.url, "anthropic", body), "anthropic")[1]

        script = [[{"thinking": "hm"}, {"tool": "read", "args": {}}], [{"thinking": "ha"}, {"text": "x"}], "y"]
        return talk(script, converse)

    assert run("claude-haiku-4-5") < run("claude-opus-4-5") / 1.5


def test_a_prompt_is_warmed_without_an_answer() -> None:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> tuple[Wire, int]:
        first = await ask(session, provider.url, "anthropic", prompt(max_tokens=0))
        second = await ask(session, provider.url, "anthropic", prompt())
        return first.body, usage(second, "anthropic")[1]

    body, read = talk(["a"], converse)
    assert (body["content"], body["usage"]["output_tokens"], body["stop_reason"]) == ([], 0, "max_tokens")
    assert read > 2 * HALF


def test_the_script_may_set_what_is_reported_but_not_what_is_billed() -> None:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> tuple[Any, Usage, int]:
        heard = await ask(session, provider.url, "anthropic", begun("anthropic", "hi"))
        return usage(heard, "anthropic"), provider.bill().usage, provider.requests[0].usage.prompt  # type: ignore[union-attr]

    told, billed, recorded = talk([[{"text": "x"}, {"usage": 31_000}]], converse)
    assert told == (31_000, 0, 0, 1)
    assert billed.prompt == recorded < 100


def test_the_clock_runs_as_fast_as_it_is_told_and_jumps_where_it_is_asked_to() -> None:
    clock = Clock(1000.0)

    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> list[float]:
        clock.at += 2
        async with session.post(provider.url + "/__provider/clock", json={"advance": 300}) as answer:
            told = (await answer.json())["now"]
        provider.advance(7)
        await ask(session, provider.url, "anthropic", begun("anthropic", "hi"))
        return [told, provider.requests[-1].at]

    assert talk(["a"], converse, now=clock, speed=60.0) == [1000 + 120 + 300, 1000 + 120 + 307]


def test_prices_that_mean_nothing_are_refused_at_the_start() -> None:
    from pagein.errors import BadSetting

    with pytest.raises(BadSetting, match="no prices"):
        SimulatedProvider(None, ProviderSettings(prices="no such model"))
