"""Check the settings of a request outside the messages: rules M9, M13, M20-M23, M25-M27, C3, T5."""

from collections.abc import Iterator, Mapping
from typing import Final

from pagein.providers.validity.call_pairs import Found
from pagein.providers.validity.turns import TurnPart, Turns, Wire, object_at, objects_at

NO_PREFILL: Final = (
    "This model does not support assistant message prefill. The conversation must end with a user message."
)
NO_MODE: Final = (
    '"thinking.type.{mode}" is not supported for this model. '
    'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
)
NO_ADAPTIVE: Final = "adaptive thinking is not supported on this model"
DEPRECATED: Final = "`{field}` is deprecated for this model."
TWO_SAMPLERS: Final = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
HIGH_EFFORT: Final = "thinking cannot be disabled at effort {effort} on this model"
TOO_LARGE: Final = "Request exceeds the maximum size"
TOO_MANY: Final = "messages: at most 100000 messages are allowed"
EXTRA: Final = "{field}: Extra inputs are not permitted"
CLEAR_FIRST: Final = "context_management.edits.{index}: clear_thinking_20251015 must be the first edit"
CLEAR_NEEDS_THINKING: Final = "`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive"
NO_TOOL_SEARCH: Final = "tool search is not supported on this model"
SAME_NAME: Final = "tools: Tool names must be unique."
NO_QUESTION: Final = "diagnostics: Input should be an object"
NO_NAME: Final = "diagnostics.previous_message_id: Input should be a valid string"
TRIGGER_LOW: Final = "context_management.edits.{index}.trigger.value: must be at least 50000 input tokens"
TOOLS_WITH_EFFORT: Final = (
    "Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. "
    "Please use /v1/responses instead."
)
TOOLS_WITH_EFFORT_SINCE_5_6: Final = (
    "Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. "
    "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
)

TOOL_SEARCH: Final = "tool_search_tool_"
"""Beginning of the types of Anthropic's tools that search for deferred tools."""
_MEGABYTE: Final = 1 << 20
MOST_BYTES: Final = 32 * _MEGABYTE
MOST_MESSAGES: Final = 100_000
LEAST_TRIGGER: Final = 50_000
_WHOLE: Final = TurnPart("other", -1, 0)
_MODES: Final[Mapping[str, str]] = {
    "enabled": "thinking.enabled",
    "adaptive": "thinking.adaptive",
    "disabled": "thinking.disabled",
}
# Values that the providers' clients send by habit and that equal the default.
_DEFAULT_TOP_P: Final = (0.99, 1)


def check_prefill(turns: Turns, _since: int) -> Found:
    """M9: no final assistant message for models without prefill.

    A turn paused for a server tool is returned unchanged and is no prefill.
    """
    last = turns.turns[-1] if turns.turns else None
    if last is None or last.side != "assistant" or "prefill" not in turns.target.abilities.refuses:
        return
    if not any(part.kind in ("server_call", "call") for part in last.parts):
        yield TurnPart("text", last.first, 0), NO_PREFILL


def check_thinking_mode(turns: Turns, _since: int) -> Found:
    """M13: the model supports the requested mode of thinking."""
    mode = mode_of(turns.fields)
    if _MODES.get(mode) in turns.target.abilities.refuses:
        yield _WHOLE, NO_ADAPTIVE if mode == "adaptive" else NO_MODE.format(mode=mode)


def mode_of(fields: Wire) -> str:
    """The mode of thinking in a request, "" if absent."""
    mode = object_at(fields, "thinking").get("type")
    return mode if isinstance(mode, str) else ""


def check_sampling(turns: Turns, _since: int) -> Found:
    """M20: only sampling parameters and efforts that the model accepts."""
    fields, refuses = turns.fields, turns.target.abilities.refuses
    if "sampling" in refuses:
        yield from ((_WHOLE, DEPRECATED.format(field=name)) for name in _sampling_parameters(fields))
    if "two samplers" in refuses and fields.get("temperature") is not None and fields.get("top_p") is not None:
        yield _WHOLE, TWO_SAMPLERS
    effort = object_at(fields, "output_config").get("effort")
    if "no thinking at high effort" in refuses and effort in ("xhigh", "max") and mode_of(fields) == "disabled":
        yield _WHOLE, HIGH_EFFORT.format(effort=effort)


def _sampling_parameters(fields: Wire) -> Iterator[str]:
    """Yield the sampling parameters with values different from their defaults."""
    if fields.get("temperature") not in (None, 1):
        yield "temperature"
    if fields.get("top_p") not in (None, *_DEFAULT_TOP_P):
        yield "top_p"
    if fields.get("top_k") is not None:
        yield "top_k"


