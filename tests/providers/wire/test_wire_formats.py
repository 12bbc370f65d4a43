import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.log.repaired_messages import repair_messages
from tests.model.conversations import TEXTS, WILD, valid

from pagein.errors import BadInput, HostError
from pagein.model.json_text import _scan, array_items, object_fields
from pagein.model.messages import Image, Message, Other, Text, Thinking, ToolCall, ToolResult
from pagein.providers.validity import Api
from pagein.providers.wire import WireRequest, check_body, decode, render

APIS: tuple[Api, ...] = ("anthropic", "openai_chat", "openai_responses")
KEYS: Mapping[Api, str] = {"anthropic": "messages", "openai_chat": "messages", "openai_responses": "input"}

SPACE = st.sampled_from(["", " ", "\n", "\t ", "\r\n  "])
NUMBERS = st.sampled_from(["0", "-1", "1.0", "1e5", "1.50", "12345678901234567890123", "0.1", "1E-7"])
# Without quotes and backslashes, which are put in on purpose, as escapes.
PLAIN = st.text(st.characters(exclude_characters='"\\', exclude_categories=["Cs", "Cc"]), max_size=8)
ESCAPES = st.sampled_from(["\\n", "\\u00e9", "\\/", '\\"', "\\\\", "\\ud83d\\ude00", "\\ud800", "\\udfff x"])


@st.composite
def strings(draw: st.DrawFn) -> str:
    """JSON text of a string, with escapes as no encoder of ours would write them."""
    return '"' + "".join(draw(st.lists(PLAIN | ESCAPES, max_size=4))) + '"'


@st.composite
def objects(draw: st.DrawFn, fields: list[tuple[str, str]], values: st.SearchStrategy[str]) -> str:
    """JSON text of an object with these fields in any order, unknown ones among them, and white space anywhere."""
    unknown = [(f"x{number}", draw(values)) for number in range(draw(st.integers(0, 2)))]
    parts = draw(st.permutations([*fields, *unknown]))
    gap = draw(SPACE)
    return "{" + gap + ",".join(f'{gap}"{name}"{gap}:{gap}{value}{gap}' for name, value in parts) + "}"


VALUES: st.SearchStrategy[str] = st.recursive(
    strings() | NUMBERS | st.sampled_from(["true", "false", "null", "[]", "{}"]),
    lambda inner: st.lists(inner, max_size=2).map(lambda items: "[ " + " ,".join(items) + "]"),
    max_leaves=4,
)


@st.composite
def wire_items(draw: st.DrawFn, api: Api) -> str:
    """JSON text of one message, often with a tool result in it."""
    text = draw(strings())
    if api == "openai_responses":
        kinds = [
            [("type", '"function_call_output"'), ("call_id", '"a"'), ("output", text)],
            [("type", '"function_call"'), ("call_id", '"a"'), ("name", '"Bash"'), ("arguments", '"{}"')],
            [("role", '"user"'), ("content", text)],
            [("type", '"reasoning"'), ("summary", "[]"), ("encrypted_content", text)],
            [("type", '"item_reference"'), ("id", text)],
        ]
        return draw(objects(draw(st.sampled_from(kinds)), VALUES))
    if api == "openai_chat":
        kinds = [
            [("role", '"tool"'), ("tool_call_id", '"a"'), ("content", text)],
            [("role", '"tool"'), ("tool_call_id", '"a"'), ("content", '[{"type":"text","text":' + text + "}]")],
            [("role", '"user"'), ("content", text)],
            [
                ("role", '"assistant"'),
                ("content", "null"),
                ("tool_calls", '[{"id":"a","function":{"name":"f","arguments":"{}"}}]'),
            ],
        ]
        return draw(objects(draw(st.sampled_from(kinds)), VALUES))
    blocks = [
        [("type", '"text"'), ("text", text)],
        [("type", '"tool_result"'), ("tool_use_id", '"a"'), ("content", text)],
        [("type", '"tool_result"'), ("tool_use_id", '"a"'), ("content", '[ {"type":"text","text":' + text + "} ]")],
        [("type", '"tool_result"'), ("tool_use_id", '"a"')],
        [("type", '"tool_use"'), ("id", '"a"'), ("name", '"f"'), ("input", '{"b":1.0,"a":' + text + "}")],
        [("type", '"thinking"'), ("thinking", text), ("signature", text)],
    ]
    content = [draw(objects(fields, VALUES)) for fields in draw(st.lists(st.sampled_from(blocks), max_size=3))]
    shape = draw(st.sampled_from(["[" + " , ".join(content) + "]", text]))
    return draw(objects([("role", draw(st.sampled_from(['"user"', '"assistant"']))), ("content", shape)], VALUES))


@st.composite
def bodies(draw: st.DrawFn, api: Api) -> tuple[bytes, list[bytes]]:
    """A request body, and its messages as they stand in it."""
    items = [draw(wire_items(api)) for _ in range(draw(st.integers(0, 4)))]
    gap = draw(SPACE)
    text = draw(objects([("model", '"m"'), (KEYS[api], f"[{gap}" + f"{gap},{gap}".join(items) + f"{gap}]")], VALUES))
    return (gap + text + gap).encode(), [item.encode() for item in items]


