"""Choose the turn that answers a model call.

The choice depends on the request alone, so calls may come in any order and in parallel.

Rules of this file
------------------
1. A script in the prompt (`SCRIPT:` and JSON, or `SCRIPT@name`) has priority over the provider's own scripts; the last
   one counts.
2. The turn is the number of answers after the message with the script; without a script in the prompt, the number of
   answers.
3. Side requests of clients (titles, summaries, probes: no tools, or none although the script calls some) get a harmless
   answer.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pagein.errors import BadInput
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.simulator.model_call import ProviderCall
from pagein.simulator.script import Say, Script, ScriptCall, ScriptPart, Scripts, ScriptTurn, Think, script_from

UNSCRIPTED: Final = "ok (unscripted)"
EXHAUSTED: Final = "script exhausted"

_MARK: Final = re.compile(r"SCRIPT(?::\s*(?=\[|\\?\[)|@([\w.-]+))")
_SIDE: Final = re.compile(r"\btitles?\b|\bsummar|\bcompact|isNewTopic|^quota$", re.IGNORECASE)
_PLACEHOLDER: Final = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}")
_OUR_CALL: Final = re.compile(r"^(?:toolu|call)_([0-9a-f]{16})_\d+$")
_MODEL_SIDE: Final = "assistant"


@dataclass(frozen=True, slots=True)
class TurnChoice:
    """The choose_turn turn. index: its place in the script, -1 for an answer from outside the scripts."""

    turn: ScriptTurn
    index: int = -1


@dataclass(frozen=True, slots=True)
class _ScriptMatch:
    """A script and the messages after the script."""

    script: Script
    behind: Sequence[Message]


def choose_turn(asked: ProviderCall, scripts: Scripts) -> TurnChoice:
    """Choose the turn that answers a call, and fill in the captures."""
    try:
        found = _find_script(asked.messages, scripts)
    except BadInput as problem:
        return _plain_choice(f"the script in the prompt cannot be used: {problem}")
    if found is None and scripts.plain is not None:
        found = _ScriptMatch(scripts.plain, asked.messages)
    if found is None or _is_aside(asked, found.script):
        return _plain_choice(UNSCRIPTED)
    index = answers_in(found.behind)
    if index >= len(found.script.turns):
        return _plain_choice(EXHAUSTED)
    return TurnChoice(fill_turn(found.script.turns[index], asked.messages), index)


def answers_in(messages: Sequence[Message]) -> int:
    """Count the answers in some messages.

    Consecutive items of one answer count once, and so do items with the same tag in their call ids (Responses).
    """
    seen: set[str] = set()
    count = 0
    said_before = False
    for message in messages:
        is_said = message.role == _MODEL_SIDE
        if is_said and not said_before and not (tags := _tags(message)) & seen:
            count += 1
            seen |= tags
        elif is_said:
            seen |= _tags(message)
        said_before = is_said
    return count


def fill_turn(turn: ScriptTurn, messages: Sequence[Message]) -> ScriptTurn:
    """Fill the captures of a turn from the newest matching text. If a capture fails, use the turn's `otherwise`."""
    found: dict[str, str] = {}
    for name, pattern in turn.captures.items():
        match = next((match for text in _visible_texts(messages) if (match := re.search(pattern, text))), None)
        if match is None:
            other = turn.otherwise or ScriptTurn((Say(f"nothing to capture for {name}"),))
            return fill_turn(other, messages)
        found[name] = match[1] if match.re.groups else match[0]
    return replace(turn, said=tuple(_fill_content(one, found) for one in turn.said)) if found else turn


def _plain_choice(text: str) -> TurnChoice:
    return TurnChoice(ScriptTurn((Say(text),)))


def _find_script(messages: Sequence[Message], scripts: Scripts) -> _ScriptMatch | None:
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.role != "user":
            continue
        for block in reversed(message.blocks):
            marks = list(_MARK.finditer(block.text)) if isinstance(block, Text) else []
            if marks and isinstance(block, Text):
                return _ScriptMatch(_script_at(block.text, marks[-1], scripts), messages[place + 1 :])
    return None


def _script_at(text: str, mark: re.Match[str], scripts: Scripts) -> Script:
    if name := mark[1]:
        found = scripts.named.get(name)
        if found is None:
            raise BadInput(f"there is no script {name}; there are {', '.join(scripts.named) or 'none'}")
        return found
    rest = text[mark.end() :]
    # some clients escape their prompt once more
    for written in (rest, rest.replace('\\"', '"').replace("\\\\", "\\")):
        try:
            value, _ = json.JSONDecoder().raw_decode(written)
        except ValueError:
            continue
        return script_from(value)
    raise BadInput("what follows SCRIPT: is not JSON")


def _is_aside(asked: ProviderCall, script: Script) -> bool:
    return not asked.offers_tools and (script.calls_tools or _asks_for_a_title(asked.messages))


def _asks_for_a_title(messages: Sequence[Message]) -> bool:
    said = [block.text for message in messages for block in message.blocks if isinstance(block, Text)]
    ends = [said[0], said[-1]] if said else []
    return any(_SIDE.search(_without_script(text)) for text in ends)


def _tags(message: Message) -> set[str]:
    ids = (_OUR_CALL.match(block.id) for block in message.blocks if isinstance(block, ToolCall))
    return {match[1] for match in ids if match}


def _visible_texts(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the texts of a request outside the model's own messages, newest first, without scripts."""
    for message in reversed(messages):
        if message.role == _MODEL_SIDE:
            continue
        for block in reversed(message.blocks):
            if isinstance(block, Text):
                yield _without_script(block.text)
            elif isinstance(block, ToolResult):
                yield block.text


def _without_script(text: str) -> str:
    mark = _MARK.search(text)
    return text if mark is None else text[: mark.start()]


def _fill_content(one: ScriptPart, found: Mapping[str, str]) -> ScriptPart:
    match one:
        case Say():
            return Say(_with(one.text, found))
        case Think():
            return replace(one, text=_with(one.text, found))
        case ScriptCall():
            return replace(one, args=_value(one.args, found))


def _value(value: Any, found: Mapping[str, str]) -> Any:  # noqa: ANN401 - plain JSON of any shape
    if isinstance(value, str):
        return _with(value, found)
    if isinstance(value, Mapping):
        return {name: _value(one, found) for name, one in value.items()}
    return [_value(one, found) for one in value] if isinstance(value, list) else value


def _with(text: str, found: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: found.get(match[1], match[0]), text)
