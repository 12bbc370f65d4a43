"""The forecast of cache reads: the same from the new part as from the whole request, with bounded memory."""

import json
from dataclasses import replace
from itertools import accumulate

from hypothesis import example, given
from hypothesis import strategies as st

from pagein.engine.cache.cache_forecast import Forecasts
from pagein.engine.cache.prompt_layout import Layouts, SentRequest
from pagein.model.journal_notes import PrefixDigests
from pagein.model.messages import Usage
from pagein.providers.cache_simulator import CacheSimulator
from pagein.providers.prices.price_lookup import prices
from pagein.providers.tokens.counters import ratio_counter
from pagein.providers.wire.prompt_footprint import footprints
from pagein.providers.wire.request_body import chain_name, message_of

MODELS = st.sampled_from(["claude-sonnet-4-5", "claude-opus-4-5"])
MESSAGES = st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.sampled_from("abc")), max_size=7)
REQUESTS = st.tuples(
    MESSAGES, st.integers(0, 2), MODELS, st.sampled_from([b'"be good"', b'"be better"', b""]), st.booleans()
)


def message(role: str, text: str, *, marked: bool = False) -> bytes:
    block = {"type": "text", "text": text} | ({"cache_control": {"type": "ephemeral"}} if marked else {})
    return json.dumps({"role": role, "content": [block]}).encode()


def sent(
    said: list[tuple[str, str]], marks: int = 0, model: str = "claude-sonnet-4-5", system: bytes = b"", at: float = 0.0
) -> SentRequest:
    items = [message(*one, marked=place >= len(said) - marks) for place, one in enumerate(said)]
    names: list[str] = []
    for role, text in said:
        names.append(chain_name(names[-1] if names else "anthropic", {"role": role, "content": text}))
    return SentRequest("anthropic", {"system": system} if system else {}, items, names, PrefixDigests(model), at)


@given(REQUESTS, REQUESTS)
def test_a_request_laid_out_behind_another_is_as_laid_out_alone(
    one: tuple[list[tuple[str, str]], int, str, bytes, bool], other: tuple[list[tuple[str, str]], int, str, bytes, bool]
) -> None:
    layouts = Layouts()
    first, then = (
        replace(sent(said, marks, model, system), head=PrefixDigests(model, settings="s" if thinks else ""))
        for said, marks, model, system, thinks in (one, other)
    )
    assert layouts.laid(then, layouts.laid(first)) == layouts.laid(then)


def test_what_is_kept_to_compare_with_is_bounded_by_bytes() -> None:
    forecasts = Forecasts(most=10_000)
    for number in range(12):
        forecasts.take_usage(sent([("user", f"{number} " + "x" * 3000)]), Usage(fresh=1000))
        assert 3000 < forecasts.size <= 10_000
    forecasts.take_usage(sent([("user", "x" * 20_000)]), Usage(fresh=7000))
    assert forecasts.size > 20_000  # the last one stays in any case


def test_of_branches_the_one_with_most_in_common_is_gone_on_from() -> None:
    forecasts, text = Forecasts(), "word " * 2000
    trunk = [("user", text), ("assistant", text)]
    for number, branch in enumerate(("left", "right")):
        forecasts.take_usage(sent([*trunk, ("user", branch)], 1, at=number), Usage(fresh=3, written=8000))
    onward = sent([*trunk, ("user", "left"), ("assistant", text), ("user", "go on")], 1, at=3.0)
    told = forecasts.take_usage(onward, Usage(fresh=3, read=4000, written=4000))
    assert told.diagnosis.cause != "messages"
    assert told.expected is not None
    assert told.expected > 0
    changed = sent([("user", text), ("assistant", "other"), ("user", "left")], 1, at=4.0)
    told = forecasts.take_usage(changed, Usage(fresh=8000))
    assert (told.diagnosis.cause, told.diagnosis.place) == ("messages", 1)


STEPS = st.lists(
    st.tuples(
        st.integers(1, 3),  # new messages
        st.integers(1, 12),  # how long each is, in units of some 300 tokens
        st.none() | st.floats(0, 0.99),  # where an epoch of ours begins, as a share of the messages
        st.floats(0.6, 1.6),  # how many tokens the provider sees where the estimate sees one
    ),
    min_size=2,
    max_size=12,
)


class KeepingAll:
    """A provider that keeps all that it is given: sizes are its own, and unlike what anybody estimates."""

    def __init__(self) -> None:
        self._layouts, self._cache = Layouts(), CacheSimulator(prices("claude-sonnet-4-5").cache)
        self.shares: dict[bytes, float] = {}

    def usage(self, asked: SentRequest) -> Usage:
        laid = self._layouts.laid(asked)
        blocks = [*laid.front, *(block for said in laid.said for block in said)]
        sizes = [block.tokens * self.shares.get(block.name, 1.0) for block in blocks]
        served = self._cache.serve(replace(laid.cache_request(), cumulative=list(accumulate(sizes))))
        return Usage(fresh=round(served.fresh), read=round(served.read), written=round(served.written))

    def weigh(self, item: bytes, share: float) -> None:
        value, _ = message_of(item, "anthropic", 0)
        for block in footprints(value, "anthropic", ratio_counter("claude-sonnet-4-5")):
            self.shares[block.name] = share


