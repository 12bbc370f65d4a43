"""Every host keeps the contract of hosts: the smallest one, and pi."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.pi_host.fake_pi import FakePi

import pagein
from pagein.engine.engine import Engine
from pagein.model.json_text import decode_json
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.pi_host.host import PiSettings
from pagein.ports import Hook
from pagein.testing.host_contract import FILES, HostContract, Opens
from pagein.testing.minimal_host import MinimalAdapter

HALF = {"tokens": 50_000, "window": 100_000}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pagein.open(tmp_path / "s.pagein", workspace=tmp_path) as made:
        yield made


class PiAdapter:
    """pi with its extension as a host, told of messages instead of entries."""

    def __init__(self, engine: Engine, folder: Path, hooks: Collection[Hook], name: str) -> None:
        self.hooks = frozenset(hooks)
        self._pi = FakePi(engine, folder, PiSettings(pages=True), name if "session" in hooks else "")
        self._pi.missing = {"context"} if "context" not in hooks else set()
        self._known: list[tuple[object, str]] = []
        self._details: dict[str, Any] = {}

    def follow(self, history: Sequence[object]) -> None:
        same = 0
        while same < min(len(history), len(self._known)) and history[same] == self._known[same][0]:
            same += 1
        self._known = self._known[:same]
        self._pi.leaf = self._known[-1][1] if same else None
        self._known += [(one, self._add(one)) for one in history[same:]]

    def context(self) -> Sequence[Message]:
        shown = iter(self._pi.request(HALF))
        return [
            replace(one, blocks=tuple(self._shown(block, shown) for block in one.blocks))
            for one, _ in self._known
            if isinstance(one, Message)
        ]

    def tools(self) -> frozenset[str]:
        offered = {one["name"] for one in self._pi.welcome["tools"] if one["active"]}
        return frozenset(offered) if "tools" in self.hooks else frozenset()

    def answer(self, name: str, arguments: Mapping[str, Any]) -> str:
        call = {"id": f"call_{len(self._pi.entries)}_{name}", "name": name, "input": dict(arguments)}
        return str(self._pi.ask("tool", call=call)["text"])

    def tool_ran(self, call: ToolCall, text: str) -> str:
        if "tool_events" not in self.hooks:
            return text
        told = {"id": call.id, "name": call.name, "input": decode_json(call.arguments.encode())}
        self._pi.ask("tool_call", call=told)
        patch = self._pi.ask("tool_result", call=told, text=text, details=None)
        self._details[call.id] = patch["details"]
        return text if patch["text"] is None else str(patch["text"])

    def _add(self, one: object) -> str:
        if not isinstance(one, Message):
            return self._pi.add("custom", customType="foreign", data=one)
        (block,) = one.blocks
        base: dict[str, Any] = {"role": one.role, "timestamp": 1}
        if isinstance(block, ToolCall):
            made = {"type": "toolCall", "id": block.id, "name": block.name}
            base["content"] = [{**made, "arguments": decode_json(block.arguments.encode())}]
        elif isinstance(block, ToolResult):
            told = {"role": "toolResult", "toolCallId": block.call_id, "toolName": block.name, "isError": False}
            text = [{"type": "text", "text": block.text}]
            base |= {**told, "content": text, "details": self._details.get(block.call_id)}
        else:
            assert isinstance(block, Text)
            base["content"] = block.text
        return self._pi.add("message", message=base)

    def _shown(self, block: Any, texts: Iterator[str]) -> Any:  # noqa: ANN401 - any block
        return replace(block, text=next(texts)) if isinstance(block, ToolResult) else block


class TestMinimalHost(HostContract):
    """The example of the contract."""

    @pytest.fixture
    def opens(self, engine: Engine, tmp_path: Path) -> Opens:
        return lambda hooks, name: MinimalAdapter(engine, name, hooks, str(tmp_path))


class TestPi(HostContract):
    """pi's extension and `pagein pi`."""

    @pytest.fixture
    def opens(self, engine: Engine, tmp_path: Path) -> Opens:
        return lambda hooks, name: PiAdapter(engine, tmp_path, hooks, name)


def test_a_pi_without_a_name_of_its_session_has_another_one_at_each_start(engine: Engine, tmp_path: Path) -> None:
    pi = FakePi(engine, tmp_path, PiSettings(pages=True), "")
    names = set()
    for _ in range(2):
        pi.restart("")
        names.add(pi.ask("begin", address="http://127.0.0.1:8790")["headers"]["x-pagein-session"])
    assert len(names) == 2
