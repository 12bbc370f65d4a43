"""A client of Anthropic Messages whose model uses the provider's own tools, and what a reader finds in its requests."""

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pagein.engine.engine import Engine
from pagein.engine.prepared_request import PreparedRequest

Wire = dict[str, Any]
TOOLS: list[Wire] = [
    {"type": "web_search_20250305", "name": "web_search"},
    {"name": "Bash", "description": "runs", "input_schema": {"type": "object"}},
]
MODEL = "claude-sonnet-4-5"


def sealed(seed: str, count: int = 4000) -> str:
    """What only the provider reads."""
    return base64.b64encode((seed * count)[:count].encode()).decode()


def call(name: str, tool: str = "web_search", caller: str = "", **arguments: object) -> Wire:
    made: Wire = {
        "type": "server_tool_use",
        "id": name,
        "name": tool,
        "input": arguments or {"query": f"what is {name}"},
    }
    return {**made, "caller": {"type": "code_execution_20260120", "tool_id": caller}} if caller else made


def found(name: str, caller: str = "") -> Wire:
    """A search's result."""
    pages = [
        {
            "type": "web_search_result",
            "url": f"https://{name}.example/{number}",
            "title": f"{name}, page {number}",
            "encrypted_content": sealed(f"{name} {number} "),
            "page_age": "3 days ago",
        }
        for number in range(8)
    ]
    made: Wire = {"type": "web_search_tool_result", "tool_use_id": name, "content": pages}
    return {**made, "caller": {"type": "code_execution_20260120", "tool_id": caller}} if caller else made


def fetched(name: str, source: Wire | None = None) -> Wire:
    text = {"type": "text", "media_type": "text/plain", "data": f"the page of {name}\n" * 150}
    page = {"type": "document", "source": source or text, "title": f"Page of {name}", "citations": {"enabled": True}}
    content = {
        "type": "web_fetch_result",
        "url": f"https://{name}.example",
        "content": page,
        "retrieved_at": "2026-11-01",
    }
    return {"type": "web_fetch_tool_result", "tool_use_id": name, "content": content}


def ran(name: str, code: int = 0) -> Wire:
    content = {"type": "code_execution_result", "stdout": f"line of {name}\n" * 150, "stderr": "", "return_code": code}
    return {"type": "code_execution_tool_result", "tool_use_id": name, "content": {**content, "content": []}}


def asked_mcp(name: str) -> tuple[Wire, Wire]:
    use = {"type": "mcp_tool_use", "id": name, "name": "lookup", "server_name": "docs", "input": {"q": name}}
    content = [{"type": "text", "text": f"{name} is documented\n" * 120}]
    return use, {"type": "mcp_tool_result", "tool_use_id": name, "is_error": False, "content": content}


def cited(text: str, name: str) -> Wire:
    where = {"type": "web_search_result_location", "url": f"https://{name}.example/0", "title": "t", "cited_text": "c"}
    return {"type": "text", "text": text, "citations": [{**where, "encrypted_index": "RW8="}]}


def text(words: str) -> Wire:
    return {"type": "text", "text": words}


@dataclass
class ServedClient:
    """A client that says what it said before, and more, each time."""

    engine: Engine
    tools: list[Wire] = field(default_factory=lambda: list(TOOLS))
    said: list[Wire] = field(default_factory=list)
    sent: list[PreparedRequest] = field(default_factory=list)

    def asks(self, words: str = "go on") -> Wire:
        """The user's words, and the request."""
        self.said.append({"role": "user", "content": words})
        return self.send()

    def answers(self, *blocks: Wire) -> None:
        """What the model said."""
        self.said.append({"role": "assistant", "content": list(blocks)})

    def runs(self, name: str, result: str = "done") -> Wire:
        """A call of a tool of the client's own, its result, and the request."""
        self.answers({"type": "tool_use", "id": name, "name": "Bash", "input": {"command": name}})
        self.said.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": result}]})
        return self.send()

    def body(self) -> bytes:
        return json.dumps({"model": MODEL, "max_tokens": 900, "tools": self.tools, "messages": self.said}).encode()

    def send(self) -> Wire:
        made = self.engine.prepare(self.body(), "anthropic", at=None, hint="served")
        assert made.failure is None, made.failure
        self.sent.append(made)
        value = json.loads(made.body)
        assert isinstance(value, dict)
        return value


def blocks_of(body: Wire) -> Iterator[Wire]:
    """All blocks of a request."""
    for message in body["messages"]:
        content = message["content"]
        yield from [text(content)] if isinstance(content, str) else content


def served_in(body: Wire) -> list[str]:
    """The calls of the provider's tools whose results a request shows."""
    return [one["tool_use_id"] for one in blocks_of(body) if one["type"].endswith("_tool_result")]


def stubs_in(body: Wire) -> list[str]:
    """The stubs among the model's words."""
    content = [one["content"] for one in body["messages"] if one["role"] == "assistant"]
    words = [block.get("text", "") for blocks in content for block in blocks if isinstance(block, dict)]
    return [one for one in words if one.startswith("[pagein: ")]


def object_ids(stubs: Sequence[str]) -> list[str]:
    return [one.removeprefix("[pagein: ").split(" | ")[0] for one in stubs]
