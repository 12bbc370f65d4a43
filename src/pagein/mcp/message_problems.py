"""The faults of a protocol message, in words that name the remedy."""

from collections.abc import Mapping
from typing import Any

INVALID, BAD_PARAMS = -32600, -32602
"""The protocol's codes of the two kinds of problems."""


def form_problem(message: object) -> str:
    """Return why this is no message of the protocol; "" for a message of the protocol."""
    if not isinstance(message, dict):
        return "Invalid request: a message is one JSON object; there are no batches"
    if "id" in message and not is_id(message["id"]):
        return "Invalid request: an id is a text or a whole number"
    if not isinstance(message.get("params", {}), dict):
        return "Invalid request: params must be an object"
    is_response = "result" in message or "error" in message
    if message.get("jsonrpc") != "2.0" or not (is_response or isinstance(message.get("method"), str)):
        return 'Invalid request: a message has "jsonrpc": "2.0" and a method, a text'
    return ""


def is_id(name: object) -> bool:
    """Return whether a request may have this id."""
    return isinstance(name, str | int) and not isinstance(name, bool)


def params_problem(message: Mapping[str, Any]) -> str:
    """Return what is wrong with the parameters of a message of the right form; "" if nothing is."""
    params = message.get("params") or {}
    match message.get("method"):
        case "tools/call" if not isinstance(params.get("name"), str):
            return 'tools/call has a "name", the text that names a tool'
        case "tools/call" if not isinstance(params.get("arguments"), dict | None):
            return 'tools/call has "arguments", an object'
        case "resources/read" if not isinstance(params.get("uri"), str):
            return 'resources/read has a "uri", a text such as pagein://object/ID'
    meta = params.get("_meta")
    if not isinstance(meta, dict | None):
        return "_meta is an object"
    token = (meta or {}).get("progressToken")
    return "" if isinstance(token, str | int | None) else "a progressToken is a text or a whole number"
