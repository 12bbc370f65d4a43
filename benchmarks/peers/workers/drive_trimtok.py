"""trimtok: each result once, when it comes in, under the tool name that trimtok knows; what was sent stays as it was."""

import importlib
import json
from collections.abc import Sequence
from itertools import count
from typing import Any

from benchmarks.peers.workers.serving import Facts, Message, Strategy, serve

_SHELL = frozenset({"Bash", "bash", "shell", "exec_command", "run_shell_command"})
_NAMES = {"Read": "read_file", "read": "read_file", "Grep": "search_files", "Glob": "search_files"}
_conversations = count()


def open_strategy(variant: str) -> Strategy:  # noqa: ARG001 -- there is but one
    """One trimtok session."""
    trimtok: Any = importlib.import_module("trimtok")
    session = f"bench-{next(_conversations)}"
    calls: dict[str, tuple[str, Any]] = {}
    sent: list[Message] = []

    def shortened(message: Message) -> Message:
        name, arguments = calls.get(str(message.get("tool_call_id")), ("tool", {}))
        text = message["content"]
        if not isinstance(text, str):
            return message
        if name in _SHELL:
            command = str(arguments.get("command") or arguments.get("cmd") or "")
            return {**message, "content": trimtok.compress_terminal(command, text, session_id=session)[0]}
        asked = {"path": arguments.get("file_path"), **arguments}
        short = trimtok.compress_tool_result(_NAMES.get(name, name), text, args=asked, session_id=session)[0]
        return {**message, "content": short}

    def strategy(messages: list[Message], facts: Facts) -> Sequence[Message]:  # noqa: ARG001 -- the shape of all strategies
        for message in messages[len(sent) :]:
            for call in message.get("tool_calls") or ():
                calls[call["id"]] = (call["function"]["name"], _object(call["function"]["arguments"]))
            sent.append(shortened(message) if message["role"] == "tool" else message)
        return sent

    return strategy


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


if __name__ == "__main__":
    serve(open_strategy, "trimtok")