def results(request: WireRequest) -> list[tuple[int, int]]:
    return [
        (place, index)
        for place, message in enumerate(request.messages)
        for index, block in enumerate(message.blocks)
        if isinstance(block, ToolResult)
    ]


@pytest.mark.parametrize("api", APIS)
@given(data=st.data())
def test_an_unchanged_body_is_sent_on_as_the_very_bytes_that_came(api: Api, data: st.DataObject) -> None:
    body, items = data.draw(bodies(api))
    request = decode(body, api)
    assert request.body() == body
    assert list(request.items) == items
    assert len(request.messages) == len(items)


@pytest.mark.parametrize("api", APIS)
@given(data=st.data())
def test_replacing_a_result_leaves_every_other_byte_of_every_message(api: Api, data: st.DataObject) -> None:
    body, items = data.draw(bodies(api))
    request = decode(body, api)
    if not results(request):
        assert request.with_results({}) is request
        return
    place, index = data.draw(st.sampled_from(results(request)))
    stub = data.draw(TEXTS)
    changed = request.with_results({(place, index): stub})
    assert [one for number, one in enumerate(changed.items) if number != place] == [
        one for number, one in enumerate(items) if number != place
    ]
    again = decode(changed.body(), api)
    assert again.items == changed.items
    assert {name: raw for name, raw in again.fields.items() if name != KEYS[api]} == {
        name: raw for name, raw in request.fields.items() if name != KEYS[api]
    }
    assert list(again.fields) == list(request.fields)
    before, after = request.messages[place], again.messages[place]
    assert len(before.blocks) == len(after.blocks)
    for number, (one, other) in enumerate(zip(before.blocks, after.blocks, strict=True)):
        if number != index:
            assert one == other
            continue
        assert isinstance(one, ToolResult)
        assert isinstance(other, ToolResult)
        assert other.text == stub
        assert (other.call_id, other.is_error, other.name) == (one.call_id, one.is_error, one.name)
    _keeps_all_but_the_content(api, items[place], changed.items[place], index)


def _keeps_all_but_the_content(api: Api, before: bytes, after: bytes, index: int) -> None:
    old, new = object_fields(before, "old"), object_fields(after, "new")
    if api == "anthropic":
        old_blocks, new_blocks = (array_items(one["content"], "content") for one in (old, new))
        assert [one for place, one in enumerate(old_blocks) if place != index] == [
            one for place, one in enumerate(new_blocks) if place != index
        ]
        _keeps_all_but(object_fields(old_blocks[index], "old"), object_fields(new_blocks[index], "new"), "content")
    _keeps_all_but(old, new, "output" if api == "openai_responses" else "content")


def _keeps_all_but(old: dict[str, bytes], new: dict[str, bytes], name: str) -> None:
    assert [one for one in new if one != name] == [one for one in old if one != name]
    assert {one: raw for one, raw in new.items() if one != name} == {
        one: raw for one, raw in old.items() if one != name
    }


@given(VALUES, VALUES)
def test_the_scanner_finds_what_msgspec_finds(one: str, other: str) -> None:
    array = f" [ {one} ,{other}] ".encode()
    assert [value for _, value in _scan(array, "[", "]", "it")] == array_items(array, "it")
    text = f'{{"a" : {one},"\\u0062":{other} }}'.encode()
    assert dict(_scan(text, "{", "}", "it")) == object_fields(text, "it") == {"a": one.encode(), "b": other.encode()}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[",
        b"{]",
        b'{"a"}',
        b'{"a":}',
        b'{"a":1,}',
        b"[1,]",
        b"[1 2]",
        b"[1] x",
        b"\xff",
        b"nul",
        b"[" * 50_000,
    ],
)
def test_what_is_no_json_is_bad_input(text: bytes) -> None:
    for read in (object_fields, array_items):
        with pytest.raises(BadInput, match="the thing"):
            read(text, "the thing")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("items", ["7", '"x"', "{}", "[7]", "[[]]", '["a"]'])
def test_a_body_whose_messages_are_none_names_them(api: Api, items: str) -> None:
    body = f'{{"model":"m","{KEYS[api]}":{items}}}'.encode()
    if api == "openai_responses" and items == '"x"':
        request = decode(body, api)
        assert request.messages == (Message("user", (Text("x"),)),)
        assert request.body() == body
        return
    with pytest.raises(BadInput, match=KEYS[api]):
        decode(body, api)


def test_a_place_without_a_tool_result_cannot_be_replaced() -> None:
    request = decode(b'{"messages":[{"role":"user","content":"hi"}]}', "anthropic")
    for place in ((0, 0), (0, 1), (1, 0), (-1, 0)):
        with pytest.raises(HostError, match="not a tool result"):
            request.with_results({place: "stub"})


