"""What a cache is expected to read: told the same by what is new as by reading all, and bounded in memory."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pagein.engine.forecast import Forecasts
from pagein.engine.heads import Head
from pagein.engine.laying import Layouts, Sent
from pagein.model.messages import Usage
from pagein.providers.wire.naming import chained

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
) -> Sent:
    items = [message(*one, marked=place >= len(said) - marks) for place, one in enumerate(said)]
    names: list[str] = []
    for role, text in said:
        names.append(chained(names[-1] if names else "anthropic", {"role": role, "content": text}))
    return Sent("anthropic", {"system": system} if system else {}, items, names, Head(model), at)


@given(REQUESTS, REQUESTS)
def test_a_request_laid_out_behind_another_is_as_laid_out_alone(
    one: tuple[list[tuple[str, str]], int, str, bytes, bool], other: tuple[list[tuple[str, str]], int, str, bytes, bool]
) -> None:
    layouts = Layouts()
    first, then = (
        replace(sent(said, marks, model, system), head=Head(model, settings="s" if thinks else ""))
        for said, marks, model, system, thinks in (one, other)
    )
    assert layouts.laid(then, layouts.laid(first)) == layouts.laid(then)


def test_what_is_kept_to_compare_with_is_bounded_by_bytes() -> None:
    forecasts = Forecasts(most=10_000)
    for number in range(12):
        forecasts.answered(sent([("user", f"{number} " + "x" * 3000)]), Usage(fresh=1000))
        assert 3000 < forecasts.size <= 10_000
    forecasts.answered(sent([("user", "x" * 20_000)]), Usage(fresh=7000))
    assert forecasts.size > 20_000  # the last one stays in any case


def test_of_branches_the_one_with_most_in_common_is_gone_on_from() -> None:
    forecasts, text = Forecasts(), "word " * 2000
    trunk = [("user", text), ("assistant", text)]
    for number, branch in enumerate(("left", "right")):
        forecasts.answered(sent([*trunk, ("user", branch)], 1, at=number), Usage(fresh=3, written=8000))
    onward = sent([*trunk, ("user", "left"), ("assistant", text), ("user", "go on")], 1, at=3.0)
    told = forecasts.answered(onward, Usage(fresh=3, read=4000, written=4000))
    assert told.diagnosis.cause != "messages"
    assert told.expected is not None
    assert told.expected > 0
    changed = sent([("user", text), ("assistant", "other"), ("user", "left")], 1, at=4.0)
    told = forecasts.answered(changed, Usage(fresh=8000))
    assert (told.diagnosis.cause, told.diagnosis.place) == ("messages", 1)
