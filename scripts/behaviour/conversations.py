"""Recorded sessions as plain values, and the requests that their clients would send, in three wire formats.

Nothing here comes from pagein: what goes in must stay the same while pagein changes.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

Format: TypeAlias = Literal["anthropic", "openai_chat", "openai_responses"]
Json: TypeAlias = dict[str, Any]

FORMATS: Final[tuple[Format, ...]] = ("anthropic", "openai_chat", "openai_responses")
MODELS: Final[dict[Format, tuple[str, str]]] = {
    "anthropic": ("claude-sonnet-4-5", "claude-opus-5-5"),
    "openai_chat": ("gpt-5.1", "gpt-5.6-sol"),
    "openai_responses": ("gpt-5.6-sol", "gpt-5.5"),
}
_MARK: Final = {"cache_control": {"type": "ephemeral"}}


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a message. kind: `text`, `thinking`, `call`, `result`. text: what is said, thought or answered, or the arguments."""

    kind: str
    text: str
    id: str = ""
    name: str = ""
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """A message. usage: tokens of the call that made it, as new, read, written and output."""

    role: str
    parts: tuple[Part, ...]
    at: float | None = None
    usage: tuple[int, int, int, int] | None = None


@dataclass(frozen=True, slots=True)
class Talk:
    """A recorded session. begins: places at which its host began the window anew. plain: all that its reader gave, as JSON lines."""

    name: str
    said: tuple[Said, ...]
    begins: tuple[int, ...] = ()
    plain: bytes = b""

    def calls(self, most: int) -> list[int]:
        """Places of answers of the model, some of them where there are more than so many."""
        places = [place for place, one in enumerate(self.said) if one.role == "assistant" and self.prompt(place)]
        return places[:: max(len(places) // most, 1)]

    def prompt(self, place: int) -> list[Said]:
        """What the model was asked with before it gave the answer at this place, in turns of user and model."""
        begin = max((one for one in self.begins if one < place), default=0)
        said = self.said[begin:place]
        asked = {part.id for one in said for part in one.parts if part.kind == "call"}
        answered = {part.id for one in said for part in one.parts if part.kind == "result"} & asked
        turns: list[Said] = []
        for one in said:
            role = "user" if one.role == "tool" else one.role
            parts = tuple(kept for part in one.parts if (kept := _kept(part, asked, answered)) is not None)
            if not parts or (role == "assistant" and not any(turn.role == "user" for turn in turns)):
                continue
            if turns and turns[-1].role == role:
                turns[-1] = replace(turns[-1], parts=(*turns[-1].parts, *parts))
            else:
                turns.append(Said(role, parts))
        turns = [_results_first(one) for one in turns]
        return turns if turns and turns[-1].role == "user" else []

    def tools(self) -> list[str]:
        """Names of all tools that are called."""
        return sorted({part.name for one in self.said for part in one.parts if part.kind == "call"})

    def changed(self, place: int, words: str) -> "Talk":
        """The same, but the user says more in front of the answer at this place."""
        at = max((one for one in range(place) if self.said[one].role == "user"), default=None)
        if at is None:
            return self
        more = replace(self.said[at], parts=(*self.said[at].parts, Part("text", words)))
        return replace(self, said=(*self.said[:at], more, *self.said[at + 1 :]))


def _kept(part: Part, asked: set[str], answered: set[str]) -> Part | None:
    if part.kind == "result" and part.id not in asked:
        return Part("text", part.text or "(empty)")
    if part.kind == "call" and part.id not in answered:
        return None
    return None if part.kind in ("text", "thinking") and not part.text.strip() else part


def _results_first(turn: Said) -> Said:
    """A user's turn with its results in front, one for each call, as Messages wants them."""
    results = {part.id: part for part in turn.parts if part.kind == "result"}
    return replace(turn, parts=(*results.values(), *(part for part in turn.parts if part.kind != "result")))


def body(talk: Talk, place: int, wire: Format, model: str, more_tools: Sequence[Json] = ()) -> bytes:
    """The client's request for the answer at this place."""
    turns = talk.prompt(place)
    system = "\n\n".join(part.text for one in turns if one.role == "system" for part in one.parts) or "You work."
    turns = [one for one in turns if one.role != "system"]
    fields: Json = {"model": model, "stream": True}
    if wire == "anthropic":
        tools = [{"name": one, "description": one, "input_schema": {"type": "object"}} for one in talk.tools()]
        fields |= {"max_tokens": 8192, "system": [{"type": "text", "text": system, **_MARK}]}
        fields |= {"messages": _messages(turns)}
    elif wire == "openai_chat":
        tools = [
            {"type": "function", "function": {"name": one, "parameters": {"type": "object"}}} for one in talk.tools()
        ]
        fields |= {"messages": [{"role": "system", "content": system}, *_chat(turns)]}
    else:
        tools = [{"type": "function", "name": one, "parameters": {"type": "object"}} for one in talk.tools()]
        fields |= {"instructions": system, "input": _input(turns), "store": False}
    if tools or more_tools:
        fields["tools"] = [*tools, *more_tools]
    return json.dumps(fields).encode()


def reply(usage: tuple[int, int, int, int], wire: Format) -> Json:
    """What the provider says of the tokens that a call took."""
    new, read, written, out = usage
    if wire == "anthropic":
        told = {"cache_read_input_tokens": read, "cache_creation_input_tokens": written}
        return {"usage": {"input_tokens": new, "output_tokens": out, **told}}
    prompt = new + read + written
    if wire == "openai_chat":
        details = {"prompt_tokens_details": {"cached_tokens": read}}
        return {"usage": {"prompt_tokens": prompt, "completion_tokens": out, "total_tokens": prompt + out, **details}}
    details = {"input_tokens_details": {"cached_tokens": read}}
    return {"usage": {"input_tokens": prompt, "output_tokens": out, "total_tokens": prompt + out, **details}}


def _arguments(text: str) -> Json:
    try:
        value = json.loads(text)
    except ValueError:
        return {"text": text}
    return value if isinstance(value, dict) else {"value": value}


def _messages(turns: Sequence[Said]) -> list[Json]:
    items: list[Json] = []
    for number, turn in enumerate(turns):
        content = [_message_block(part, f"signed-{number}-{place}") for place, part in enumerate(turn.parts)]
        items.append({"role": turn.role, "content": content})
    if items:
        items[-1]["content"][-1] |= _MARK
    return items


def _message_block(part: Part, signature: str) -> Json:
    match part.kind:
        case "thinking":
            return {"type": "thinking", "thinking": part.text, "signature": signature}
        case "call":
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": _arguments(part.text)}
        case "result":
            more = {"is_error": True} if part.is_error else {}
            return {"type": "tool_result", "tool_use_id": part.id, "content": part.text, **more}
        case _:
            return {"type": "text", "text": part.text}


def _chat(turns: Sequence[Said]) -> list[Json]:
    items: list[Json] = []
    for turn in turns:
        words = "\n".join(part.text for part in turn.parts if part.kind == "text")
        results = [part for part in turn.parts if part.kind == "result"]
        items += [{"role": "tool", "tool_call_id": part.id, "content": part.text} for part in results]
        calls = [
            {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": part.text}}
            for part in turn.parts
            if part.kind == "call"
        ]
        if turn.role == "assistant":
            items.append({"role": "assistant", "content": words or None, **({"tool_calls": calls} if calls else {})})
        elif words:
            items.append({"role": turn.role, "content": words})
    return [one for one in items if one.get("content") is not None or one.get("tool_calls")]


def _input(turns: Sequence[Said]) -> list[Json]:
    items: list[Json] = []
    for number, turn in enumerate(turns):
        kind = "output_text" if turn.role == "assistant" else "input_text"
        for place, part in enumerate(turn.parts):
            match part.kind:
                case "thinking":
                    summary = [{"type": "summary_text", "text": part.text[:200]}]
                    name = f"rs_{number}_{place}"
                    items.append({"type": "reasoning", "id": name, "summary": summary, "encrypted_content": f"e{name}"})
                case "call":
                    items.append(
                        {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": part.text}
                    )
                case "result":
                    items.append({"type": "function_call_output", "call_id": part.id, "output": part.text})
                case _:
                    content = [{"type": kind, "text": part.text}]
                    items.append({"type": "message", "role": turn.role, "content": content})
    return items
