"""Results of Anthropic's own tools: the text for the model, and a stub in place of a result.

Rules of this file
------------------
1. An assistant message of text is always accepted. So a call and its result become one text together, and citations,
   which may point to the result, are removed from the text blocks; their text stays byte for byte.
2. A message with a call or a result without its counterpart is left alone: its turn was paused, or a tool of the client
   answered in between.
3. Calls that ran inside another call (`caller`) leave with it. What only the provider can read stays in the client's
   message and in the journal, and is not shown to anybody.
4. Unknown kinds stay, and so do results that declare tools (`tool_search_tool_result`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pagein.model.json_text import array_items, array_of, encode_json, object_fields, object_of
from pagein.model.messages import Block, Other
from pagein.model.server_results import ServerResult
from pagein.providers.wire.json_values import Json, json_text, parse_json, parts_of, text_at, with_field
from pagein.providers.wire.wire_format import ServerResultForm

_CALLS: Final = ("server_tool_use", "mcp_tool_use")
_SEALED: Final = ("encrypted_content", "encrypted_stdout")
_NO_TEXT: Final = ("base64", "url", "file")
"""Sources of documents without a text in the message."""


def server_results(blocks: Sequence[Block]) -> tuple[ServerResult, ...]:
    """Return the results of finished calls in an assistant message, in order; none if a call is not finished."""
    values = {
        place: parse_json(block.json)
        for place, block in enumerate(blocks)
        if isinstance(block, Other) and (block.kind in _CALLS or block.kind.endswith("_tool_result"))
    }
    parts = {place: value for place, value in values.items() if isinstance(value, dict)}
    withheld = any(isinstance(block, Other) and block.withheld is not None for block in blocks)
    calls = {text_at(part, "id"): place for place, part in parts.items() if part.get("type") in _CALLS}
    answers = {text_at(part, "tool_use_id"): place for place, part in parts.items() if part.get("type") not in _CALLS}
    if withheld or calls.keys() != answers.keys() or len(calls) + len(answers) != len(values):
        return ()
    owners = {name: _owner(parts[place]) for name, place in calls.items()}
    if any(owner and owner not in calls for owner in owners.values()):
        return ()
    found = (_group(name, parts, calls, answers, owners) for name in calls if not owners[name])
    return tuple(one for one in found if one is not None)


def _owner(call: Json) -> str:
    """Return the call inside which a call ran; "" for a call of the model's own."""
    return text_at(call.get("caller"), "tool_id")


def _group(
    name: str,
    parts: Mapping[int, Json],
    calls: Mapping[str, int],
    answers: Mapping[str, int],
    owners: Mapping[str, str],
) -> ServerResult | None:
    """Return a call with the calls inside; None if a part has no plain text."""
    names, count = {name}, 0
    while len(names) > count:
        count = len(names)
        names |= {one for one, owner in owners.items() if owner in names}
    inside = sorted(names, key=lambda one: answers[one])
    told: list[str] = []
    for one in inside:
        answer = parts[answers[one]]
        tell = _TELLERS.get(text_at(answer, "type"))
        text = None if tell is None else tell(answer.get("content"))
        if text is None:
            return None
        told += [_words_of_call(parts[calls[one]]), text]
    places = sorted(place for one in inside for place in (calls[one], answers[one]))
    if places[-1] != answers[name]:
        return None
    call, answer = parts[calls[name]], parts[answers[name]]
    sealed = sum(_sealed(parts[place]) for place in places)
    text = "\n".join(words for words in told if words)
    return ServerResult(name, text_at(call, "name"), text, sealed, tuple(places), _failed(answer))


def _words_of_call(call: Json) -> str:
    """Return the arguments of a call as text: the value alone where there is one argument, a text; else their JSON."""
    arguments = call.get("input")
    values = list(arguments.values()) if isinstance(arguments, dict) else [arguments]
    return values[0] if len(values) == 1 and isinstance(values[0], str) else json_text(arguments)


def _failed(answer: Json) -> bool:
    content = answer.get("content")
    code = content.get("return_code") if isinstance(content, dict) else None
    return answer.get("is_error") is True or text_at(content, "type").endswith("_error") or bool(code)


