"""What is particular to Gemini: ids on one side or none, results sent twice, signatures, streams that end by a reason."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from tests.engine import wire_clients as clients
from tests.laws.test_client_requests import EAGER

import pagein
from pagein.gateway.http.routes import route
from pagein.model.messages import Other, ToolCall, ToolResult, Usage
from pagein.providers.prices.price_lookup import prices
from pagein.providers.wire import decode, format_named
from pagein.providers.wire.streams.event_stream import EventStream
from pagein.providers.wire.streams.model_reply import ModelReply
from pagein.providers.wire.tool_offers import ToolOffer, with_tools
from pagein.providers.wire.usage import usage_of

API = "gemini_generate_content"
FORM = format_named(API)


def content(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"parts": list(parts), "role": role}


def call(name: str, **more: object) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {"path": "a"}, **more}}


def answer(name: str, text: str, **more: object) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": {"output": text}, **more}}


def request(*contents: dict[str, Any], **fields: object) -> bytes:
    return json.dumps({"contents": contents, **fields}, indent=1).encode()


@pytest.mark.parametrize("ids", [({}, {}), ({"id": "x"}, {"id": "x"}), ({}, {"id": "5c52#0-0"}), ({"id": "x"}, {})])
def test_a_result_answers_its_call_whichever_side_has_an_id(ids: tuple[dict[str, str], dict[str, str]]) -> None:
    calls = content("model", call("read", **ids[0]), call("run"), call("read"))
    results = content("user", answer("run", "b"), answer("read", "a", **ids[1]), answer("read", "c"))
    _, said, told = decode(request(content("user", {"text": "q"}), calls, results), API).messages
    asked = [(block.id, block.name) for block in said.blocks if isinstance(block, ToolCall)]
    found = {block.call_id: block.text for block in told.blocks if isinstance(block, ToolResult)}
    assert [(name, found[made]) for made, name in asked] == [("read", "a"), ("run", "b"), ("read", "c")]


def test_a_result_that_a_client_sends_twice_is_one_result() -> None:
    one = answer("read", "a", id="x")
    body = request(content("user", {"text": "q"}), content("model", call("read", id="x")), content("user", one, one))
    told = decode(body, API).messages[2]
    assert [type(block) for block in told.blocks] == [ToolResult, Other]


def test_an_eviction_changes_the_text_of_a_result_and_no_other_byte() -> None:
    signed = {**call("read", id="x"), "thoughtSignature": "c2ln+/=="}
    part = {"functionResponse": {"id": "x", "name": "read", "response": {"output": "long", "more": 1}, "new": [1.0]}}
    body = request(content("user", {"text": "q"}), content("model", signed), content("user", part))
    read = decode(body, API)
    made = read.with_results({(2, 0): "stub"})
    assert made.items[1] == read.items[1]
    assert json.loads(made.items[2]) == json.loads(read.items[2].replace(b'"long"', b'"stub"'))


@pytest.mark.parametrize(
    ("response", "text", "made"),
    [
        ({"error": "gone"}, "gone", {"error": "stub"}),
        ({"content": [1]}, '{"content":[1]}', {"output": "stub"}),
        ({"output": {"a": 1}}, '{"output":{"a":1}}', {"output": "stub"}),
    ],
)
def test_a_response_of_any_form_has_a_text(response: object, text: str, made: object) -> None:
    part = {"functionResponse": {"name": "read", "response": response}}
    read = decode(request(content("user", {"text": "q"}), content("model", call("read")), content("user", part)), API)
    block = read.messages[2].blocks[0]
    assert isinstance(block, ToolResult)
    assert (block.text, block.is_error) == (text, "error" in json.dumps(response))
    changed = json.loads(read.with_results({(2, 0): "stub"}).items[2])
    assert changed["parts"][0]["functionResponse"]["response"] == made


def test_cached_tokens_are_part_of_the_prompt_and_thoughts_are_output() -> None:
    told = {"promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 5, "thoughtsTokenCount": 7}
    assert usage_of({"usageMetadata": told}, API) == Usage(fresh=40, read=60, output=12)
    assert usage_of({"usageMetadata": {"promptTokenCount": 9}}, API) == Usage(fresh=9)


def reply_to(*events: dict[str, Any]) -> ModelReply:
    reader, stream = FORM.answers.reader(), EventStream()
    for event in stream.feed(b"".join(b"data: " + json.dumps(one).encode() + b"\r\n\r\n" for one in events)):
        reader.take(event)
    return reader.reply()


def said(*parts: dict[str, Any], **more: object) -> dict[str, Any]:
    return {"candidates": [{"content": content("model", *parts), **more}]}


def test_a_stream_joins_texts_and_leaves_signed_parts_alone() -> None:
    signed = {"text": "", "thoughtSignature": "c2ln"}
    read = reply_to(
        said({"text": "hm", "thought": True}),
        said({"text": "a"}),
        said({"text": "b"}),
        said(signed, finishReason="STOP"),
    )
    assert read.finished
    turn = FORM.answers.turn(read, ())
    assert json.loads(turn.said[0])["parts"] == [{"text": "ab"}, signed]


def test_an_event_without_usage_does_not_take_the_usage_away() -> None:
    read = reply_to({**said({"text": "a"}), "usageMetadata": {"promptTokenCount": 9}}, said(finishReason="STOP"))
    assert read.usage == Usage(fresh=9)


def test_a_blocked_prompt_is_answered() -> None:
    read = reply_to({"promptFeedback": {"blockReason": "SAFETY"}})
    assert (read.finished, read.stop, read.message) == (True, "SAFETY", None)


def test_a_failure_in_mid_stream_is_an_event_that_clients_repeat_after() -> None:
    failed = FORM.answers.merger(("peek",)).failure(b"")
    assert json.loads(failed.removeprefix(b"data: "))["error"]["code"] == 503


@pytest.mark.parametrize(
    ("came", "told"),
    [
        (b'data: {"candidates":[{"content":{"parts":[{"text":"we', True),
        (b'data: {"candidates":[{"content":{"parts":[{"text":"well"}]}}]}\n\n', True),
        (b'data: {"candidates":[{"content":{"parts":[{"text":"well"}]},"finishReason":"STOP"}]}\n\n', False),
    ],
)
def test_a_stream_that_breaks_off_ends_with_an_error_and_no_torn_frame(came: bytes, *, told: bool) -> None:
    merger = FORM.answers.merger(("peek",))
    merger.take(came)
    frames = merger.broken()
    assert (b'"code":503' in frames) == told
    assert b'"we' not in frames


def test_functions_are_offered_in_the_clients_list_and_beside_it_without_one() -> None:
    offer = [ToolOffer("peek", "look")]
    own = [{"googleSearch": {}}, {"functionDeclarations": [{"name": "read"}]}]
    made = json.loads(with_tools({"tools": json.dumps(own).encode()}, API, offer)["tools"])
    assert [one["name"] for one in made[1]["functionDeclarations"]] == ["read", "peek"]
    made = json.loads(with_tools({"tools": json.dumps(own[:1]).encode()}, API, offer)["tools"])
    assert made[0] == {"googleSearch": {}}
    assert made[1]["functionDeclarations"][0]["name"] == "peek"


@pytest.mark.parametrize(
    ("fields", "may"),
    [
        ({}, True),
        ({"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}, False),
        ({"generationConfig": {"candidateCount": 2}}, False),
        ({"cachedContent": "cachedContents/1"}, False),
    ],
)
def test_recall_continues_a_request_whose_model_is_free_to_call(fields: dict[str, object], may: bool) -> None:  # noqa: FBT001
    assert FORM.tools.may_continue({name: json.dumps(one).encode() for name, one in fields.items()}) == may


@pytest.mark.parametrize(
    ("path", "api", "name"),
    [
        ("/v1beta/models/gemini-3-pro:generateContent", API, "generate_content"),
        ("/v1beta/models/gemini-3-pro:streamGenerateContent?key=k&alt=sse", API, "generate_content"),
        ("/v1beta/models/gemini-3-pro:streamGenerateContent", None, "other"),
        ("/v1beta/models/gemini-3-pro:countTokens", None, "count_tokens"),
        ("/v1beta/cachedContents", None, "other"),
        ("/v1beta/models", None, "other"),
        ("/upload/v1beta/files", None, "other"),
    ],
)
def test_paths_go_to_google_and_calls_that_can_be_read_are_calls(path: str, api: str | None, name: str) -> None:
    found = route("POST", path, {})
    assert (found.vendor, found.api, found.name, found.path) == ("google", api, name, path)
    assert found.model == ("gemini-3-pro" if api else "")


def test_nothing_is_evicted_before_the_users_next_words() -> None:
    with tempfile.TemporaryDirectory() as folder:
        engine = pagein.open(Path(folder) / "store.db", workspace=Path(folder), settings=EAGER)
        talk = clients.Conversation("do it")
        for at in range(6):
            talk = talk.then(clients.Turn("on it", ("word " * 200,), thinks=True))
            prepared = engine.prepare(clients.body(talk, API), API, at=10.0 * at, hint="one")
            assert prepared.opened is None
        talk = talk.then(clients.Turn("done", words="and now this"))
        prepared = engine.prepare(clients.body(talk, API), API, at=100.0, hint="one")
        assert prepared.opened is not None
        assert prepared.body.count(b"thoughtSignature") == 6
        engine.close()


def test_prices_that_were_not_found_are_marked() -> None:
    assert prices("gemini-3-flash-preview").read == 0.1
    assert "unknown" not in prices("gemini-3-flash-preview").source
    assert "price of a read unknown" in prices("gemini-3.5-flash-lite").source
    assert prices("gemini-4-argon").read == 0.05
    assert prices("gemini-2.5-pro").cache.min_prefix == 2048
    assert prices("gemini-3.1-pro-preview").cache.hit_probability < 1
