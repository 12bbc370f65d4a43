import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.validity.bodies import ASK, marked, model, result, text, thought, use, user
from tests.validity.generated import BODIES, anthropic_bodies

from pagein.engine.fallback import Facts, LastSent, fallback_body, fallback_bytes, fallback_messages
from pagein.model.messages import Message, Text, Thinking, ToolCall, ToolResult
from pagein.providers.validity import NOTHING_RECEIVED, Api, check_body, target, with_messages, with_request
from pagein.providers.wire import decode

Wire = dict[str, Any]
BOUND = target("claude-opus-5-5")
SAID = [ASK, model(use("a")), user(result("a", content="long")), model(text("so")), user(text("more"))]
RENDERED = [ASK, model(use("a")), user(result("a", content="stub"))]
STORE = "the store failed"


def body(*messages: Wire, **fields: object) -> Wire:
    return {"model": "claude-opus-5-5", **fields, "messages": list(messages)}


def test_the_last_rendering_goes_out_with_what_the_client_said_since() -> None:
    found = fallback_body(STORE, body(*SAID, max_tokens=9), "anthropic", LastSent(RENDERED, 3))
    assert found.used == "last"
    assert found.request == body(*RENDERED, *SAID[3:], max_tokens=9)
    assert found.reasons == (STORE,)
    assert found.violations == ()


def test_before_the_first_rendering_the_original_goes_out() -> None:
    original = body(*SAID)
    found = fallback_body(STORE, original, "anthropic")
    assert (found.used, found.reasons) == ("original", (STORE,))
    assert found.request is original


def test_a_rendering_that_would_be_refused_is_passed_over_with_its_reason() -> None:
    found = fallback_body(STORE, body(*SAID), "anthropic", LastSent(RENDERED[:2], 3))
    assert found.used == "original"
    assert found.reasons == (STORE, "the last rendering with the client's news was not sent: it would be refused by M1")


def test_a_client_that_went_back_gets_its_original() -> None:
    found = fallback_body(STORE, body(*SAID[:1]), "anthropic", LastSent(RENDERED, 3))
    assert found.used == "original"
    assert "fewer than the 3" in found.reasons[1]


def test_the_original_loses_the_thinking_that_our_rendering_made_invalid() -> None:
    rendered = [*RENDERED, model(thought("s"), text("so")), user(text("more"))]
    received = with_request(NOTHING_RECEIVED, body(*rendered), "anthropic")
    theirs = body(*SAID[:3], *rendered[3:])
    assert [one.rule for one in check_body(theirs, "anthropic", BOUND, received)] == ["T2"]
    found = fallback_body(STORE, theirs, "anthropic", facts=Facts(BOUND, received))
    assert (found.used, found.violations) == ("cleaned", ())
    assert found.request == body(*SAID[:3], model(text("so")), user(text("more")))


def test_stale_thinking_that_must_go_back_as_it_came_stays_and_is_reported() -> None:
    loop = [model(thought("s"), use("b")), user(result("b"))]
    received = with_request(NOTHING_RECEIVED, body(*RENDERED, *loop), "anthropic")
    found = fallback_body(STORE, body(*SAID[:3], *loop), "anthropic", facts=Facts(BOUND, received))
    assert found.used == "original"
    assert [one.rule for one in found.violations] == ["T2"]
    assert "stale thinking stands in the message whose calls are being answered" in found.reasons[1]


def test_what_the_client_does_wrong_does_not_cost_it_the_rendering() -> None:
    found = fallback_body(STORE, body(*SAID, temperature=0.1), "anthropic", LastSent(RENDERED, 3))
    assert found.used == "last"
    assert [one.rule for one in found.violations] == ["M20"]


def test_too_many_marks_together_are_set_anew() -> None:
    rendered = [user(text(**marked())), RENDERED[1], user(result("a", content="stub", **marked()))]
    news = [model(text("so", **marked())), user(text("one", **marked()), text("two", **marked()))]
    found = fallback_body(STORE, body(*SAID[:3], *news), "anthropic", LastSent(rendered, 3))
    assert (found.used, found.violations) == ("last", ())
    assert "cache_control" in found.request["messages"][-1]["content"][-1]
    raw = decode(json.dumps(body(*SAID[:3], *news)).encode(), "anthropic")
    sent = LastSent([json.dumps(one).encode() for one in rendered], 3)
    assert json.loads(fallback_bytes(STORE, raw, sent).request.body()) == found.request


def test_whatever_fails_in_a_candidate_passes_it_over() -> None:
    original = body(*SAID)
    found = fallback_body(STORE, original, "anthropic", LastSent(5, 3))  # type: ignore[arg-type]  # the failure under test
    assert found.request is original
    assert "TypeError" in found.reasons[1]
    broken = {"messages": 5}
    assert fallback_body(STORE, broken, "anthropic", LastSent(RENDERED, 1)).request is broken
    raw = decode(b'{"messages": []}', "anthropic")
    assert fallback_bytes(STORE, raw, LastSent([b"{"], 0)).request is raw


def test_bytes_of_the_original_go_out_untouched() -> None:
    raw = b'{ "messages" : [ {"role":"user", "content":"hi"} ] , "x" : 1.0 }'
    found = fallback_bytes(STORE, decode(raw, "anthropic"))
    assert found.request.body() == raw


def test_host_neutral_messages_fall_back_alike() -> None:
    said = [
        Message("user", (Text("do"),)),
        Message("assistant", (ToolCall("a", "Read", "{}"),)),
        Message("tool", (ToolResult("a", "long"),)),
        Message("assistant", (Thinking("hm", "s"), Text("so"))),
        Message("user", (Text("more"),)),
    ]
    rendered = [*said[:2], Message("tool", (ToolResult("a", "stub"),))]
    received = with_messages(NOTHING_RECEIVED, [*rendered, said[3]])
    facts = Facts(BOUND, received)
    last = fallback_messages(STORE, said, LastSent(rendered, 3), facts)
    assert (last.used, last.request) == ("last", [*rendered, *said[3:]])
    assert fallback_messages(STORE, said, None, facts).used == "cleaned"
    assert fallback_messages(STORE, said, None).request is said


@given(BODIES, st.integers(0, 12), st.integers(0, 12))
def test_the_fallback_is_never_worse_than_the_original(given_body: tuple[Api, Wire], kept: int, said: int) -> None:
    api, original = given_body
    key = "input" if api == "openai_responses" else "messages"
    last: LastSent[Any] = LastSent(original[key][:kept], said)
    found = fallback_body(STORE, original, api, last)
    assert check_body(found.request, api) == []
    raw = json.dumps(original).encode()
    items = [json.dumps(one).encode() for one in original[key][:kept]]
    in_bytes = fallback_bytes(STORE, decode(raw, api), LastSent(items, said))
    assert (in_bytes.used, in_bytes.reasons) == (found.used, found.reasons)
    assert json.loads(in_bytes.request.body()) == found.request


@given(anthropic_bodies(), anthropic_bodies())
def test_a_rendering_of_another_conversation_never_makes_it_worse(theirs: Wire, ours: Wire) -> None:
    received = with_request(NOTHING_RECEIVED, ours, "anthropic")
    facts = Facts(BOUND, received)
    found = fallback_body(STORE, theirs, "anthropic", LastSent(ours["messages"], len(theirs["messages"]) // 2), facts)
    own = {one.rule for one in check_body(theirs, "anthropic", BOUND, received)}
    assert {one.rule for one in check_body(found.request, "anthropic", BOUND, received)} <= own