def check_size(turns: Turns, _since: int) -> Found:
    """M21: at most 32 MB and 100,000 messages."""
    if turns.size > MOST_BYTES:
        yield _WHOLE, TOO_LARGE
    messages = turns.fields.get("messages")
    if isinstance(messages, list) and len(messages) > MOST_MESSAGES:
        yield _WHOLE, TOO_MANY


def check_betas(turns: Turns, _since: int) -> Found:
    """M22: beta fields need their header.

    Any beta of the same family is accepted, since newer betas support the same fields.
    """
    if turns.target.betas is None:
        return
    for name, family in _fields_with_beta(turns.fields):
        if turns.target.lacks_beta(family):
            yield _WHOLE, EXTRA.format(field=name)


def _fields_with_beta(fields: Wire) -> Iterator[tuple[str, str]]:
    """Yield the fields that need a beta, each with the family of the beta."""
    for edit in edits_of(fields):
        kind = str(edit.get("type"))
        yield "context_management", "compact-" if kind.startswith("compact_") else "context-management-"
    for place, message in enumerate(objects_at(fields, "messages")):
        if "output_config" in message:
            yield f"messages.{place}.output_config", "mid-conversation-output-config-"
        for block in objects_at(message, "content"):
            if block.get("type") in ("tool_addition", "tool_removal"):
                yield f"messages.{place}.content", "mid-conversation-tool-changes-"


def check_diagnostics(turns: Turns, _since: int) -> Found:
    """M27: a question about a cache miss names the answer before, or nothing. It needs no beta any more."""
    asked = turns.fields.get("diagnostics")
    if asked is None:
        return
    if not isinstance(asked, dict):
        yield _WHOLE, NO_QUESTION
    elif not isinstance(asked.get("previous_message_id", ""), str | None):
        yield _WHOLE, NO_NAME


def edits_of(fields: Wire) -> list[Wire]:
    """The context edits requested from the server."""
    return objects_at(object_at(fields, "context_management"), "edits")


def check_context_edits(turns: Turns, _since: int) -> Found:
    """M23: constraints on context edits."""
    for index, edit in enumerate(edits_of(turns.fields)):
        kind = str(edit.get("type"))
        if kind == "clear_thinking_20251015":
            if index:
                yield _WHOLE, CLEAR_FIRST.format(index=index)
            mode = mode_of(turns.fields)
            if mode == "disabled" or (not mode and turns.target.abilities.thinks_unasked is False):
                yield _WHOLE, CLEAR_NEEDS_THINKING
        trigger = object_at(edit, "trigger").get("value")
        if kind.startswith("compact_") and isinstance(trigger, int) and trigger < LEAST_TRIGGER:
            yield _WHOLE, TRIGGER_LOW.format(index=index)


def check_tool_search(turns: Turns, _since: int) -> Found:
    """M25: tool search only for models that have it."""
    if "tool search" in turns.target.abilities.refuses and any(map(is_search_tool, objects_at(turns.fields, "tools"))):
        yield _WHOLE, NO_TOOL_SEARCH


def check_tool_names(turns: Turns, _since: int) -> Found:
    """M26: no two tools have the same name, the provider's own tools included."""
    names = [one["name"] for one in objects_at(turns.fields, "tools") if isinstance(one.get("name"), str)]
    if len(set(names)) < len(names):
        yield _WHOLE, SAME_NAME


def is_search_tool(tool: Wire) -> bool:
    """Whether a definition is the provider's tool to search for deferred tools."""
    return str(tool.get("type")).startswith(TOOL_SEARCH)


def check_binding_beta(turns: Turns, _since: int) -> Found:
    """T5: the setting for broken bindings needs its beta header."""
    asked = object_at(turns.fields, "thinking").get("block_binding")
    if asked is not None and turns.target.lacks_beta("thinking-binding-controls-"):
        yield _WHOLE, EXTRA.format(field="thinking.block_binding")


def check_tools_with_effort(turns: Turns, _since: int) -> Found:
    """C3: from GPT-5.4 on, no functions together with a reasoning effort in Chat."""
    effort = turns.fields.get("reasoning_effort")
    functions = any(tool.get("type") == "function" for tool in objects_at(turns.fields, "tools"))
    refuses = turns.target.abilities.refuses
    if functions and effort not in (None, "none") and "tools with effort in Chat" in refuses:
        text = TOOLS_WITH_EFFORT if "cache options" in refuses else TOOLS_WITH_EFFORT_SINCE_5_6
        yield _WHOLE, text.format(model=turns.fields.get("model"))