def test_anthropic_blocks_are_understood() -> None:
    content: list[dict[str, Any]] = [
        {"type": "text", "text": "hi"},
        {"type": "tool_use", "id": "a", "name": "Read", "input": {"z": 1, "a": [1.0]}},
        {
            "type": "tool_result",
            "tool_use_id": "a",
            "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}],
            "is_error": True,
        },
        {
            "type": "tool_result",
            "tool_use_id": "b",
            "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}],
        },
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "document", "title": "t"},
    ]
    body = json.dumps(
        {"system": [{"type": "text", "text": "be good"}], "messages": [{"role": "assistant", "content": content}]}
    )
    request = decode(body.encode(), "anthropic")
    assert request.system == (Message("system", (Text("be good"),)),)
    text, call, result, picture, thought, hidden, other = request.messages[0].blocks
    assert text == Text("hi")
    assert call == ToolCall("a", "Read", '{"z":1,"a":[1.0]}')
    assert result == ToolResult("a", "xy", is_error=True)
    assert isinstance(picture, ToolResult)
    assert [one.media_type for one in picture.images] == ["image/png"]
    assert thought == Thinking("hm", "sig")
    assert hidden == Thinking("", "xyz", redacted=True)
    assert isinstance(other, Other)
    assert json.loads(other.json) == content[-1]


def test_chat_messages_are_understood() -> None:
    messages = [
        {"role": "developer", "content": "be good"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:x"}}],
        },
        {
            "role": "assistant",
            "content": "ok",
            "reasoning_content": "hm",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "c", "type": "custom", "custom": {"name": "patch", "input": "***"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "done"},
        {"role": "assistant", "function_call": {"name": "old", "arguments": "{}"}},
        {"role": "function", "name": "old", "content": "older"},
    ]
    request = decode(json.dumps({"messages": messages}).encode(), "openai_chat")
    assert [one.role for one in request.messages] == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert isinstance(request.messages[1].blocks[1], Image)
    assert request.messages[2].blocks == (
        Thinking("hm"),
        Text("ok"),
        ToolCall("a", "f", "{}"),
        ToolCall("c", "patch", '"***"'),
    )
    assert request.messages[3].blocks == (ToolResult("a", "done"),)
    assert request.messages[4].blocks == (ToolCall("old", "old", "{}"),)
    assert request.messages[5].blocks == (ToolResult("old", "older", "old"),)


def test_responses_items_are_understood() -> None:
    items = [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "news"}]},
        {"role": "user", "content": [{"type": "input_image", "image_url": "data:x"}]},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": "xyz",
        },
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "done"},
        {"type": "custom_tool_call", "call_id": "b", "name": "apply_patch", "input": "***"},
        {"type": "custom_tool_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "ok"}]},
        {"type": "local_shell_call", "call_id": "c", "action": {"command": ["ls"]}},
        {"type": "local_shell_call_output", "id": "c", "output": "files"},
        {"type": "web_search_call", "id": "ws_1"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "bye"}, {"type": "refusal", "refusal": "no"}],
        },
    ]
    request = decode(json.dumps({"instructions": "be good", "input": items}).encode(), "openai_responses")
    assert request.system == (Message("system", (Text("be good"),)),)
    blocks = [block for message in request.messages for block in message.blocks]
    assert blocks[0] == Text("news")
    assert blocks[2] == Thinking("hm", "xyz")
    assert [block.id for block in blocks if isinstance(block, ToolCall)] == ["a", "b", "c"]
    assert [(block.call_id, block.text) for block in blocks if isinstance(block, ToolResult)] == [
        ("a", "done"),
        ("b", "ok"),
        ("c", "files"),
    ]
    assert blocks[-2:] == [Text("bye"), Text("no")]
    assert check_body(json.loads(request.body()), "openai_responses") == []


@pytest.mark.parametrize("api", APIS)
@given(valid())
def test_what_is_rendered_is_valid_and_says_the_same(api: Api, messages: list[Message]) -> None:
    body = render(messages, api, model="m")
    assert check_body(body, api) == []
    request = decode(json.dumps(body).encode(), api)

    def told(some: tuple[Message, ...] | list[Message]) -> list[object]:
        blocks = [block for message in some for block in message.blocks]
        return [(block.call_id, block.text) if isinstance(block, ToolResult) else block for block in blocks]

    assert told([*request.system, *request.messages]) == told(messages) or api == "openai_responses"
    assert {str(one) for one in told(list(request.messages))} <= {str(one) for one in told(messages)}


@pytest.mark.parametrize("api", APIS)
@given(WILD)
def test_rendering_never_fails_and_is_json(api: Api, messages: list[Message]) -> None:
    body = render(repair_messages(messages)[0], api, model="m")
    assert json.loads(json.dumps(body)) == body
    assert next(iter(body)) == "model"


def test_a_rendered_request_grows_only_at_its_end() -> None:
    grown = [
        Message("user", (Text("hi"),)),
        Message("assistant", (ToolCall("a", "f", "{}"),)),
        Message("tool", (ToolResult("a", "done"),)),
        Message("assistant", (Text("ok"),)),
        Message("user", (Text("more"),)),
    ]
    for api in APIS:
        short, long = (render(some, api, model="m")[KEYS[api]] for some in (grown[:3], grown))
        assert long[: len(short)] == short
