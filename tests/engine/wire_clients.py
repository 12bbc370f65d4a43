"""Clients for property tests: one conversation, told in any wire format, with all the liberties that clients take."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from hashlib import blake2b
from typing import Any

from pagein.model.messages import ToolResult
from pagein.providers.validity import Api
from pagein.providers.wire import decode

Wire = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model said, calls and all, and what it was answered. results: their texts, one for each call; words: of the user."""

    said: str
    results: tuple[str, ...] = ()
    words: str = ""
    thinks: bool = False


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation up to the user's last words."""

    first: str
    turns: tuple[Turn, ...] = ()
    _marks: list[str] = field(default_factory=list, init=False, compare=False, repr=False)

    def then(self, turn: Turn) -> "Conversation":
        return replace(self, turns=(*self.turns, turn))

    def until(self, count: int) -> "Conversation":
        return replace(self, turns=self.turns[:count])

    def mark(self, place: int) -> str:
        """A word for what the model said in a turn: another one where anything before is other."""
        if not self._marks:
            self._marks.extend(_marks(self.first, self.turns))
        return self._marks[place]

    def ids(self, place: int) -> list[str]:
        """Names of the calls of one turn."""
        return [f"call_{self.mark(place)}_{number}" for number in range(len(self.turns[place].results))]


def _marks(first: str, turns: Sequence[Turn]) -> Iterator[str]:
    """The marks of all turns. Each is a digest of all before it, in one walk: so long conversations are told in linear time."""
    before = blake2b(f"[{json.dumps(first)}, [".encode(), digest_size=6)
    for place, turn in enumerate(turns):
        here = before.copy()
        here.update(f"], {json.dumps(turn.said)}, {len(turn.results)}, {json.dumps(turn.thinks)}]".encode())
        yield here.hexdigest()
        before.update(f"{', ' if place else ''}{json.dumps(astuple(turn))}".encode())


@dataclass(frozen=True, slots=True)
class Manner:
    """How a client tells a conversation. lists: content as lists and not strings; marks: how many blocks at the end are marked;
    marked_system: whether the system prompt is.
    """

    lists: bool = True
    marks: int = 1
    spaces: bool = False
    system: str = "be good"
    model: str = ""
    marked_system: bool = False


def body(talk: Conversation, api: Api, manner: Manner = Manner()) -> bytes:
    """The request of a conversation."""
    if api == "gemini_generate_content":
        return _gemini(talk, manner)
    items = {"anthropic": _anthropic, "openai_chat": _chat, "openai_responses": _responses}[api](talk, manner)
    model = manner.model or ("gpt-5.1" if api != "anthropic" else "claude-sonnet-4-5")
    fields: Wire = {"model": model, "stream": True}
    if api == "anthropic":
        system = [{"type": "text", "text": manner.system, "cache_control": {"type": "ephemeral"}}]
        told = system if manner.marked_system else manner.system
        fields |= {"max_tokens": 1000, "system": told, "messages": _marked(items, manner.marks)}
    elif api == "openai_chat":
        fields |= {"messages": [{"role": "system", "content": manner.system}, *items]}
    else:
        fields |= {"instructions": manner.system, "input": items, "store": False}
    separators = (", ", ": ") if manner.spaces else (",", ":")
    return json.dumps(fields, separators=separators).encode()


def answer(talk: Conversation) -> list[Wire]:
    """What the model said last, as the blocks of a Messages reply."""
    content: list[Wire] = _anthropic(talk, Manner())[-2]["content"]
    return content


def results_of(value: Mapping[str, Any], api: Api) -> dict[str, str]:
    """The texts of all results of a request, by the id of their call."""
    if api == "gemini_generate_content":  # its ids are made when a request is read
        messages = decode(json.dumps(value).encode(), api).messages
        blocks = [block for one in messages for block in one.blocks]
        return {block.call_id: block.text for block in blocks if isinstance(block, ToolResult)}
    found: dict[str, str] = {}
    for item in value["input" if api == "openai_responses" else "messages"]:
        if api == "openai_chat" and item["role"] == "tool":
            found[item["tool_call_id"]] = _text(item["content"])
        elif api == "openai_responses" and item.get("type") == "function_call_output":
            found[item["call_id"]] = _text(item["output"])
        elif api == "anthropic" and isinstance(item["content"], list):
            for block in item["content"]:
                if block["type"] == "tool_result":
                    found[block["tool_use_id"]] = _text(block["content"])
    return found


def _text(content: object) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)  # type: ignore[attr-defined]


