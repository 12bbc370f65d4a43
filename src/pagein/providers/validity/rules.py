"""The rules by which providers refuse requests, as a table from rule id to function.

Ids and sources: `notes/provider-rules.md` 10 (M, C, R), 2.6 (T) and 3.2 (O). `docs/reference/rules.md` is written from this table.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from pagein.providers.validity import items, marking, pairing, reasoning, settings
from pagein.providers.validity.turns import Api, Part, Turns

__all__ = ["RULES", "Api", "Check", "Rule"]

Check: TypeAlias = Callable[[Turns, int], Iterator[tuple[Part, str]]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One reason for which requests are refused.

    apis: where it holds. says: the rule in one sentence. check: finds what breaks it; None for a rule that refuses nothing: it says
    what follows from others, and `kept` where pagein keeps it. errors: the provider's own words, `{...}` where they vary.
    words: ours, where the provider's are not known. status: of the answer.
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


_ANTHROPIC: Final[Mapping[str, Rule]] = {
    "M1": Rule(_MESSAGES, "every call is answered in the very next message", pairing.unanswered, (pairing.UNANSWERED,)),
    "M2": Rule(_MESSAGES, "every result answers a call of the message before", pairing.orphaned, (pairing.ORPHANED,)),
    "M3": Rule(
        _MESSAGES,
        "results stand in front of everything else in their message",
        pairing.results_late,
        (pairing.UNANSWERED,),
    ),
    "M4": Rule(
        _MESSAGES,
        "every call has an id of its own and exactly one result, all in one message",
        pairing.paired_twice,
        (pairing.TWICE, pairing.CALLED_TWICE),
    ),
    "M5": Rule(
        _MESSAGES,
        "a server tool's result has its call before it; while a server tool is pending, the user's message holds only "
        "results, and the tool is still offered",
        pairing.server_tools,
        (pairing.SERVER_ORPHANED, pairing.SERVER_UNANSWERED, pairing.SERVER_TOOL_GONE),
    ),
    "M6": Rule(
        _MESSAGES,
        "results of members of a toolset carry its name, and text and images only",
        pairing.toolset_results,
        words=(pairing.TOOLSET_NAME, pairing.TOOLSET_CONTENT),
    ),
    "M7": Rule(
        _MESSAGES,
        "no message and no text block is empty, and the assistant's words do not end the request with white space",
        pairing.empty,
        (pairing.NO_TEXT, pairing.BLANK_TEXT, pairing.NO_SYSTEM_TEXT, pairing.NO_CONTENT, pairing.ENDS_BLANK),
    ),
    "M8": Rule(
        _MESSAGES,
        "the first message is the user's; older platforms want the sides to alternate",
        pairing.begins_wrong,
        (pairing.NO_MESSAGES, pairing.FIRST_ROLE, pairing.ALTERNATE),
    ),
    "M9": Rule(
        _MESSAGES,
        "from 4.6 on the conversation does not end with the assistant's words",
        settings.prefill,
        (settings.NO_PREFILL,),
    ),
    "M10": Rule(
        _MESSAGES,
        "thinking in the assistant message whose calls are being answered is as it came",
        reasoning.modified,
        (reasoning.MODIFIED,),
    ),
    "M11": Rule(
        _MESSAGES,
        "with thinking on a manual budget that message begins with thinking, and no tool is forced; later models take no "
        "forced tool at all",
        reasoning.manual_thinking,
        (reasoning.NO_THINKING, reasoning.FORCED, reasoning.NO_FORCE),
    ),
    "M12": Rule(_MESSAGES, "thinking stands behind the prefix that it was made for", kept="refused as T2 or T6"),
    "M13": Rule(
        _MESSAGES,
        "the model knows the mode of thinking that is asked for",
        settings.thinking_mode,
        (settings.NO_MODE, settings.NO_ADAPTIVE),
    ),
    "M14": Rule(_MESSAGES, "at most four cache marks", marking.too_many, (marking.TOO_MANY,)),
    "M15": Rule(
        _MESSAGES,
        "cache marks of one hour stand before those of five minutes",
        marking.long_late,
        (marking.LONG_LATE,),
    ),
    "M16": Rule(
        _MESSAGES,
        "the automatic mark has a free slot and the lifetime of a mark that stands where it falls; legacy platforms have none",
        marking.automatic,
        (marking.CLASH, marking.NO_AUTOMATIC),
        (marking.NO_SLOT,),
    ),
    "M17": Rule(
        _MESSAGES,
        "no cache mark on thinking, empty text or a tool that is loaded later",
        marking.misplaced,
        (marking.ON_EMPTY, marking.ON_THINKING, marking.ON_DEFERRED),
    ),
    "M18": Rule(
        _MESSAGES,
        "a system message within the conversation follows a user's, is the last or followed by the assistant's, and is taken "
        "by the model at all",
        pairing.system_messages,
        (pairing.NO_SYSTEM_ROLE,),
        (pairing.SYSTEM_PLACE,),
    ),
    "M19": Rule(
        _MESSAGES,
        "tools that are referred to are declared, and not all are loaded later",
        pairing.undeclared_tools,
        (pairing.ALL_DEFERRED,),
        (pairing.NO_SUCH_TOOL,),
    ),
    "M20": Rule(
        _MESSAGES,
        "no sampling parameters that the model does not take; Opus 5 thinks at the highest efforts",
        settings.sampling,
        (settings.DEPRECATED, settings.TWO_SAMPLERS),
        (settings.HIGH_EFFORT,),
    ),
    "M21": Rule(
        _MESSAGES,
        "at most 32 MB and 100,000 messages",
        settings.size,
        (settings.TOO_LARGE,),
        (settings.TOO_MANY,),
        _TOO_LARGE,
    ),
    "M22": Rule(_MESSAGES, "fields of a beta come with its header", settings.betas, (settings.EXTRA,)),
    "M23": Rule(
        _MESSAGES,
        "clearing of thinking is the first edit, with thinking on; compaction is triggered at 50,000 tokens or more",
        settings.context_edits,
        (settings.CLEAR_NEEDS_THINKING,),
        (settings.CLEAR_FIRST, settings.TRIGGER_LOW),
    ),
}

_BOUND: Final[Mapping[str, Rule]] = {
    "T1": Rule(
        _MESSAGES,
        "thinking is bound to its model and to everything before it; what another model made is dropped without an error",
        kept="`abilities.Abilities.binds`",
    ),
    "T2": Rule(
        _MESSAGES,
        "nothing before thinking has changed since it was made",
        reasoning.prefix_changed,
        (reasoning.BOUND,),
        kept="`thinking.py` drops what a change makes invalid",
    ),
    "T3": Rule(_MESSAGES, "cache marks are not compared", kept="`bonds.py` leaves them out of its names"),
    "T4": Rule(
        _MESSAGES,
        "the prefix is checked for accounts made since 2026-08-31, for older ones where the request asks for it",
        kept="`target.Target.account_is_checked`",
    ),
    "T5": Rule(
        _MESSAGES,
        "the setting for broken bindings comes with its beta header; with `drop_block` nothing is refused",
        settings.binding_without_beta,
        (settings.EXTRA,),
    ),
    "T6": Rule(
        _MESSAGES,
        "thinking is removed from the oldest on, none from between others, none moved",
        reasoning.left_out,
        (reasoning.BOUND,),
        kept="`thinking.py`",
    ),
    "T7": Rule(_MESSAGES, "what the server edits or compacts breaks no binding", kept="nothing of it is compared"),
    "T8": Rule(
        _MESSAGES,
        "an edit of the client takes the thinking behind it along",
        kept="`thinking.py`; refused as T2 where it does not",
    ),
    "T9": Rule(
        _MESSAGES,
        "thinking of Sonnet 5.5 and Haiku 5.5 is bound to its account too; that of another is removed without an error",
        kept="sessions do not change accounts",
    ),
}

_OPENAI_RULES: Final[Mapping[str, Rule]] = {
    "C1": Rule(
        _CHAT,
        "tool messages that answer every call follow it at once",
        pairing.chat_unanswered,
        (pairing.CHAT_UNANSWERED,),
    ),
    "C2": Rule(
        _CHAT,
        "every tool message answers a call of the assistant message before it",
        pairing.chat_orphaned,
        (pairing.CHAT_ORPHANED,),
    ),
    "C3": Rule(
        _CHAT,
        "from GPT-5.4 on functions are offered without a reasoning effort",
        settings.tools_with_effort,
        (settings.TOOLS_WITH_EFFORT, settings.TOOLS_WITH_EFFORT_SINCE_5_6),
    ),
    "C4": Rule(
        _OPENAI,
        "cache options and breakpoints from GPT-5.6 on only",
        marking.cache_options,
        words=(marking.NO_OPTIONS,),
    ),
    "R1": Rule(_RESPONSES, "every output has its call before it", pairing.output_without_call, (pairing.NO_CALL,)),
    "R2": Rule(_RESPONSES, "every call has its output behind it", pairing.call_without_output, (pairing.NO_OUTPUT,)),
    "R3": Rule(
        _RESPONSES,
        "a call that goes by its item's id has the reasoning before it that it came with",
        items.call_without_reasoning,
        (items.NO_REASONING,),
    ),
    "R4": Rule(_RESPONSES, "reasoning has behind it what came with it", items.reasoning_alone, (items.NO_FOLLOWER,)),
    "R5": Rule(
        _RESPONSES,
        "ids begin as their kind of item demands, and stand once",
        items.id_shape,
        (items.ID_SHAPE, items.DUPLICATE),
    ),
    "R6": Rule(
        _RESPONSES,
        "reasoning that was not stored carries its encrypted content",
        items.not_kept,
        (items.NOT_KEPT,),
        status=_NOT_FOUND,
    ),
    "R7": Rule(
        _OPENAI,
        "cache options and cache retention exclude each other",
        marking.options_with_retention,
        words=(marking.BOTH,),
    ),
    "O6": Rule(
        _OPENAI,
        "breakpoints stand on text, images and files of the input",
        marking.breakpoint_misplaced,
        words=(marking.NOT_AN_INPUT,),
    ),
}

RULES: Final[Mapping[str, Rule]] = {**_ANTHROPIC, **_BOUND, **_OPENAI_RULES}
