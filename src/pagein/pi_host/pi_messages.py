"""Messages of pi's session file as pagein's messages."""

import json
from collections.abc import Iterator
from typing import Any

from pagein.model.messages import Block, Image, Message, Other, Text, Thinking, ToolCall, ToolResult, Usage
from pagein.pi_host.protocol import Row
from pagein.policy.clients.profile import accesses

_MILLISECONDS = 1000


def message_of(entry: Row, cwd: str) -> Message | None:
    """Return an entry's message in the model's window, or None.

    cwd: folder of the session; paths inside it are reported relative to it.
    """
    match entry.get("type"):
        case "message":
            return _message(_object(entry.get("message")), cwd)
        case "compaction":
            return Message("user", (Text(str(entry.get("summary") or ""), "compact_summary"),))
        case "branch_summary":
            return Message("user", (Text(str(entry.get("summary") or ""), "branch_summary"),))
        case "custom_message":
            return Message("user", _blocks(entry.get("content"), cwd, str(entry.get("customType") or "custom")))
        case _:
            return None


def text_of(content: object) -> str:
    """Return the text of a result's content."""
    return "".join(str(row.get("text") or "") for row in _rows(content) if row.get("type") == "text")


def _message(row: Row, cwd: str) -> Message | None:
    at, role = _at(row), row.get("role")
    if role == "assistant":
        usage = _object(row.get("usage"))
        blocks, model = _blocks(row.get("content"), cwd), str(row.get("model") or "") or None
        return Message("assistant", blocks, at, model=model, usage=_usage(usage) if usage else None)
    if role == "toolResult":
        return Message("tool", (_result(row, cwd),), at)
    if role == "bashExecution":
        ran = f"$ {row.get('command') or ''}\n{row.get('output') or ''}"
        return None if row.get("excludeFromContext") is True else Message("user", (Text(ran, "bash_execution"),), at)
    if role in ("custom", "user"):
        injected = str(row.get("customType") or "custom") if role == "custom" else None
        return Message("user", _blocks(row.get("content"), cwd, injected), at)
    return None


def _result(row: Row, cwd: str) -> ToolResult:
    images = tuple(one for one in _blocks(row.get("content"), cwd) if isinstance(one, Image))
    words, name = text_of(row.get("content")), str(row.get("toolName") or "")
    return ToolResult(str(row.get("toolCallId") or ""), words, name, row.get("isError") is True, images)


def _blocks(content: object, cwd: str, injected: str | None = None) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(content, injected),)
    return tuple(_block(row, cwd, injected) for row in _rows(content))


def _block(row: Row, cwd: str, injected: str | None) -> Block:
    match row.get("type"):
        case "text":
            return Text(str(row.get("text") or ""), injected)
        case "thinking":
            signature = row.get("thinkingSignature")
            signed = signature if isinstance(signature, str) else None
            return Thinking(str(row.get("thinking") or ""), signed, row.get("redacted") is True)
        case "toolCall":
            name, arguments = str(row.get("name") or ""), json.dumps(row.get("arguments") or {}, ensure_ascii=False)
            return ToolCall(str(row.get("id") or ""), name, arguments, accesses(name, arguments, cwd))
        case "image":
            data = str(row.get("data") or "")
            return Image(str(row.get("mimeType") or ""), len(data), data)
        case kind:
            return Other(str(kind), json.dumps(row, ensure_ascii=False))


def _usage(row: Row) -> Usage:
    fresh, read, written, output = (_count(row.get(name)) for name in ("input", "cacheRead", "cacheWrite", "output"))
    return Usage(fresh=fresh, read=read, written=written, output=output)


def _at(row: Row) -> float | None:
    told = row.get("timestamp")
    return told / _MILLISECONDS if isinstance(told, int | float) and not isinstance(told, bool) else None


def _count(value: object) -> int:
    return max(0, int(value)) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _rows(content: object) -> Iterator[dict[str, Any]]:
    return (row for row in content if isinstance(row, dict)) if isinstance(content, list) else iter(())
