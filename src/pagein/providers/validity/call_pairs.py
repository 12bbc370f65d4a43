"""Check the pairing of calls and results, and the order of messages: rules M1-M8, M18, M19, M24, C1,
C2, R1, R2.

A rule reads every turn but reports only on turns from `since` on and on the turn before. So the check of a request that
extends a checked one costs only its new part. Texts are the providers' own if they are known.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from pagein.providers.validity.turns import PromptTurn, TurnPart, Turns, object_at, objects_at, recent, text_at

Found: TypeAlias = Iterator[tuple[TurnPart, str]]

UNANSWERED: Final = (
    "messages.{message}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. "
    "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
)
ORPHANED: Final = (
    "{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. "
    "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
)
TWICE: Final = "{place}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
CALLED_TWICE: Final = "{place}: `tool_use` ids must be unique"
SERVER_ORPHANED: Final = (
    "{place}: unexpected `tool_use_id` found in `{kind}` blocks: {id}. "
    "Each `{kind}` block must have a corresponding `server_tool_use` block before it."
)
SERVER_UNANSWERED: Final = (
    "{place}: `{name}` tool use with id `{id}` was found without a corresponding `{name}_tool_result` block"
)
SERVER_TOOL_GONE: Final = "{place}: `{name}` tool use with id `{id}` was found, but no {name} tool was provided"
NO_SOURCE: Final = "{place}: a citation points to {url}, which no search result before it has"
TOOLSET_NAME: Final = "{place}: the result of a member of {name} must carry the same toolset_name"
TOOLSET_CONTENT: Final = "{place}: the result of a member of {name} may hold text and images only, not {kind}"
NO_TEXT: Final = "messages: text content blocks must be non-empty"
BLANK_TEXT: Final = "messages: text content blocks must contain non-whitespace text"
NO_SYSTEM_TEXT: Final = "system: text content blocks must be non-empty"
NO_CONTENT: Final = (
    "messages.{message}: all messages must have non-empty content except for the optional final assistant message"
)
ENDS_BLANK: Final = "messages: final assistant content cannot end with trailing whitespace"
NO_MESSAGES: Final = "messages: at least one message is required"
FIRST_ROLE: Final = 'messages: first message must use the "user" role'
ALTERNATE: Final = (
    'messages: roles must alternate between "user" and "assistant", but found multiple "{role}" roles in a row'
)
NO_SYSTEM_ROLE: Final = "role 'system' is not supported on this model"
SYSTEM_PLACE: Final = "messages.{message}: a system message must {rule}"
NO_SUCH_TOOL: Final = "Tool reference '{name}' has no corresponding tool definition"
NOT_DEFERRED: Final = "{place}: tool_reference to `{name}`, whose definition does not have defer_loading: true"
ALL_DEFERRED: Final = "All tools have defer_loading set. At least one tool must be non-deferred."
CHAT_UNANSWERED: Final = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: {ids}"
)
CHAT_ORPHANED: Final = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'"
NO_CALL: Final = "No tool call found for function call output with call_id {id}."
NO_OUTPUT: Final = "No tool output found for function call {id}."

_TOOLSET_KINDS: Final = ("text", "image")


def of_kind(turn: PromptTurn, kind: str) -> list[TurnPart]:
    """The parts of one kind in a turn."""
    return [part for part in turn.parts if part.kind == kind]


def calls_of(turn: PromptTurn | None) -> list[TurnPart]:
    """The calls of an assistant turn; an empty list for the user's side."""
    return of_kind(turn, "call") if turn is not None and turn.side == "assistant" else []


def check_unanswered_calls(turns: Turns, since: int) -> Found:
    """M1: the very next message answers every call."""
    return _find_unanswered(turns, since, UNANSWERED)


def check_chat_unanswered_calls(turns: Turns, since: int) -> Found:
    """C1: tool messages that answer every call follow at once."""
    return _find_unanswered(turns, since, CHAT_UNANSWERED)


def _find_unanswered(turns: Turns, since: int, text: str) -> Found:
    for index, turn in recent(turns, since):
        calls = calls_of(turn)
        if not calls:
            continue
        after = turns.turns[index + 1] if index + 1 < len(turns.turns) else None
        answered = {part.id for part in of_kind(after, "result")} if after is not None and after.side == "user" else ()
        missing = [part for part in calls if part.id not in answered]
        ids = ", ".join(part.id for part in missing)
        yield from ((part, text.format(message=part.message, ids=ids)) for part in missing)


def check_orphan_results(turns: Turns, since: int) -> Found:
    """M2: every result answers a call of the message before."""
    yield from ((part, ORPHANED.format(place=part.place, id=part.id)) for part in _orphans(turns, since))


def check_chat_orphan_results(turns: Turns, since: int) -> Found:
    """C2: every tool message answers a call of the assistant message before."""
    yield from ((part, CHAT_ORPHANED) for part in _orphans(turns, since))