@example(
    [(1, 2, None, 0.75), (1, 1, None, 1.0), (1, 1, 0.5, 1.0)]
)  # in front of the stub stands less than a cache holds
@given(STEPS)
def test_a_provider_that_keeps_all_is_never_blamed_however_far_off_the_estimate_is(
    steps: list[tuple[int, int, float | None, float]],
) -> None:
    provider, forecasts = KeepingAll(), Forecasts()
    theirs: list[tuple[str, str]] = []
    said: list[tuple[str, str]] = []
    for number, (more, length, epoch, share) in enumerate(steps):
        for _ in range(more):
            one = ("assistant" if len(said) % 2 else "user", f"{len(said)} " + "word " * 300 * length)
            theirs.append(one)
            said.append(one)
            provider.weigh(message(*one), share)
        first = len(said) if epoch is None or not number else int(epoch * (len(said) - more))
        for place in range(first, len(said) - more):
            said[place] = (said[place][0], f"a stub of {number} for {place}")
        asked = replace(sent(said, 1, at=float(number)), theirs=sent(theirs).theirs)
        told = forecasts.take_usage(asked, provider.usage(asked)).diagnosis
        assert told.who not in ("provider", "client"), told
        if first < len(said) - more and told.cause not in ("none", "first"):
            assert told.who == "us"


def test_an_epoch_of_ours_is_ours_though_the_estimate_of_what_stands_before_it_is_too_high() -> None:
    provider, forecasts = KeepingAll(), Forecasts()
    said = [("user", "word " * 8000), *((("assistant", "user")[n % 2], f"{n} " + "word " * 1500) for n in range(10))]
    for number, one in enumerate(said):
        provider.weigh(message(*one), 0.6 if number < 4 else 1.4)  # prose in front, tables behind
    before = sent(said, 1)
    forecasts.take_usage(before, provider.usage(before))
    rewritten = [*said[:4], *((role, f"stub {n}") for n, (role, _) in enumerate(said[4:])), ("user", "go on")]
    items = sent(rewritten, 1, at=1.0)
    asked = replace(items, theirs=[*before.theirs, items.theirs[-1]])
    told = forecasts.take_usage(asked, provider.usage(asked))
    assert (told.diagnosis.cause, told.diagnosis.who, told.diagnosis.place) == ("messages", "us", 4)


def test_a_provider_that_lost_what_it_was_given_is_still_told_so() -> None:
    provider, forecasts = KeepingAll(), Forecasts()
    said = [("user", "word " * 3000), ("assistant", "word " * 3000)]
    for number in range(3):
        asked = sent(said, 1, at=float(number))
        usage = provider.usage(asked)
        if number == 2:
            usage = Usage(fresh=usage.fresh, written=usage.read + usage.written)
        told = forecasts.take_usage(asked, usage)
        said.append(("user", f"and {number}"))
    assert (told.diagnosis.cause, told.diagnosis.who) == ("unexplained", "provider")


def test_a_new_turn_of_a_model_that_drops_its_old_thinking_is_no_loss_of_the_providers() -> None:
    def asked(turns: int, model: str) -> SentRequest:
        said = [message("user", "word " * 3000)]
        for number in range(turns):
            thought = {"type": "thinking", "thinking": "well " * 500, "signature": "s"}
            call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {}}
            said.append(json.dumps({"role": "assistant", "content": [thought, call]}).encode())
            result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "row " * 3000}
            said.append(json.dumps({"role": "user", "content": [result]}).encode())
        if turns == 3:
            said.append(message("user", "and now this"))
        names = [str(place) for place in range(len(said))]
        value = json.loads(said[-1])
        value["content"][-1]["cache_control"] = {"type": "ephemeral"}
        said[-1] = json.dumps(value).encode()
        return SentRequest("anthropic", {}, said, names, PrefixDigests(model), float(turns))

    for model, who in (("claude-sonnet-4-5", "nobody"), ("claude-opus-4-5", "provider")):
        forecasts = Forecasts()
        told = [
            forecasts.take_usage(asked(1, model), Usage(written=8000)),
            forecasts.take_usage(asked(2, model), Usage(read=8000, written=4000)),
            forecasts.take_usage(asked(3, model), Usage(read=3000, written=10_000)),
        ][-1]
        assert told.diagnosis.who == who, model
