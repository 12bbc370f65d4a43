"""The picture of a prompt is read from the bytes that went out, and holds each token once."""

import json

import pytest
from tests.gateway.test_serve import conversation

from pagein.gateway.pages.prompt_picture import SentPrompt, picture_of, text_of
from pagein.gateway.pages.sent_prompts import MOST_KEPT, SESSIONS, SentPrompts
from pagein.providers.validity import Api

MARK = {"cache_control": {"type": "ephemeral"}}


def sent(body: object, api: Api = "anthropic") -> SentPrompt:
    return SentPrompt(json.dumps(body).encode(), api, "claude-sonnet-4-5", 10.0, 4_000)


def test_every_part_has_its_kind_text_tokens_and_breakpoint() -> None:
    body = conversation(2) | {"system": [{"type": "text", "text": "You are careful. " * 50, **MARK}]}
    body["messages"][2]["content"][0] |= MARK  # type: ignore[index]
    picture = picture_of(sent(body))
    kinds = [one["kind"] for one in picture["parts"]]
    assert kinds == ["tools", "system", "user", "arguments", "results", "arguments", "results"]
    assert [one["breakpoint"] for one in picture["parts"]] == [0, 300, 0, 0, 300, 0, 0]
    assert picture["tokens"] == sum(one["tokens"] for one in picture["parts"]) > 0
    assert picture["counted"] == 4_000
    assert picture["parts"][4]["call"] == "toolu_0000"
    for part in picture["parts"]:
        text = text_of(sent(body), part["place"], part["block"])
        assert " ".join(part["title"].split()[-2:-1]) in " ".join(text.split()) + part["title"]
    assert text_of(sent(body), 2, 0) == body["messages"][2]["content"][0]["content"]  # type: ignore[index]
    assert text_of(sent(body), -1, 1) == "You are careful. " * 50
    assert text_of(sent(body), 99, 0) == text_of(sent(body), 0, 9) == ""


@pytest.mark.parametrize(
    ("api", "body"),
    [
        (
            "openai_chat",
            {
                "tools": [{"type": "function", "function": {"name": "Bash", "parameters": {}}}],
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "go on"},
                    {
                        "role": "assistant",
                        "content": "yes",
                        "tool_calls": [
                            {"id": "c", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
                        ],
                    },
                    {"role": "tool", "tool_call_id": "c", "content": "done\n" * 90},
                ],
            },
        ),
        (
            "openai_responses",
            {
                "instructions": "Be brief.",
                "tools": [{"type": "function", "name": "Bash", "parameters": {}}],
                "input": [
                    {"role": "user", "content": "go on"},
                    {"type": "function_call", "call_id": "c", "name": "Bash", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "c", "output": "done\n" * 90},
                ],
            },
        ),
    ],
)
def test_the_formats_of_other_vendors_have_the_same_kinds_of_parts(api: Api, body: object) -> None:
    parts = picture_of(sent(body, api))["parts"]
    assert {"tools", "system", "user", "arguments", "results"} <= {one["kind"] for one in parts}
    result = next(one for one in parts if one["kind"] == "results")
    assert text_of(sent(body, api), result["place"], result["block"]) == "done\n" * 90
    assert result["title"].startswith("Bash done")
    assert result["tokens"] > 50


def test_the_last_request_with_tools_is_kept_within_bounds_until_texts_are_erased() -> None:
    kept = SentPrompts()
    kept.add("one", sent(conversation(1)), has_tools=True)
    kept.add("one", sent({"messages": []}), has_tools=False)
    assert (found := kept.of("one")) is not None
    assert b"Bash" in found.body
    for number in range(SESSIONS):
        kept.add(f"s{number}", sent({"messages": []}), has_tools=True)
    assert kept.of("one") is None
    kept.add("large", SentPrompt(b" " * (MOST_KEPT + 1), "anthropic", "", 0.0), has_tools=True)
    assert kept.of("large") is not None
    assert kept.of("s63") is None
    kept.drop_erased(0)
    assert kept.of("large") is not None
    kept.drop_erased(1)
    assert kept.of("large") is None
