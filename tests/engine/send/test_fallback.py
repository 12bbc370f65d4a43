"""What goes out when something of ours failed: pure functions on requests."""

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.providers.validity.bodies import ASK, marked, model, result, text, thought, use, user
from tests.providers.validity.random_bodies import BODIES

from pagein.engine.send.fallback import fallback
from pagein.providers.validity import Api
from pagein.providers.wire import WireRequest, check_body, decode

Wire = dict[str, Any]
SAID = [ASK, model(use("a")), user(result("a", content="long")), model(text("so")), user(text("more"))]
RENDERED = [ASK, model(use("a")), user(result("a", content="stub"))]
STORE = "the store failed"


def body(*messages: Wire, **fields: object) -> Wire:
    return {"model": "claude-opus-5-5", **fields, "messages": list(messages)}


def request(value: Wire, api: Api = "anthropic") -> WireRequest:
    return decode(json.dumps(value).encode(), api)


def rendered(original: WireRequest, *messages: Wire) -> WireRequest:
    return replace(original, items=tuple(json.dumps(one).encode() for one in messages), changed=True)


def values(made: WireRequest) -> Wire:
    found: Wire = json.loads(made.body())
    return found


def test_the_last_rendering_goes_out_with_what_the_client_said_since() -> None:
    original = request(body(*SAID, max_tokens=9))
    found = fallback(STORE, original, rendered(original, *RENDERED, *SAID[3:]))
    assert found.used == "last"
    assert values(found.request) == body(*RENDERED, *SAID[3:], max_tokens=9)
    assert found.reasons == (STORE,)
    assert found.violations == ()


def test_before_the_first_rendering_the_original_goes_out() -> None:
    original = request(body(*SAID))
    found = fallback(STORE, original)
    assert (found.used, found.reasons) == ("original", (STORE,))
    assert found.request is original


def test_a_rendering_that_would_be_refused_is_passed_over_with_its_reason() -> None:
    original = request(body(*SAID))
    found = fallback(STORE, original, rendered(original, *RENDERED[:2], *SAID[3:]))
    assert found.used == "original"
    assert found.reasons == (STORE, "the last rendering with the client's news was not sent: it would be refused by M1")


def test_the_original_without_stale_thinking_goes_out_in_front_of_the_original() -> None:
    original = request(body(*SAID[:3], model(thought("s"), text("so")), user(text("more"))))
    cleaned = rendered(original, *SAID)
    assert fallback(STORE, original, None, cleaned).used == "cleaned"
    assert fallback(STORE, original, rendered(original, *RENDERED[:2]), cleaned).request is cleaned


def test_thinking_that_must_begin_a_message_stays() -> None:
    fields = {"model": "claude-sonnet-4-5", "thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 9000}
    loop = [ASK, model(thought("s"), use("b")), user(result("b"))]
    original = request({**fields, "messages": loop})
    found = fallback(STORE, original, None, rendered(original, ASK, model(use("b")), user(result("b"))))
    assert found.request is original
    assert "it would be refused by M11" in found.reasons[1]


def test_what_the_client_does_wrong_does_not_cost_it_the_rendering() -> None:
    original = request(body(*SAID, temperature=0.1))
    found = fallback(STORE, original, rendered(original, *RENDERED, *SAID[3:]))
    assert found.used == "last"
    assert [one.rule for one in found.violations] == ["M20"]


def test_too_many_marks_together_are_set_anew() -> None:
    ours = [user(text(**marked())), RENDERED[1], user(result("a", content="stub", **marked()))]
    news = [model(text("so", **marked())), user(text("one", **marked()), text("two", **marked()))]
    original = request(body(*SAID[:3], *news))
    found = fallback(STORE, original, rendered(original, *ours, *news))
    assert (found.used, found.violations) == ("last", ())
    assert "cache_control" in values(found.request)["messages"][-1]["content"][-1]


def test_whatever_fails_in_a_candidate_passes_it_over() -> None:
    original = request(body(*SAID))
    found = fallback(STORE, original, replace(original, items=(b"{",), changed=True))
    assert found.request is original
    assert "JSONDecodeError" in found.reasons[1] or "DecodeError" in found.reasons[1]


def test_bytes_of_the_original_go_out_untouched() -> None:
    raw = b'{ "messages" : [ {"role":"user", "content":"hi"} ] , "x" : 1.0 }'
    assert fallback(STORE, decode(raw, "anthropic")).request.body() == raw


@given(BODIES, st.integers(0, 12), st.integers(0, 12))
def test_the_fallback_is_never_worse_than_the_original(given_body: tuple[Api, Wire], kept: int, said: int) -> None:
    api, value = given_body
    key = "input" if api == "openai_responses" else "messages"
    original = request(value, api)
    found = fallback(STORE, original, rendered(original, *value[key][:kept], *value[key][said:]))
    assert check_body(values(found.request), api) == []
