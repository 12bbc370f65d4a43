"""A client that works like Claude Code: it keeps the history, runs the calls in a folder, and sends their results."""

import json
import subprocess
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_TOOLS = {
    "Read": ("file_path",),
    "Write": ("file_path", "content"),
    "Edit": ("file_path", "old_string", "new_string"),
    "Bash": ("command",),
}
Turn = Sequence[dict[str, Any]]
"""The answer to one call of the model, as the simulated provider's scripts have it."""


def uses(tool: str, **args: object) -> dict[str, Any]:
    """A call in a script."""
    return {"tool": tool, "args": args}


@dataclass
class CodingClient:
    """A session of a coding agent.

    url: of the gateway. folder: where it works. name: of the session.
    """

    url: str
    folder: Path
    name: str
    messages: list[dict[str, Any]] = field(default_factory=list)
    rules: str = ""
    last: dict[str, Any] = field(default_factory=dict)

    def asks(self, words: str, *turns: Turn) -> str:
        """Say something, and go on until the model calls no tool. The script of its answers follows the words.

        Returns the last text.
        """
        script = json.dumps(list(turns))
        asked = [{"type": "text", "text": words}, {"type": "text", "text": _reminder(f"SCRIPT:{script}")}]
        self.messages.append({"role": "user", "content": asked})
        while True:
            content = self._answer()["content"]
            self.messages.append({"role": "assistant", "content": content})
            calls = [one for one in content if one["type"] == "tool_use"]
            if not calls:
                return "".join(one["text"] for one in content if one["type"] == "text")
            self.messages.append({"role": "user", "content": [self._result(one) for one in calls]})

    def _answer(self) -> dict[str, Any]:
        system = f"You write code. {self.rules}\nWorking directory: {self.folder}\n"
        self.last = {
            "model": "claude-sonnet-4-5",
            "max_tokens": 4000,
            "system": [{"type": "text", "text": system}],
            "tools": [_definition(name, names) for name, names in _TOOLS.items()],
            "messages": self.messages,
        }
        headers = {
            "Content-Type": "application/json",
            "x-api-key": "k",
            "anthropic-version": "2023-06-01",
            "x-pagein-session": self.name,
        }
        request = urllib.request.Request(f"{self.url}/v1/messages", json.dumps(self.last).encode(), headers)  # noqa: S310 - our own
        with urllib.request.urlopen(request, timeout=300) as answer:  # noqa: S310 - our own
            found: dict[str, Any] = json.load(answer)
        return found

    def _result(self, call: dict[str, Any]) -> dict[str, Any]:
        try:
            text, failed = self._carry_out(call["name"], call["input"]), False
        except (OSError, ValueError) as why:
            text, failed = f"<tool_use_error>{why}</tool_use_error>", True
        return {"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": failed}

    def _carry_out(self, tool: str, given: dict[str, str]) -> str:
        if tool == "Bash":
            done = subprocess.run(  # noqa: S602 - a script of the test
                given["command"], shell=True, cwd=self.folder, capture_output=True, text=True, check=False, timeout=60
            )
            return done.stdout if done.returncode == 0 else f"Exit code {done.returncode}\n{done.stdout}{done.stderr}"
        path = self.folder / given["file_path"]
        if tool == "Write":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(given["content"])
            return f"File created successfully at: {path}"
        text = path.read_text()
        if tool == "Edit":
            if text.count(given["old_string"]) != 1:
                raise ValueError("String to replace not found in file.")
            path.write_text(text.replace(given["old_string"], given["new_string"]))
            return f"The file {path} has been updated successfully."
        return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(text.split("\n"), 1))


def _reminder(text: str) -> str:
    return f"<system-reminder>\n{text}\n</system-reminder>"


def _definition(name: str, arguments: Sequence[str]) -> dict[str, Any]:
    schema = {"type": "object", "properties": {one: {"type": "string"} for one in arguments}, "required": [*arguments]}
    return {"name": name, "description": f"{name} something", "input_schema": schema}
