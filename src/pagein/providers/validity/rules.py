"""The rules for valid requests, as a table from rule id to function.

docs/laws.md defines every id. `docs/reference/rules.md` is generated from this table.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from pagein.providers.validity import breakpoint_checks, call_pairs, request_settings, response_items, thinking_checks
from pagein.providers.validity.turns import Api, TurnPart, Turns

__all__ = ["RULES", "Api", "Check", "ValidityRule"]

Check: TypeAlias = Callable[[Turns, int], Iterator[tuple[TurnPart, str]]]


@dataclass(frozen=True, slots=True)
class ValidityRule:
    """A reason for the refusal of requests.

    apis: wire formats with this rule.
    says: the rule in one sentence.
    check: finds violations; None for a rule without a refusal of its own, which states a consequence of further rules.
    kept: where pagein follows a rule without a check.
    errors: the provider's own words, `{...}` for variable parts.
    words: pagein's words, if the provider's are not known.
    status: HTTP status of the refusal.
    """

    apis: tuple[Api, ...]
    says: str
    check: Check | None = None
    errors: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    status: int = 400
    kept: str = ""


_MESSAGES: Final[tuple[Api, ...]] = ("anthropic",)
_CHAT: Final[tuple[Api, ...]] = ("openai_chat",)
_RESPONSES: Final[tuple[Api, ...]] = ("openai_responses",)
_OPENAI: Final[tuple[Api, ...]] = ("openai_chat", "openai_responses")
_TOO_LARGE: Final = 413
_NOT_FOUND: Final = 404


_ANTHROPIC: Final[Mapping[str, ValidityRule]] = {
    "M1": ValidityRule(
        _MESSAGES,
        "every call is answered in the very next message",
        call_pairs.check_unanswered_calls,
        (call_pairs.UNANSWERED,),
    ),
    "M2": ValidityRule(
        _MESSAGES,
        "every result answers a call of the message before",
        call_pairs.check_orphan_results,
        (call_pairs.ORPHANED,),
    ),
    "M3": ValidityRule(
        _MESSAGES,
        "results stand in front of everything else in their message",
        call_pairs.check_result_order,
        (call_pairs.UNANSWERED,),
    ),
    "M4": ValidityRule(
        _MESSAGES,
        "every call has an id of its own and exactly one result, all in one message",
        call_pairs.check_double_results,
        (call_pairs.TWICE, call_pairs.CALLED_TWICE),
    ),
    "M5": ValidityRule(
        _MESSAGES,
        "a server tool's result has its call before it; while a server tool is pending, the user's message holds only "
        "results, and the tool is still offered",
        call_pairs.check_server_tools,
        (call_pairs.SERVER_ORPHANED, call_pairs.SERVER_UNANSWERED, call_pairs.SERVER_TOOL_GONE),
    ),
    "M6": ValidityRule(
        _MESSAGES,
        "results of members of a toolset carry its name, and text and images only",
        call_pairs.check_toolset_results,
        words=(call_pairs.TOOLSET_NAME, call_pairs.TOOLSET_CONTENT),
    ),
    "M7": ValidityRule(
        _MESSAGES,
        "no message and no text block is empty, and the assistant's words do not end the request with white space",
        call_pairs.check_empty_content,
        (
            call_pairs.NO_TEXT,
            call_pairs.BLANK_TEXT,
            call_pairs.NO_SYSTEM_TEXT,
            call_pairs.NO_CONTENT,
            call_pairs.ENDS_BLANK,
        ),
    ),
    "M8": ValidityRule(
        _MESSAGES,
        "the first message is the user's; older platforms want the sides to alternate",
        call_pairs.check_first_message,
        (call_pairs.NO_MESSAGES, call_pairs.FIRST_ROLE, call_pairs.ALTERNATE),
    ),
    "M9": ValidityRule(
        _MESSAGES,
        "from 4.6 on the conversation does not end with the assistant's words",
        request_settings.check_prefill,
        (request_settings.NO_PREFILL,),
    ),
    "M10": ValidityRule(
        _MESSAGES,
        "thinking in the assistant message whose calls are being answered is as it came",
        thinking_checks.check_modified_thinking,
        (thinking_checks.MODIFIED,),
    ),
    "M11": ValidityRule(
        _MESSAGES,
        "with thinking on a manual budget that message begins with thinking, and no tool is forced; later models take no "
        "forced tool at all",
        thinking_checks.check_manual_thinking,
        (thinking_checks.NO_THINKING, thinking_checks.FORCED, thinking_checks.NO_FORCE),
    ),
    "M12": ValidityRule(
        _MESSAGES, "thinking stands behind the prefix that it was made for", kept="refused as T2 or T6"
    ),
    "M13": ValidityRule(
        _MESSAGES,
        "the model knows the mode of thinking that is asked for",
        request_settings.check_thinking_mode,
        (request_settings.NO_MODE, request_settings.NO_ADAPTIVE),
    ),
    "M14": ValidityRule(
        _MESSAGES, "at most four cache marks", breakpoint_checks.check_breakpoint_count, (breakpoint_checks.TOO_MANY,)
    ),
    "M15": ValidityRule(
        _MESSAGES,
        "cache marks of one hour stand before those of five minutes",
        breakpoint_checks.check_ttl_order,
        (breakpoint_checks.LONG_LATE,),
    ),
    "M16": ValidityRule(
        _MESSAGES,
        "the automatic mark has a free slot and the lifetime of a mark that stands where it falls; legacy platforms have none",
        breakpoint_checks.check_automatic_breakpoint,
        (breakpoint_checks.CLASH, breakpoint_checks.NO_AUTOMATIC),
        (breakpoint_checks.NO_SLOT,),
    ),
    "M17": ValidityRule(
        _MESSAGES,
        "no cache mark on thinking, empty text or a tool that is loaded later",
        breakpoint_checks.check_breakpoint_places,
        (breakpoint_checks.ON_EMPTY, breakpoint_checks.ON_THINKING, breakpoint_checks.ON_DEFERRED),
    ),
    "M18": ValidityRule(
        _MESSAGES,
        "a system message within the conversation follows a user's, is the last or followed by the assistant's, and is taken "
        "by the model at all",
        call_pairs.check_system_messages,
        (call_pairs.NO_SYSTEM_ROLE,),
        (call_pairs.SYSTEM_PLACE,),
    ),
    "M19": ValidityRule(
        _MESSAGES,
        "tools that are referred to are declared, and not all are loaded later",
        call_pairs.check_undeclared_tools,
        (call_pairs.ALL_DEFERRED,),
        (call_pairs.NO_SUCH_TOOL,),
    ),
    "M20": ValidityRule(
        _MESSAGES,
        "no sampling parameters that the model does not take; Opus 5 thinks at the highest efforts",
        request_settings.check_sampling,
        (request_settings.DEPRECATED, request_settings.TWO_SAMPLERS),
        (request_settings.HIGH_EFFORT,),
    ),
    "M21": ValidityRule(
        _MESSAGES,
        "at most 32 MB and 100,000 messages",
        request_settings.check_size,
        (request_settings.TOO_LARGE,),
        (request_settings.TOO_MANY,),
        _TOO_LARGE,
    ),
    "M22": ValidityRule(
        _MESSAGES, "fields of a beta come with its header", request_settings.check_betas, (request_settings.EXTRA,)
    ),
    "M23": ValidityRule(
        _MESSAGES,
        "clearing of thinking is the first edit, with thinking on; compaction is triggered at 50,000 tokens or more",
        request_settings.check_context_edits,
        (request_settings.CLEAR_NEEDS_THINKING,),
        (request_settings.CLEAR_FIRST, request_settings.TRIGGER_LOW),
    ),
}

_BOUND: Final[Mapping[str, ValidityRule]] = {
    "T1": ValidityRule(
        _MESSAGES,
        "thinking is bound to its model and to everything before it; what another model made is dropped without an error",
        kept="`prices/model_abilities.py`: `binds`",
    ),
    "T2": ValidityRule(
        _MESSAGES,
        "nothing before thinking has changed since it was made",
        thinking_checks.check_changed_prefix,
        (thinking_checks.BOUND,),
        kept="`engine/send/splice.py` removes the thinking that an epoch makes invalid",
    ),
    "T3": ValidityRule(
        _MESSAGES, "cache marks are not compared", kept="`validity/thinking_bonds.py` leaves them out of its names"
    ),
    "T4": ValidityRule(
        _MESSAGES,
        "the prefix is checked for accounts made since 2026-08-31, for older ones where the request asks for it",
        kept="`ModelTarget.account_is_checked`",
    ),
    "T5": ValidityRule(
        _MESSAGES,
        "the setting for broken bindings comes with its beta header; with `drop_block` nothing is refused",
        request_settings.check_binding_beta,
        (request_settings.EXTRA,),
    ),
    "T6": ValidityRule(
        _MESSAGES,
        "thinking is removed from the oldest on, none from between others, none moved",
        thinking_checks.check_missing_thinking,
        (thinking_checks.BOUND,),
        kept="`engine/send/splice.py` removes it for good",
    ),
    "T7": ValidityRule(
        _MESSAGES, "what the server edits or compacts breaks no binding", kept="nothing of it is compared"
    ),
    "T8": ValidityRule(
        _MESSAGES,
        "an edit of the client takes the thinking behind it along",
        kept="`engine/send/fallback.py`; refused as T2 otherwise",
    ),
    "T9": ValidityRule(
        _MESSAGES,
        "thinking of Sonnet 5.5 and Haiku 5.5 is bound to its account too; that of another is removed without an error",
        kept="sessions do not change accounts",
    ),
}

_OPENAI_RULES: Final[Mapping[str, ValidityRule]] = {
    "C1": ValidityRule(
        _CHAT,
        "tool messages that answer every call follow it at once",
        call_pairs.check_chat_unanswered_calls,
        (call_pairs.CHAT_UNANSWERED,),
    ),
    "C2": ValidityRule(
        _CHAT,
        "every tool message answers a call of the assistant message before it",
        call_pairs.check_chat_orphan_results,
        (call_pairs.CHAT_ORPHANED,),
    ),
    "C3": ValidityRule(
        _CHAT,
        "from GPT-5.4 on functions are offered without a reasoning effort",
        request_settings.check_tools_with_effort,
        (request_settings.TOOLS_WITH_EFFORT, request_settings.TOOLS_WITH_EFFORT_SINCE_5_6),
    ),
    "C4": ValidityRule(
        _OPENAI,
        "cache options and breakpoints from GPT-5.6 on only",
        breakpoint_checks.check_cache_options,
        words=(breakpoint_checks.NO_OPTIONS,),
    ),
    "R1": ValidityRule(
        _RESPONSES, "every output has its call before it", call_pairs.check_outputs_without_call, (call_pairs.NO_CALL,)
    ),
    "R2": ValidityRule(
        _RESPONSES,
        "every call has its output behind it",
        call_pairs.check_calls_without_output,
        (call_pairs.NO_OUTPUT,),
    ),
    "R3": ValidityRule(
        _RESPONSES,
        "a call that goes by its item's id has the reasoning before it that it came with",
        response_items.check_calls_without_reasoning,
        (response_items.NO_REASONING,),
    ),
    "R4": ValidityRule(
        _RESPONSES,
        "reasoning has behind it what came with it",
        response_items.check_reasoning_alone,
        (response_items.NO_FOLLOWER,),
    ),
    "R5": ValidityRule(
        _RESPONSES,
        "ids begin as their kind of item demands, and stand once",
        response_items.check_item_ids,
        (response_items.ID_SHAPE, response_items.DUPLICATE),
    ),
    "R6": ValidityRule(
        _RESPONSES,
        "reasoning that was not stored carries its encrypted content",
        response_items.check_unstored_reasoning,
        (response_items.NOT_KEPT,),
        status=_NOT_FOUND,
    ),
    "R7": ValidityRule(
        _OPENAI,
        "cache options and cache retention exclude each other",
        breakpoint_checks.check_cache_retention,
        words=(breakpoint_checks.BOTH,),
    ),
    "O6": ValidityRule(
        _OPENAI,
        "breakpoints stand on text, images and files of the input",
        breakpoint_checks.check_input_breakpoints,
        words=(breakpoint_checks.NOT_AN_INPUT,),
    ),
}

RULES: Final[Mapping[str, ValidityRule]] = {**_ANTHROPIC, **_BOUND, **_OPENAI_RULES}
