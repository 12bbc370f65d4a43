"""Pieces of request bodies for the tests of validity."""

from typing import Any

Wire = dict[str, Any]


def use(name: str, **more: object) -> Wire:
    return {"type": "tool_use", "id": name, "name": "f", "input": {}, **more}


def result(name: str, **more: object) -> Wire:
    return {"type": "tool_result", "tool_use_id": name, "content": "x", **more}


def text(words: str = "hi", **more: object) -> Wire:
    return {"type": "text", "text": words, **more}


def thought(signature: str, words: str = "hm", **more: object) -> Wire:
    return {"type": "thinking", "thinking": words, "signature": signature, **more}


def user(*blocks: Wire) -> Wire:
    return {"role": "user", "content": list(blocks)}


def model(*blocks: Wire) -> Wire:
    return {"role": "assistant", "content": list(blocks)}


def system(words: str = "note") -> Wire:
    return {"role": "system", "content": words}


def marked(ttl: str | None = None) -> Wire:
    return {"cache_control": {"type": "ephemeral", **({"ttl": ttl} if ttl else {})}}


def call(name: str, **more: object) -> Wire:
    return {"type": "function_call", "call_id": name, "name": "f", "arguments": "{}", **more}


def output(name: str, **more: object) -> Wire:
    return {"type": "function_call_output", "call_id": name, "output": "x", **more}


def reasoning(name: str, **more: object) -> Wire:
    return {"type": "reasoning", "id": name, "summary": [], **more}


def said(words: str = "hi", **more: object) -> Wire:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": words, **more}]}


ASK = user(text())


def without_thinking(body: Wire) -> Wire | None:
    """The Messages body without any thinking; None where the model is within a tool loop, whose thinking must stay."""
    spoken = [place for place, one in enumerate(body["messages"]) if one["role"] == "user" and not _answers(one)]
    if any(_is_thinking(block) for one in body["messages"][max(spoken, default=0) :] for block in _blocks(one)):
        return None
    messages = []
    for one in body["messages"]:
        blocks = [block for block in _blocks(one) if not _is_thinking(block)]
        messages.append({**one, "content": blocks or [text("-")]} if len(blocks) < len(_blocks(one)) else one)
    return {**body, "messages": messages}


def _blocks(message: Wire) -> list[Wire]:
    return message["content"] if isinstance(message["content"], list) else []


def _is_thinking(block: Wire) -> bool:
    return block["type"] in ("thinking", "redacted_thinking")


def _answers(message: Wire) -> bool:
    return any(block["type"] == "tool_result" for block in _blocks(message))
