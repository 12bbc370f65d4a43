"""Whatever JSON comes in is answered or refused; nothing raises."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.providers.validity.bodies import call, output, reasoning, result, text, thought, use
from tests.simulator.raw_clients import APIS, begun, grown

from pagein.errors import BadInput
from pagein.model.json_text import encode_json
from pagein.providers.validity import Api
from pagein.simulator import ProviderCall, ProviderSettings
from pagein.simulator.model_call import parse_call
from pagein.simulator.refusals import SimulatedRefusal
from pagein.simulator.service import Service

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 10**6)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def whole(api: Api) -> Any:  # noqa: ANN401 - plain JSON
    """A request with something of everything."""
    body = begun(api, "go", tool_choice={"type": "auto"}, thinking={"type": "adaptive"}, stream=True)
    if api == "anthropic":
        edits = {"edits": [{"type": "clear_tool_uses_20250919", "trigger": {"type": "tool_uses", "value": 0}}]}
        said = {"role": "assistant", "content": [text(), thought(""), use("t1"), {"type": "image", "source": {}}]}
        more = {"role": "user", "content": [result("t1", content=[text(), {"type": "image"}]), text()]}
        return grown(body, said, more) | {"context_management": edits, "cache_control": {"type": "ephemeral"}}
    if api == "openai_chat":
        function = {"name": "f", "arguments": "{}"}
        made = {
            "role": "assistant",
            "content": "x",
            "tool_calls": [{"id": "c", "type": "function", "function": function}],
        }
        body = grown(body, made, {"role": "tool", "tool_call_id": "c", "content": [text()]})
        return body | {
            "model": "gpt-5.6-terra",
            "prompt_cache_options": {"mode": "explicit"},
            "stream_options": {"include_usage": True},
        }
    return grown(body, reasoning("rs_1"), call("c", id="fc_1"), output("c"), call("d"), output("d")) | {
        "instructions": "x"
    }


def places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[tuple[Any, object]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [path, *(place for name, one in inner for place in places(one, (*path, name)))]


def replaced(value: Any, path: tuple[Any, ...], new: object) -> Any:  # noqa: ANN401 - plain JSON
    if not path:
        return new
    made = dict(value) if isinstance(value, dict) else list(value)
    made[path[0]] = replaced(value[path[0]], path[1:], new)
    return made


def provider() -> Service:
    turn = [{"thinking": "hm"}, {"text": "x"}, {"tool": "f", "args": {}}]
    return Service([turn] * 9, ProviderSettings(takes_foreign_thinking=True))


def sent(api: Api, body: Any) -> ProviderCall:  # noqa: ANN401 - plain JSON
    return replace(parse_call(encode_json(body), api), betas=frozenset({"context-management-2025-06-27"}))


@pytest.mark.parametrize("api", APIS)
def test_the_body_that_is_spoiled_here_is_a_sound_one(api: Api) -> None:
    assert provider().refusal(sent(api, whole(api))) is None


@settings(deadline=None, max_examples=150)
@given(st.data())
@pytest.mark.parametrize("api", APIS)
def test_a_body_with_anything_in_it_is_answered_or_refused(api: Api, data: st.DataObject) -> None:
    body = whole(api)
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.sampled_from(places(body)))
        body = replaced(body, place, data.draw(VALUES))
    service = provider()
    try:
        made = sent(api, body)
    except BadInput:
        return
    found = service.resolve_call(made)
    if isinstance(found, SimulatedRefusal):
        return
    refusal = service.refusal(found)
    if refusal is not None:
        assert refusal.message
        return
    assert service.count_tokens(found)["input_tokens"] >= 0
    answer = service.answer(found)
    assert answer.whole()
    assert list(answer.events())
