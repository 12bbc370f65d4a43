"""Every wire format keeps the contract, and no other name is taken for a format."""

import json
from typing import Any

import pytest

from pagein.errors import BadInput
from pagein.providers import vendors
from pagein.providers.wire import FORMATS, format_named
from pagein.simulator import formats as simulator_formats
from pagein.simulator.formats import simulated_format
from pagein.testing.wire_format import WireFormatContract, WireSample

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def body(**fields: object) -> bytes:
    """A request as a client writes it: with spaces, which pagein would not write."""
    return json.dumps(fields, indent=1).encode()


class TestAnthropicMessages(WireFormatContract):
    @pytest.fixture
    def sample(self) -> WireSample:
        use = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.txt"}}
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "answer"}
        messages = [
            {"role": "user", "content": "question"},
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result, {"type": "text", "text": "and now?"}]},
        ]
        tools = [{"name": "read", "description": "read", "input_schema": SCHEMA}]
        whole = body(model="claude-sonnet-4-5", max_tokens=9, system="be brief", tools=tools, messages=messages)
        return WireSample(
            "anthropic", whole, (1, 0), (2, 0), {"M1": {"messages": messages[:2]}, "M2": {"messages": messages[2:]}}
        )


class TestOpenaiChat(WireFormatContract):
    @pytest.fixture
    def sample(self) -> WireSample:
        call = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.txt"}'}}
        messages = [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "question"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "answer"},
            {"role": "user", "content": "and now?"},
        ]
        tools = [{"type": "function", "function": {"name": "read", "description": "read", "parameters": SCHEMA}}]
        whole = body(model="gpt-5.1", tools=tools, messages=messages)
        return WireSample(
            "openai_chat", whole, (2, 0), (3, 0), {"C1": {"messages": messages[:3]}, "C2": {"messages": messages[3:]}}
        )


class TestOpenaiResponses(WireFormatContract):
    @pytest.fixture
    def sample(self) -> WireSample:
        items = [
            {"type": "message", "role": "user", "content": "question"},
            {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"path": "a.txt"}'},
            {"type": "function_call_output", "call_id": "call_1", "output": "answer"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and now?"}]},
        ]
        tools = [{"type": "function", "name": "read", "description": "read", "parameters": SCHEMA}]
        whole = body(model="gpt-5.1", instructions="be brief", tools=tools, input=items)
        return WireSample(
            "openai_responses", whole, (1, 0), (2, 0), {"R1": {"input": items[2:]}, "R2": {"input": items[:2]}}
        )


class TestGemini(WireFormatContract):
    @pytest.fixture
    def sample(self) -> WireSample:
        call = {"functionCall": {"id": "call_1", "args": {"path": "a.txt"}, "name": "read"}, "thoughtSignature": "c2ln"}
        answer = {"functionResponse": {"name": "read", "response": {"output": "answer"}, "id": "call_1"}}
        contents = [
            {"parts": [{"text": "question"}], "role": "user"},
            {"parts": [call], "role": "model"},
            {"parts": [answer, {"text": "and now?"}], "role": "user"},
        ]
        read = {"name": "read", "description": "read", "parametersJsonSchema": SCHEMA}
        whole = body(
            contents=contents,
            systemInstruction={"parts": [{"text": "be brief"}], "role": "user"},
            tools=[{"functionDeclarations": [read]}, {"googleSearch": {}}],
            generationConfig={"temperature": 1},
        )
        broken: dict[str, dict[str, Any]] = {
            "G1": {"contents": contents[1:]},
            "G2": {"contents": contents[2:]},
            "G3": {"contents": [contents[0], {"role": "model", "parts": [call, call]}, contents[2]]},
            "G6": {"contents": [{"role": "user", "parts": []}]},
            "G7": {"contents": contents[:1], "toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
            "G8": {"contents": contents[:1], "cachedContent": "cachedContents/1", "tools": []},
        }
        return WireSample("gemini_generate_content", whole, (1, 0), (2, 0), broken)


def test_every_format_is_checked() -> None:
    assert len(FORMATS) == len(WireFormatContract.__subclasses__())


def test_the_simulated_provider_has_every_format() -> None:
    assert [one.name for one in simulator_formats.FORMATS] == [one.name for one in FORMATS]
    assert [one.option for one in simulator_formats.FORMATS] == list(vendors.FORMATS)


@pytest.mark.parametrize("name", ["", "Anthropic", "openai", "anthropic_messages", "gemini?"])
def test_an_unknown_name_is_refused_with_the_known_ones(name: str) -> None:
    for find in (format_named, simulated_format):
        with pytest.raises(BadInput) as told:
            find(name)
        assert repr(name) in str(told.value)
        assert all(one.name in str(told.value) for one in FORMATS)
