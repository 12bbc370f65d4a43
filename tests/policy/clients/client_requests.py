"""Requests of each client, as it would send them, from a talk about files."""

import json
from typing import Any

from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.providers.validity import Api

SCHEMAS: dict[str, dict[str, list[str]]] = {
    "claude-code": {
        "Read": ["file_path", "offset", "limit"],
        "Write": ["file_path", "content"],
        "Edit": ["file_path", "old_string", "new_string"],
        "Bash": ["command"],
    },
    "codex": {"exec_command": ["cmd", "workdir"], "apply_patch": ["input"]},
    "opencode": {
        "read": ["filePath", "offset", "limit"],
        "edit": ["filePath", "oldString", "newString"],
        "bash": ["command"],
    },
    "pi": {"read": ["path", "offset", "limit"], "edit": ["path", "edits"], "bash": ["command"], "write": ["path"]},
    "gemini-cli": {
        "read_file": ["file_path", "start_line", "end_line"],
        "replace": ["file_path", "instruction", "old_string", "new_string"],
        "run_shell_command": ["command", "dir_path"],
    },
}
APIS: dict[str, Api] = {
    "claude-code": "anthropic",
    "codex": "openai_responses",
    "opencode": "openai_chat",
    "pi": "openai_chat",
    "gemini-cli": "openai_chat",  # as a translating proxy would send it
}


def body(client: str, said: list[Message]) -> bytes:
    """The request in which this was said."""
    api = APIS[client]
    schemas = {
        name: {"type": "object", "properties": {one: {"type": "string"} for one in arguments}}
        for name, arguments in SCHEMAS[client].items()
    }
    if api == "anthropic":
        tools: list[dict[str, Any]] = [{"name": name, "input_schema": one} for name, one in schemas.items()]
        made: dict[str, Any] = {"model": "claude-sonnet-4-5", "max_tokens": 99, "tools": tools}
        return json.dumps({**made, "messages": [_anthropic(one) for one in said]}).encode()
    if api == "openai_chat":
        tools = [{"type": "function", "function": {"name": name, "parameters": one}} for name, one in schemas.items()]
        return json.dumps({"model": "gpt-5", "tools": tools, "messages": [_chat(one) for one in said]}).encode()
    tools = [{"type": "function", "name": name, "parameters": one} for name, one in schemas.items()]
    return json.dumps({"model": "gpt-5", "tools": tools, "input": [_item(one) for one in said]}).encode()


def _anthropic(message: Message) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    for block in message.blocks:
        match block:
            case Text():
                parts.append({"type": "text", "text": block.text})
            case ToolCall():
                parts.append(
                    {"type": "tool_use", "id": block.id, "name": block.name, "input": json.loads(block.arguments)}
                )
            case ToolResult():
                parts.append({"type": "tool_result", "tool_use_id": block.call_id, "content": block.text})
            case _:
                raise AssertionError(block)
    return {"role": "assistant" if message.role == "assistant" else "user", "content": parts}


def _chat(message: Message) -> dict[str, Any]:
    [block] = message.blocks
    match block:
        case ToolCall():
            call = {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": block.arguments}}
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        case ToolResult():
            return {"role": "tool", "tool_call_id": block.call_id, "content": block.text}
        case Text():
            return {"role": message.role, "content": block.text}
        case _:
            raise AssertionError(block)


def _item(message: Message) -> dict[str, Any]:
    [block] = message.blocks
    match block:
        case ToolCall():
            return {"type": "function_call", "call_id": block.id, "name": block.name, "arguments": block.arguments}
        case ToolResult():
            return {"type": "function_call_output", "call_id": block.call_id, "output": block.text}
        case Text():
            kind = "output_text" if message.role == "assistant" else "input_text"
            return {"type": "message", "role": message.role, "content": [{"type": kind, "text": block.text}]}
        case _:
            raise AssertionError(block)


def results_in(client: str, sent: bytes) -> dict[str, str]:
    """The text of each result in a request, by its call."""
    value = json.loads(sent)
    if client == "claude-code":
        blocks = [block for one in value["messages"] for block in one["content"]]
        return {one["tool_use_id"]: one["content"] for one in blocks if one["type"] == "tool_result"}
    if client == "codex":
        return {one["call_id"]: one["output"] for one in value["input"] if one["type"] == "function_call_output"}
    return {one["tool_call_id"]: one["content"] for one in value["messages"] if one["role"] == "tool"}