def _orphans(turns: Turns, since: int) -> Iterator[TurnPart]:
    for index, turn in recent(turns, since):
        results = of_kind(turn, "result")
        if results:
            calls = {part.id for part in calls_of(turns.turns[index - 1] if index else None)}
            yield from (part for part in results if part.id not in calls)


def check_result_order(turns: Turns, since: int) -> Found:
    """M3: results come first in their message. The provider uses the error text of M1."""
    for index, turn in recent(turns, since):
        other = False
        asked = turns.turns[index - 1].parts[0].message if index and turns.turns[index - 1].parts else 0
        for part in turn.parts:
            if part.kind != "result":
                other = True
            elif other:
                yield part, UNANSWERED.format(message=asked, ids=part.id)


def check_double_results(turns: Turns, since: int) -> Found:
    """M4: ids of calls and results are unique within a message.

    A repeated id in a later turn is not known to be refused.
    """
    for _, turn in recent(turns, since):
        for kind, text in (("result", TWICE), ("call", CALLED_TWICE)):
            seen: set[str] = set()
            for part in of_kind(turn, kind):
                if part.id in seen:
                    yield part, text.format(place=part.place, id=part.id)
                seen.add(part.id)


def check_server_tools(turns: Turns, since: int) -> Found:
    """M5: server tool results follow their call, and a pending server tool stays declared."""
    for index, turn in recent(turns, since):
        if turn.side != "assistant":
            continue
        for place, part in enumerate(turn.parts):
            if part.kind == "server_result" and not _has_server_call(turns, index, place, part.id):
                kind = str(part.wire.get("type"))
                yield part, SERVER_ORPHANED.format(place=part.place, kind=kind, id=part.id)
            elif part.kind == "server_call":
                yield from _find_pending(turns, index, part)


def _has_server_call(turns: Turns, index: int, place: int, name: str) -> bool:
    """Whether a server tool call came before the result: in the same turn, or in the previous turn, paused for it."""
    own = turns.turns[index].parts[:place]
    paused = next((turn for turn in reversed(turns.turns[:index]) if turn.side == "assistant"), None)
    return any(part.kind == "server_call" and part.id == name for part in [*own, *(paused.parts if paused else ())])


def _find_pending(turns: Turns, index: int, call: TurnPart) -> Found:
    """Yield the violation of a server call without an answer in its own turn."""
    if _has_server_result(turns.turns[index], call):
        return
    name = str(call.wire.get("name"))
    words = {"place": call.place, "name": name, "id": call.id}
    behind = turns.turns[index + 1 :]
    resumed = next((turn for turn in behind if turn.side == "assistant"), None)
    # a paused turn goes on without words of the user
    asked = next((turn for turn in behind if turn.side != "system"), None)
    interrupted = asked is not None and asked.side == "user" and any(part.kind != "result" for part in asked.parts)
    if interrupted or (resumed is not None and not _has_server_result(resumed, call)):
        yield call, SERVER_UNANSWERED.format(**words)
    elif resumed is None and name not in [one.get("name") for one in objects_at(turns.fields, "tools")]:
        yield call, SERVER_TOOL_GONE.format(**words)


def _has_server_result(turn: PromptTurn, call: TurnPart) -> bool:
    return any(part.kind == "server_result" and part.id == call.id for part in turn.parts)


def check_citations(turns: Turns, since: int) -> Found:
    """M24: a search result with the address of a citation stands before it. No provider says whether it takes a citation
    without its source.
    """
    for index in range(max(since - 1, 0), len(turns.turns)):
        for part in turns.turns[index].parts:
            if part.kind != "text" or not isinstance(part.source, Mapping) or not part.source.get("citations"):
                continue
            cited = objects_at(part.wire, "citations")
            urls = [str(one.get("url")) for one in cited if one.get("type") == "web_search_result_location"]
            yield from (
                (part, NO_SOURCE.format(place=part.place, url=url)) for url in urls if not _is_found(turns, index, url)
            )


def _is_found(turns: Turns, index: int, url: str) -> bool:
    results = (part.wire for turn in turns.turns[: index + 1] for part in turn.parts if part.kind == "server_result")
    return any(one.get("url") == url for result in results for one in objects_at(result, "content"))


def check_toolset_results(turns: Turns, since: int) -> Found:
    """M6: the result of a toolset member has the toolset's name, and only text and images."""
    for index, turn in recent(turns, since):
        calls = {part.id: part.wire.get("toolset_name") for part in calls_of(turns.turns[index - 1] if index else None)}
        for part in of_kind(turn, "result"):
            name = calls.get(part.id)
            if not name:
                continue
            if part.wire.get("toolset_name") != name:
                yield part, TOOLSET_NAME.format(place=part.place, name=name)
            kinds = [one.get("type") for one in objects_at(part.wire, "content")]
            strange = [kind for kind in kinds if kind not in _TOOLSET_KINDS]
            if strange:
                yield part, TOOLSET_CONTENT.format(place=part.place, name=name, kind=strange[0])


