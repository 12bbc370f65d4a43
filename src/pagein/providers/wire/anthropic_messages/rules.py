"""Why Anthropic Messages requests are refused, as a table from rule id to function.

`docs/reference/rules.md` is generated from this table.
"""

from collections.abc import Mapping
from typing import Final

from pagein.providers.validity import breakpoint_checks, call_pairs, request_settings, thinking_checks
from pagein.providers.validity.rules import ValidityRule

_TOO_LARGE: Final = 413


_CONVERSATION: Final[Mapping[str, ValidityRule]] = {
    "M1": ValidityRule(
        "every call is answered in the very next message",
        call_pairs.check_unanswered_calls,
        (call_pairs.UNANSWERED,),
    ),
    "M2": ValidityRule(
        "every result answers a call of the message before",
        call_pairs.check_orphan_results,
        (call_pairs.ORPHANED,),
    ),
    "M3": ValidityRule(
        "results stand in front of everything else in their message",
        call_pairs.check_result_order,
        (call_pairs.UNANSWERED,),
    ),
    "M4": ValidityRule(
        "every call has an id of its own and exactly one result, all in one message",
        call_pairs.check_double_results,
        (call_pairs.TWICE, call_pairs.CALLED_TWICE),
    ),
    "M5": ValidityRule(
        "a server tool's result has its call before it; while a server tool is pending, the user's message holds only "
        "results, and the tool is still offered",
        call_pairs.check_server_tools,
        (call_pairs.SERVER_ORPHANED, call_pairs.SERVER_UNANSWERED, call_pairs.SERVER_TOOL_GONE),
    ),
    "M6": ValidityRule(
        "results of members of a toolset carry its name, and text and images only",
        call_pairs.check_toolset_results,
        words=(call_pairs.TOOLSET_NAME, call_pairs.TOOLSET_CONTENT),
    ),
    "M7": ValidityRule(
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
        "the first message is the user's; older platforms want the sides to alternate",
        call_pairs.check_first_message,
        (call_pairs.NO_MESSAGES, call_pairs.FIRST_ROLE, call_pairs.ALTERNATE),
    ),
    "M9": ValidityRule(
        "from 4.6 on the conversation does not end with the assistant's words",
        request_settings.check_prefill,
        (request_settings.NO_PREFILL,),
    ),
    "M10": ValidityRule(
        "thinking in the assistant message whose calls are being answered is as it came",
        thinking_checks.check_modified_thinking,
        (thinking_checks.MODIFIED,),
    ),
    "M11": ValidityRule(
        "with thinking on a manual budget that message begins with thinking, and no tool is forced; later models take no "
        "forced tool at all",
        thinking_checks.check_manual_thinking,
        (thinking_checks.NO_THINKING, thinking_checks.FORCED, thinking_checks.NO_FORCE),
    ),
    "M12": ValidityRule("thinking stands behind the prefix that it was made for", kept="refused as T2 or T6"),
    "M13": ValidityRule(
        "the model knows the mode of thinking that is asked for",
        request_settings.check_thinking_mode,
        (request_settings.NO_MODE, request_settings.NO_ADAPTIVE),
    ),
    "M14": ValidityRule(
        "at most four cache marks", breakpoint_checks.check_breakpoint_count, (breakpoint_checks.TOO_MANY,)
    ),
    "M15": ValidityRule(
        "cache marks of one hour stand before those of five minutes",
        breakpoint_checks.check_ttl_order,
        (breakpoint_checks.LONG_LATE,),
    ),
    "M16": ValidityRule(
        "the automatic mark has a free slot and the lifetime of a mark that stands where it falls; legacy platforms have none",
        breakpoint_checks.check_automatic_breakpoint,
        (breakpoint_checks.CLASH, breakpoint_checks.NO_AUTOMATIC),
        (breakpoint_checks.NO_SLOT,),
    ),
    "M17": ValidityRule(
        "no cache mark on thinking, empty text or a tool that is loaded later",
        breakpoint_checks.check_breakpoint_places,
        (breakpoint_checks.ON_EMPTY, breakpoint_checks.ON_THINKING, breakpoint_checks.ON_DEFERRED),
    ),
    "M18": ValidityRule(
        "a system message within the conversation follows a user's, is the last or followed by the assistant's, and is taken "
        "by the model at all",
        call_pairs.check_system_messages,
        (call_pairs.NO_SYSTEM_ROLE,),
        (call_pairs.SYSTEM_PLACE,),
    ),
    "M19": ValidityRule(
        "tools that are referred to are declared and loaded later, and not all are loaded later",
        call_pairs.check_undeclared_tools,
        (call_pairs.ALL_DEFERRED, call_pairs.NO_SUCH_TOOL),
        (call_pairs.NOT_DEFERRED,),
    ),
    "M20": ValidityRule(
        "no sampling parameters that the model does not take; Opus 5 thinks at the highest efforts",
        request_settings.check_sampling,
        (request_settings.DEPRECATED, request_settings.TWO_SAMPLERS),
        (request_settings.HIGH_EFFORT,),
    ),
    "M21": ValidityRule(
        "at most 32 MB and 100,000 messages",
        request_settings.check_size,
        (request_settings.TOO_LARGE,),
        (request_settings.TOO_MANY,),
        _TOO_LARGE,
    ),
    "M22": ValidityRule(
        "fields of a beta come with its header", request_settings.check_betas, (request_settings.EXTRA,)
    ),
    "M23": ValidityRule(
        "clearing of thinking is the first edit, with thinking on; compaction is triggered at 50,000 tokens or more",
        request_settings.check_context_edits,
        (request_settings.CLEAR_NEEDS_THINKING,),
        (request_settings.CLEAR_FIRST, request_settings.TRIGGER_LOW),
    ),
    "M24": ValidityRule(
        "a citation of a search result stands behind that result",
        call_pairs.check_citations,
        words=(call_pairs.NO_SOURCE,),
    ),
    "M25": ValidityRule(
        "the model knows tool search, if the request offers it",
        request_settings.check_tool_search,
        words=(request_settings.NO_TOOL_SEARCH,),
    ),
    "M26": ValidityRule(
        "no two tools have the same name", request_settings.check_tool_names, (request_settings.SAME_NAME,)
    ),
    "M27": ValidityRule(
        "`diagnostics` names the answer before, or null",
        request_settings.check_diagnostics,
        (request_settings.NO_QUESTION, request_settings.NO_NAME),
    ),
}

