"""Translate requests and answers of children to and from the messages of pydantic-ai.

Rules of this file
------------------
1. An answer that goes back is the answer that came, in order; nothing of it is changed or left out. What a provider signs
   and pagein has no block for is carried along in a block of its own. Half a surrogate pair becomes a replacement character.
2. A cache mark stands after the block that ends the marked prefix. The providers' rules decide what it means there.
3. What a provider reports as input holds the cached tokens; usage here does not (`Usage.fresh`).
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, Literal

from pydantic_ai.messages import (
    CachePoint,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from pagein.model.messages import Block, Message, Other, Text, Thinking, ToolCall, ToolResult, Usage
from pagein.ports import ChildAnswer, ChildRequest, PrefixMark

_WHOLE: Final = "pydantic_ai_response"
_STOPS: Final[dict[str, Literal["end", "tools", "length", "other"]]] = {
    "stop": "end",
    "tool_call": "tools",
    "length": "length",
}


def request_messages(request: ChildRequest) -> list[ModelMessage]:
    """Return the conversation of a request."""
    found: list[ModelMessage] = []
    marks = {mark.blocks: mark for mark in request.marks if mark.blocks}
    for place, message in enumerate(request.messages):
        if message.role == "assistant":
            found.append(_response(message.blocks))
        else:
            found.append(_model_request(message, marks if place == 0 else {}))
    if found and isinstance(found[0], ModelRequest):
        found[0] = replace(found[0], instructions=_sendable(request.system))
    last = found[-1]
    if isinstance(last, ModelRequest):  # the instructions of the last request count
        found[-1] = replace(last, instructions=_sendable(request.system))
    return found


def request_parameters(request: ChildRequest, *, has_schema: bool) -> ModelRequestParameters:
    """Return tools and form of the answer of a request.

    has_schema: whether the model has structured output; without it, the schema is left out.
    """
    tools = [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.schema))
        for tool in request.tools
    ]
    if request.schema is None or not has_schema:
        return ModelRequestParameters(function_tools=tools)
    form = OutputObjectDefinition(json_schema=dict(request.schema), name="reply", strict=True)
    return ModelRequestParameters(function_tools=tools, output_mode="native", output_object=form)


def request_settings(request: ChildRequest) -> ModelSettings:
    """Return the settings of a request: output limit, no retries, cache marks in front of the conversation."""
    settings = ModelSettings(max_tokens=request.max_output, max_retries=0)
    head = _head_mark(request.marks)
    if head is not None:
        settings["cache"] = {"messages": False, "retention": "1h"} if head.ttl == "1h" else {"messages": False}
    return settings


def child_answer(response: ModelResponse, named: str) -> ChildAnswer:
    """Return the answer in a response.

    named: the requested model, for providers that do not report the answering model.
    """
    blocks = tuple(_blocks(response))
    stop = _STOPS.get(response.finish_reason or "", "other")
    if stop in ("end", "other") and any(isinstance(one, ToolCall) for one in blocks):
        stop = "tools"  # some providers tell a regular end for an answer with calls
    elif response.finish_reason is None and blocks:
        stop = "end"
    return ChildAnswer(blocks, _usage(response), stop, response.model_name or named)


def _head_mark(marks: Sequence[PrefixMark]) -> PrefixMark | None:
    return next((mark for mark in marks if mark.blocks == 0), None)


def _model_request(message: Message, marks: dict[int, PrefixMark]) -> ModelRequest:
    results = [
        ToolReturnPart(
            tool_name=one.name,
            content=_sendable(one.text),
            tool_call_id=one.call_id,
            outcome="failed" if one.is_error else "success",
        )
        for one in message.blocks
        if isinstance(one, ToolResult)
    ]
    content: list[UserContent] = []
    texts = [one for one in message.blocks if isinstance(one, Text)]
    for number, one in enumerate(texts, start=1):
        content.append(_sendable(one.text))
        if (mark := marks.get(number)) is not None:
            content.append(CachePoint(ttl=mark.ttl))
    return ModelRequest(parts=[*results, *([UserPromptPart(content=content)] if content else [])])


def _response(blocks: Sequence[Block]) -> ModelMessage:
    whole = next((one.json for one in blocks if isinstance(one, Other) and one.kind == _WHOLE), None)
    if whole is not None:
        return ModelMessagesTypeAdapter.validate_json(whole)[0]
    return ModelResponse(parts=list(_response_parts(blocks)))


def _response_parts(blocks: Sequence[Block]) -> Iterator[ModelResponsePart]:
    for one in blocks:
        match one:
            case Text(text=text):
                yield TextPart(content=_sendable(text))
            case ToolCall(id=name, name=tool, arguments=arguments):
                yield ToolCallPart(tool_name=tool, args=_sendable(arguments), tool_call_id=name)
            case _:
                pass  # signed blocks come with the whole response


def _blocks(response: ModelResponse) -> Iterator[Block]:
    is_signed = False
    for part in response.parts:
        is_signed = is_signed or not isinstance(part, TextPart | ToolCallPart) or bool(part.provider_details)
        match part:
            case TextPart(content=text):
                yield Text(text)
            case ThinkingPart(content=text, signature=signature):
                yield Thinking(text, signature)
            case ToolCallPart(tool_name=tool, args=args):
                yield ToolCall(part.tool_call_id, tool, args if isinstance(args, str) else json.dumps(args or {}))
            case _:
                pass  # files and the provider's own tools: never asked for
    if is_signed:
        yield Other(_WHOLE, ModelMessagesTypeAdapter.dump_json([response]).decode())


def _sendable(text: str) -> str:
    """Return a text that UTF-8 can express: hosts cut strings between the halves of a surrogate pair."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _usage(response: ModelResponse) -> Usage | None:
    told = response.usage
    written, read = told.cache_write_tokens, told.cache_read_tokens
    counts = told.input_tokens, told.output_tokens, written, read
    if min(counts) < 0 or not any(counts):  # a call without a believable usage never costs nothing
        return None
    return Usage(max(0, told.input_tokens - written - read), read, written, 0, told.output_tokens)
