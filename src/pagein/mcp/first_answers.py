"""Answer MCP requests without the SDK: the handshake, and the lists that never change between starts.

Clients put the lists into their prompts, or wait for them before they start.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from pagein import __version__
from pagein.mcp.object_resources import TEMPLATES
from pagein.mcp.offered_prompts import prompts_for
from pagein.mcp.offered_tools import INSTRUCTIONS, McpTool

HANDSHAKES: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocol versions that begin with a handshake, the newest last."""
STATELESS: Final = ("2026-07-28",)
"""Protocol versions without a handshake: each request says its version."""
VERSION_FIELD: Final = "io.modelcontextprotocol/protocolVersion"
SERVER_FIELD: Final = "io.modelcontextprotocol/serverInfo"
FRESH_MS: Final = 24 * 3600 * 1000
"""Milliseconds for which clients may keep the lists: they change with pagein's version or settings alone."""

Message: TypeAlias = dict[str, Any]

_CAPABILITIES: Final = {"prompts": {"listChanged": False}, "resources": {}, "tools": {"listChanged": False}}
_BAD_PARAMS: Final = -32602
_DISCOVERED: Final = {
    "supportedVersions": list(STATELESS),
    "capabilities": _CAPABILITIES,
    "instructions": INSTRUCTIONS,
}


class FirstAnswers:
    """The answers that need no SDK."""

    def __init__(self, tools: tuple[McpTool, ...]) -> None:
        self._names = frozenset(one.name for one in tools)
        self._prompts = {one.name: one for one in prompts_for(self._names)}
        self._lists: Mapping[str, Message] = {
            "tools/list": {"tools": [one.definition for one in tools]},
            "prompts/list": {"prompts": [one.definition for one in self._prompts.values()]},
            "resources/list": {"resources": []},
            "resources/templates/list": {"resourceTemplates": [dict(one) for one in TEMPLATES]},
        }

    def answer(self, message: Mapping[str, Any]) -> Message | None:
        """Return the response to a request; None for other messages, and for a version that the SDK must refuse."""
        method, params = message.get("method"), message.get("params")
        if "id" not in message or not isinstance(params, dict | None):
            return None
        params = params or {}
        meta = params.get("_meta")
        version = meta.get(VERSION_FIELD) if isinstance(meta, dict) else None
        if method == "initialize" and isinstance(params.get("protocolVersion"), str):
            return _response(message, self._initialized(params["protocolVersion"]))
        if version is not None and version not in STATELESS:
            return None
        if method == "prompts/get":
            return self._prompt(message, params, version)
        found = self._lists.get(str(method))
        if found is not None and params.get("cursor") is not None:
            return _refused(message, f"{method} has one page, so there is no cursor {params['cursor']!r:.40}")
        if method == "server/discover" and version is not None:
            found = _DISCOVERED
        return None if found is None else _response(message, _with_envelope(found, version))

    def _prompt(self, message: Mapping[str, Any], params: Message, version: str | None) -> Message:
        name, given = params.get("name"), params.get("arguments") or {}
        prompt = self._prompts.get(name) if isinstance(name, str) else None
        if prompt is None:
            return _refused(message, f"there is no prompt {name!r}; the prompts are {', '.join(self._prompts)}")
        if not isinstance(given, dict) or not all(isinstance(given.get(one), str) for one in prompt.arguments):
            return _refused(message, f"the prompt {name} needs texts as its arguments {', '.join(prompt.arguments)}")
        told = {"type": "text", "text": prompt.text(given, self._names)}
        result: Message = {"description": prompt.description, "messages": [{"role": "user", "content": told}]}
        return _response(message, result if version is None else {**result, "resultType": "complete"})

    def _initialized(self, version: str) -> Message:
        return {
            "protocolVersion": version if version in HANDSHAKES else HANDSHAKES[-1],
            "capabilities": _CAPABILITIES,
            "serverInfo": {"name": "pagein", "version": __version__},
            "instructions": INSTRUCTIONS,
        }


def _with_envelope(result: Message, version: str | None) -> Message:
    """Return a result with the additional fields of stateless protocol versions."""
    if version is None:
        return result
    return {
        **result,
        "resultType": "complete",
        "ttlMs": FRESH_MS,
        "cacheScope": "private",
        "_meta": {SERVER_FIELD: {"name": "pagein", "version": __version__}},
    }


def _response(request: Mapping[str, Any], result: Message) -> Message:
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


def _refused(request: Mapping[str, Any], text: str) -> Message:
    return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": _BAD_PARAMS, "message": text}}