def _sealed(value: object) -> int:
    """Return the characters that only the provider can read."""
    if isinstance(value, dict):
        own = sum(len(text_at(value, name)) for name in _SEALED)
        return own + sum(_sealed(inner) for inner in value.values() if isinstance(inner, dict | list))
    return sum(map(_sealed, value)) if isinstance(value, list) else 0


def _found(content: object) -> str | None:
    """Return the titles and addresses of a search's hits."""
    if isinstance(content, dict):
        return text_at(content, "error_code")
    return "\n".join(
        "\n".join(words for name in ("title", "url", "page_age") if (words := text_at(one, name)))
        for one in parts_of(content)
    )


def _fetched(content: object) -> str | None:
    """Return the text of a page; None for a page without text, as an image or a PDF."""
    if not isinstance(content, dict):
        return None
    page = content.get("content")
    if not isinstance(page, dict):
        return text_at(content, "error_code") or None
    source = page.get("source")
    if not isinstance(source, dict) or source.get("type") in _NO_TEXT:
        return None
    text = text_at(source, "data") or _plain(source.get("content"))
    return (
        None
        if text is None
        else "\n".join(one for one in (text_at(content, "url"), text_at(page, "title"), text) if one)
    )


def _ran(content: object) -> str | None:
    """Return the report of a command or an edit."""
    if not isinstance(content, dict):
        return None
    texts = [text_at(content, name) for name in ("content", "stdout", "stderr", "error_code")]
    lines = content.get("lines")
    texts += [one for one in lines if isinstance(one, str)] if isinstance(lines, list) else []
    files = content.get("content")
    texts += [text_at(one, "file_id") for one in parts_of(files)] if isinstance(files, list) else []
    return "\n".join(one for one in texts if one)


def _plain(content: object) -> str | None:
    """Return the text of text blocks; None with any other block."""
    parts = parts_of(content)
    return "\n".join(text_at(one, "text") for one in parts) if all(one.get("type") == "text" for one in parts) else None


_TELLERS: Final[Mapping[str, Callable[[object], str | None]]] = {
    "web_search_tool_result": _found,
    "web_fetch_tool_result": _fetched,
    "code_execution_tool_result": _ran,
    "bash_code_execution_tool_result": _ran,
    "text_editor_code_execution_tool_result": _ran,
    "mcp_tool_result": _plain,
}


def with_stubs(item: bytes, stubs: Mapping[int, str]) -> bytes:
    """Put texts in place of some blocks of an assistant message, and remove the citations of its text blocks.

    stubs: texts by block; a block with an empty text is left out.
    """

    def in_blocks(content: bytes | None) -> bytes:
        if content is None or content.lstrip()[:1] != b"[":
            return content or b"[]"
        blocks = array_items(content, "content")
        made = [_stub(block, stubs[place]) if place in stubs else _uncited(block) for place, block in enumerate(blocks)]
        return array_of(block for block in made if block)

    return with_field(item, "content", in_blocks)


def _stub(block: bytes, text: str) -> bytes:
    if not text:
        return b""
    stands: dict[str, Any] = {"type": "text", "text": text}
    mark = object_fields(block, "a block").get("cache_control")
    made = encode_json(stands)
    return made if mark is None else object_of({**object_fields(made, "a block"), "cache_control": mark})


def _uncited(block: bytes) -> bytes:
    if b'"citations"' not in block:
        return block
    fields = object_fields(block, "a block")
    if fields.get("type") != b'"text"' or "citations" not in fields:
        return block
    return object_of({name: value for name, value in fields.items() if name != "citations"})


def may_leave(fields: Mapping[str, bytes], open_turn: Sequence[bytes]) -> bool:
    """Return whether results of finished turns may leave.

    They stay while the page fetcher is offered, which opens only addresses that the request shows, and while a message
    of the open turn cites: such a message must stay as it is.

    fields: the fields of the request. open_turn: the messages since the user's last words.
    """
    return b'"web_fetch' not in fields.get("tools", b"") and not any(b'"citations"' in one for one in open_turn)


FORM: Final = ServerResultForm(server_results, with_stubs, may_leave)