_BOUND: Final[Mapping[str, ValidityRule]] = {
    "T1": ValidityRule(
        "thinking is bound to its model and to everything before it; what another model made is dropped without an error",
        kept="`prices/models/anthropic.py`: `binds`",
    ),
    "T2": ValidityRule(
        "nothing before thinking has changed since it was made",
        thinking_checks.check_changed_prefix,
        (thinking_checks.BOUND,),
        kept="`engine/send/splice.py` removes the thinking that an epoch makes invalid",
    ),
    "T3": ValidityRule(
        "cache marks are not compared", kept="`validity/thinking_bonds.py` leaves them out of its names"
    ),
    "T4": ValidityRule(
        "the prefix is checked for accounts made since 2026-08-31, for older ones where the request asks for it",
        kept="`ModelTarget.account_is_checked`",
    ),
    "T5": ValidityRule(
        "the setting for broken bindings comes with its beta header; with `drop_block` nothing is refused",
        request_settings.check_binding_beta,
        (request_settings.EXTRA,),
    ),
    "T6": ValidityRule(
        "thinking is removed from the oldest on, none from between others, none moved",
        thinking_checks.check_missing_thinking,
        (thinking_checks.BOUND,),
        kept="`engine/send/splice.py` removes it for good",
    ),
    "T7": ValidityRule("what the server edits or compacts breaks no binding", kept="nothing of it is compared"),
    "T8": ValidityRule(
        "an edit of the client takes the thinking behind it along",
        kept="`engine/send/fallback.py`; refused as T2 otherwise",
    ),
    "T9": ValidityRule(
        "thinking of Sonnet 5.5 and Haiku 5.5 is bound to its account too; that of another is removed without an error",
        kept="sessions do not change accounts",
    ),
}

RULES: Final[Mapping[str, ValidityRule]] = {**_CONVERSATION, **_BOUND}
