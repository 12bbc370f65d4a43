"""At a provider that clears results by itself, no marker may stand for such a result."""

from pathlib import Path
from typing import Any

import pytest

import pagein

LINES = "\n".join(f"{n:6}→line {n} of the file, with words of its own" for n in range(1, 201))
READ = {
    "name": "Read",
    "description": "Reads a file.",
    "input_schema": {
        "type": "object",
        "properties": {"file_path": {"type": "string"}, "offset": {"type": "number"}, "limit": {"type": "number"}},
        "required": ["file_path"],
    },
}
OTHERS = [{**READ, "name": name, "input_schema": {"type": "object"}} for name in ("Bash", "Edit", "Write", "TodoWrite")]


@pytest.mark.parametrize(
    ("edit", "second"),
    [("clear_thinking_20251015", "[readcache: unchanged, 200 lines]"), ("clear_tool_uses_20250919", LINES)],
)
def test_a_file_is_shown_again_where_the_provider_may_have_cleared_its_first_read(
    tmp_path: Path, edit: str, second: str
) -> None:
    request: dict[str, Any] = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "system": "You are Claude Code, Anthropic's official CLI for Claude.",
        "tools": [READ, *OTHERS],
        "context_management": {"edits": [{"type": edit}]},
        "messages": [{"role": "user", "content": "What is in it?"}],
    }
    with pagein.open(tmp_path / "store.db") as engine:
        session = engine.session("s", model="claude-sonnet-4-5")
        sent = []
        for number in range(2):
            session.prepare(request)
            name = f"toolu_{number}"
            call = {"type": "tool_use", "id": name, "name": "Read", "input": {"file_path": "/w/a.py"}}
            result = {"type": "tool_result", "tool_use_id": name, "content": LINES}
            more = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
            request = {**request, "messages": [*request["messages"], *more]}
            sent.append(session.prepare(request).request["messages"][-1]["content"][0]["content"])
    assert sent == [LINES, second]