def check_empty_content(turns: Turns, since: int) -> Found:
    """M7: no empty message or text block, and no white space at the end of a final assistant message."""
    yield from ((part, NO_SYSTEM_TEXT) for part in turns.head if part.kind == "text" and part.source and not part.text)
    for index, turn in recent(turns, since):
        is_end = index == len(turns.turns) - 1 and turn.side == "assistant"
        if not turn.parts and not is_end:
            yield TurnPart("text", turn.first, 0), NO_CONTENT.format(message=turn.first)
        for part in of_kind(turn, "text"):
            if not part.text:
                yield part, NO_TEXT
            elif part.text.isspace():
                yield part, BLANK_TEXT
        last = turn.parts[-1] if turn.parts else None
        if is_end and last is not None and last.kind == "text" and last.text[-1:].isspace():
            yield last, ENDS_BLANK


def check_first_message(turns: Turns, since: int) -> Found:
    """M8: the first message is the user's; on legacy platforms, the sides alternate."""
    if since <= 1 and not turns.turns:
        yield TurnPart("text", 0, 0), NO_MESSAGES
    elif since <= 1 and turns.turns[0].side == "assistant":
        yield TurnPart("text", turns.turns[0].first, 0), FIRST_ROLE
    if turns.target.platform != "legacy":
        return
    for index, turn in recent(turns, since):
        if index and turns.turns[index - 1].side == turn.side:
            yield TurnPart("text", turn.first, 0), ALTERNATE.format(role=turn.side)


def check_system_messages(turns: Turns, since: int) -> Found:
    """M18: a system message in the conversation is at a permitted place, and accepted by the model."""
    for index, turn in recent(turns, since):
        if turn.side != "system":
            continue
        part = TurnPart("text", turn.first, 0)
        if "system messages" in turns.target.abilities.refuses:
            yield part, NO_SYSTEM_ROLE
        elif broken := _misplaced_system(turns.turns, index):
            yield part, SYSTEM_PLACE.format(message=turn.first, rule=broken)


def _misplaced_system(turns: Sequence[PromptTurn], index: int) -> str:
    """The rule broken by a system message, in words; empty for a valid place."""
    if index == 0:
        return "not be the first message"
    before = turns[index - 1]
    behind = turns[index + 1] if index + 1 < len(turns) else None
    if calls_of(before):
        return "not stand between a tool_use and its tool_result"
    served = before.side == "assistant" and before.parts and before.parts[-1].kind in ("server_call", "server_result")
    if before.side != "user" and not served:
        return "follow a user message"
    if behind is not None and behind.side != "assistant":
        return "be the last message or be followed by an assistant message"
    return ""


def check_undeclared_tools(turns: Turns, since: int) -> Found:
    """M19: referenced tools are declared and deferred, and not every tool is deferred.

    A call of a tool that is no longer declared is not known to be refused: hosts send such calls whenever a tool server
    has left.
    """
    tools = objects_at(turns.fields, "tools")
    if tools and all(tool.get("defer_loading") is True for tool in tools):
        yield TurnPart("other", -1, 0), ALL_DEFERRED
    named = [(tool.get("name"), tool.get("defer_loading") is True) for tool in tools]
    deferred = {name: is_deferred for name, is_deferred in named if isinstance(name, str)}
    for _, turn in recent(turns, since):
        for part in turn.parts:
            for name in referenced_tools(part):
                if name not in deferred:
                    yield part, NO_SUCH_TOOL.format(name=name)
                elif not deferred[name]:
                    yield part, NOT_DEFERRED.format(place=part.place, name=name)


def referenced_tools(part: TurnPart) -> Iterator[str]:
    """Yield the names of the tools that a search result loads."""
    if part.kind == "result":
        inner = objects_at(part.wire, "content")
    elif part.kind == "server_result":
        inner = objects_at(object_at(part.wire, "content"), "tool_references")
    else:
        return
    yield from (text_at(one, "tool_name") for one in inner if one.get("type") == "tool_reference")


def check_outputs_without_call(turns: Turns, since: int) -> Found:
    """R1: every output follows its call. The call may be in a response or conversation stored by the provider."""
    if turns.fields.get("previous_response_id") or turns.fields.get("conversation"):
        return
    for index, turn in recent(turns, since):
        for part in of_kind(turn, "result"):
            if not _contains_part(turns, range(index, -1, -1), ("call", "server_call"), part.id):
                yield part, NO_CALL.format(id=part.id)


def check_calls_without_output(turns: Turns, since: int) -> Found:
    """R2: every call has an output."""
    for index, turn in recent(turns, since):
        for part in of_kind(turn, "call"):
            if not _contains_part(turns, range(index, len(turns.turns)), ("result",), part.id):
                yield part, NO_OUTPUT.format(id=part.id)


def _contains_part(turns: Turns, where: range, kinds: tuple[str, ...], name: str) -> bool:
    """Whether the turns in a range contain a part. The part is usually near the start of the range.

    An item reference also counts, because it may refer to the part.
    """
    for index in where:
        for part in turns.turns[index].parts:
            if (part.kind in kinds and part.id == name) or part.wire.get("type") == "item_reference":
                return True
    return False
