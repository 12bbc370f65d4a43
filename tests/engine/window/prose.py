"""Conversations that fill a small window, in any wire format, and a reader of their requests."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pagein.errors import NotRecallable
from pagein.providers.validity import Api

Wire = dict[str, Any]
ID = re.compile(r"\[pagein: (pg-[0-9a-f]{8}-[0-9a-f]{8}) \|")
MODELS: dict[Api, str] = {
    "anthropic": "claude-haiku-4-5",
    "openai_chat": "gpt-5.1",
    "openai_responses": "gpt-5.1",
}


@dataclass
class Talk:
    """A client that keeps its history. lists: whether the user's words are lists of blocks; instructions: what its host says first."""

    api: Api
    lists: bool = False
    instructions: str = ""
    items: list[Wire] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    calls: int = 0

    def user(self, *texts: str) -> None:
        """The user says something, in one or several blocks."""
        told = (self.instructions, *texts) if self.instructions and not self.items else texts
        kind = "input_text" if self.api == "openai_responses" else "text"
        self.texts += told
        if self.lists or len(told) > 1:
            self.items.append({"role": "user", "content": [{"type": kind, "text": text} for text in told]})
        else:
            self.items.append({"role": "user", "content": told[0]})

    def model(self, text: str) -> None:
        """The model answers."""
        self.texts.append(text)
        if self.api == "openai_responses":
            content = [{"type": "output_text", "text": text, "annotations": []}]
            self.items.append({"type": "message", "role": "assistant", "content": content})
        elif self.lists and self.api == "anthropic":
            self.items.append({"role": "assistant", "content": [{"type": "text", "text": text}]})
        else:
            self.items.append({"role": "assistant", "content": text})

    def tool(self, said: str, result: str, *, is_error: bool = False, command: str = "make", words: str = "") -> None:
        """The model calls a tool, which answers. words: of the user's, said along with that."""
        self.calls += 1
        self.texts += [words] if words else []
        name, arguments = f"call_{self.calls}", {"command": command}
        self.texts += [said, result]
        text = json.dumps(arguments)
        match self.api:
            case "anthropic":
                call = {"type": "tool_use", "id": name, "name": "Bash", "input": arguments}
                answer: Wire = {"type": "tool_result", "tool_use_id": name, "content": result}
                answer |= {"is_error": True} if is_error else {}
                self.items.append({"role": "assistant", "content": [{"type": "text", "text": said}, call]})
                told = [{"type": "text", "text": words}] if words else []
                self.items.append({"role": "user", "content": [answer, *told]})
            case "openai_chat":
                call = {"id": name, "type": "function", "function": {"name": "Bash", "arguments": text}}
                self.items.append({"role": "assistant", "content": said, "tool_calls": [call]})
                self.items.append({"role": "tool", "tool_call_id": name, "content": result})
            case "openai_responses":
                content = [{"type": "output_text", "text": said, "annotations": []}]
                self.items.append({"type": "message", "role": "assistant", "content": content})
                self.items.append({"type": "function_call", "call_id": name, "name": "Bash", "arguments": text})
                self.items.append({"type": "function_call_output", "call_id": name, "output": result})
        if words and self.api != "anthropic":
            self.items.append({"role": "user", "content": words})

    def body(self, count: int | None = None) -> bytes:
        """The request of the first so many items, of all by default."""
        items = self.items[:count]
        fields: Wire = {"model": MODELS[self.api]}
        match self.api:
            case "anthropic":
                fields |= {"max_tokens": 1000, "system": "be good", "messages": items}
            case "openai_chat":
                fields |= {"messages": [{"role": "system", "content": "be good"}, *items]}
            case "openai_responses":
                fields |= {"instructions": "be good", "input": items, "store": False}
        return json.dumps(fields).encode()


def items_of(body: bytes, api: Api) -> list[Wire]:
    """The messages of a request."""
    found: list[Wire] = json.loads(body)["input" if api == "openai_responses" else "messages"]
    return found


def strings(value: object) -> Iterable[str]:
    """All texts in a request."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)


def sides(items: Sequence[Wire]) -> list[str]:
    """Who speaks, item by item; answers of tools count as the user's, and what follows on one side as one."""
    found: list[str] = []
    for item in items:
        kind = item.get("type", "message")
        if item.get("role") in ("system", "developer"):
            continue
        is_model = item.get("role") == "assistant" or kind == "function_call"
        found.append("model" if is_model else "user")
    return found


def reachable(items: Sequence[Wire], recall: Callable[[str], str]) -> set[str]:
    """All texts that a reader of a request finds: those in it, and those in what its handles bring back, and so on."""
    found = set(strings(list(items)))
    seen: set[str] = set()
    waiting = [name for text in found for name in ID.findall(text)]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            text = recall(name)
        except NotRecallable:  # quoted by the user, and nobody's
            continue
        found.add(text)
        waiting += ID.findall(text)
    return found


def lost(talk: Talk, items: Sequence[Wire], recall: Callable[[str], str]) -> list[str]:
    """What was said and is found nowhere, byte for byte."""
    found = reachable(items, recall)
    return [text for text in talk.texts if not any(text in one for one in found)]