def _content(text: str, manner: Manner, kind: str = "text") -> str | list[Wire]:
    return [{"type": kind, "text": text}] if manner.lists else text


def _anthropic(talk: Conversation, manner: Manner) -> list[Wire]:
    items: list[Wire] = [{"role": "user", "content": _content(talk.first, manner)}]
    for place, turn in enumerate(talk.turns):
        ids = talk.ids(place)
        thought = (
            [{"type": "thinking", "thinking": "hm", "signature": f"signed-{talk.mark(place)}"}] if turn.thinks else []
        )
        calls = [{"type": "tool_use", "id": name, "name": "Lookup", "input": {"b": 1, "a": name}} for name in ids]
        items.append({"role": "assistant", "content": [*thought, {"type": "text", "text": turn.said}, *calls]})
        results = [
            {"type": "tool_result", "tool_use_id": name, "content": _content(text, manner)}
            for name, text in zip(ids, turn.results, strict=True)
        ]
        words = [{"type": "text", "text": turn.words}] if turn.words or not results else []
        items.append({"role": "user", "content": [*results, *words]})
    return items


def _marked(items: list[Wire], count: int) -> list[Wire]:
    made = list(items)
    for place in range(max(0, len(made) - count), len(made)):
        content = made[place]["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        blocks[-1] = {**blocks[-1], "cache_control": {"type": "ephemeral"}}
        made[place] = {**made[place], "content": blocks}
    return made


def _chat(talk: Conversation, manner: Manner) -> list[Wire]:
    items: list[Wire] = [{"role": "user", "content": _content(talk.first, manner)}]
    for place, turn in enumerate(talk.turns):
        ids = talk.ids(place)
        calls = [
            {"id": name, "type": "function", "function": {"name": "lookup", "arguments": '{"b": 1}'}} for name in ids
        ]
        items.append({"role": "assistant", "content": turn.said, **({"tool_calls": calls} if calls else {})})
        items += [
            {"role": "tool", "tool_call_id": name, "content": _content(text, manner)}
            for name, text in zip(ids, turn.results, strict=True)
        ]
        if turn.words or not ids:
            items.append({"role": "user", "content": _content(turn.words, manner)})
    return items


def _responses(talk: Conversation, manner: Manner) -> list[Wire]:
    items: list[Wire] = [{"type": "message", "role": "user", "content": _content(talk.first, manner, "input_text")}]
    for place, turn in enumerate(talk.turns):
        ids = talk.ids(place)
        if turn.thinks:
            items.append({"type": "reasoning", "id": f"rs_{place}", "summary": [], "encrypted_content": "gAAA"})
        said = [{"type": "output_text", "text": turn.said, "annotations": []}]
        items.append({"type": "message", "role": "assistant", "content": said})
        items += [{"type": "function_call", "call_id": name, "name": "lookup", "arguments": '{"b": 1}'} for name in ids]
        items += [
            {"type": "function_call_output", "call_id": name, "output": _content(text, manner, "input_text")}
            for name, text in zip(ids, turn.results, strict=True)
        ]
        if turn.words or not ids:
            items.append({"role": "user", "content": _content(turn.words, manner, "input_text")})
    return items


def _gemini(talk: Conversation, manner: Manner) -> bytes:
    contents: list[Wire] = [{"role": "user", "parts": [{"text": talk.first}]}]
    for place, turn in enumerate(talk.turns):
        ids = talk.ids(place)
        calls: list[Wire] = [{"functionCall": {"name": "lookup", "args": {"b": 1, "a": name}}} for name in ids]
        if turn.thinks and calls:
            calls[0]["thoughtSignature"] = f"signed-{talk.mark(place)}"
        contents.append({"role": "model", "parts": [{"text": turn.said}, *calls]})
        results = [{"functionResponse": {"name": "lookup", "response": {"output": text}}} for text in turn.results]
        words = [{"text": turn.words}] if turn.words or not results else []
        contents.append({"role": "user", "parts": [*results, *words]})
    fields: Wire = {"contents": contents, "systemInstruction": {"parts": [{"text": manner.system}]}}
    return json.dumps(fields, separators=(", ", ": ") if manner.spaces else (",", ":")).encode()


def names_of(raw: Sequence[bytes], api: Api) -> list[str]:
    """What each message of a request says, marks aside."""
    from pagein.providers.wire.request_body import chain_name, message_of

    return [chain_name("", message_of(item, api, place)[0]) for place, item in enumerate(raw)]
