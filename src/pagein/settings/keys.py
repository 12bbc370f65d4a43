"""Table of settings: name, kind of value, default, meaning, and permission for a workspace's file.

Rules of this file
------------------
1. A setting has one name in every layer: `port` in a file is `PAGEIN_PORT` in the environment.
2. A workspace's file comes with the workspace, from whoever wrote it. Settings that decide where requests, keys and
   texts go, or who may ask for them, are therefore for the user alone (`own`).
3. No layer can remove a built-in pattern of excluded files.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Final

from pagein.engine.engine import Settings
from pagein.gateway.settings import FOLLOWS, GatewaySettings
from pagein.policy.delegation.limits import USUAL_LIMITS
from pagein.policy.economics.tool_deferral import FLOOR_PAGING
from pagein.policy.eviction.overflow import Valve
from pagein.policy.eviction.presets import DEFAULT, MASKING, OLDER_NAMES, PRESETS
from pagein.policy.eviction.residency import PRICED
from pagein.policy.guards.limits import PROFILES
from pagein.policy.stubs.previews import Previews
from pagein.providers.vendors import VENDORS
from pagein.settings.kinds import Key, choice, flag, number, text, texts, whole
from pagein.settings.layout_keys import LAYOUT

_RESIDENCY, _PREVIEWS, _VALVE, _CHILDREN, _ENGINE = PRICED, Previews(), Valve(), USUAL_LIMITS, Settings()
_READING, _RECALL, _GUARDS = _ENGINE.reading, _ENGINE.recall, _ENGINE.guards
_GATEWAY: Final = {one.name: one.default for one in fields(GatewaySettings)}
AGES: Final = {name: age for name, age in _RESIDENCY.rules.ages.items() if age.says}
"""The ages of the residency table that users may set."""

ENGINE: Final[tuple[Key, ...]] = (
    choice(
        "residency",
        DEFAULT,
        tuple(PRESETS),
        "How long results stay in the window. "
        + " ".join(f"`{one.name}`: {one.says} ({one.measured})." for one in PRESETS.values())
        + " It sets the defaults of `thinking`, `arguments`, `floor_paging`, `shown_once` and the ages.",
        older=OLDER_NAMES,
    ),
    *(whole(age.name, age.calls, age.says) for age in AGES.values()),
    whole("min_tokens", _RESIDENCY.min_tokens, "Results with fewer tokens than this never leave."),
    whole(
        "previews_from",
        _PREVIEWS.chars,
        "Outputs of at least this many characters enter as previews. 0: every output enters whole (*lossless only*).",
    ),
    whole("previews_show", _PREVIEWS.shown, "Approximate characters of a preview."),
    whole(
        "shown_once",
        _RESIDENCY.shown_once,
        "Outputs of at least this many tokens, except reads of files, may be shown by a single request, where that costs no rewrite. 0: none.",
    ),
    number(
        "valve",
        _VALVE.share,
        "Share of the window at which results leave regardless of age, if the bankroll covers the cost. 0: never.",
    ),
    number("valve_limit", _VALVE.limit, "Share of the window at which results leave regardless of cost."),
    number("valve_low", _VALVE.low, "Share of the window that remains after such an eviction."),
    whole(
        "valve_pastes",
        _VALVE.pastes,
        "User texts of at least this many characters shrink to head and tail if evicting results is not enough. 0: never; else at least 1,000.",
    ),
    whole(
        "window",
        _VALVE.window,
        "Size of the model's window in tokens. Needed for models that the price tables do not list.",
    ),
    choice(
        "arguments",
        PRESETS[DEFAULT].arguments,
        MASKING,
        "Whether file texts in the arguments of old calls are masked. `guarded`: in sessions whose agent has pagein's hook, which stops a call that would write a mask into a file. `always`: in every session.",
        older={
            "true": "always",
            "yes": "always",
            "on": "always",
            "1": "always",
            "false": "never",
            "no": "never",
            "off": "never",
            "0": "never",
        },
        own=True,
    ),
    choice(
        "thinking",
        "kept",
        ("kept", "leaves"),
        "Whether thinking of finished turns stays when the window is rewritten. `leaves`: it is removed after the first change. Models that bind thinking to the prompt always remove it.",
    ),
    texts("excluded", "More file name patterns whose content is never stored, in addition to the built-in ones."),
    flag("manifest", default=False, says="Show the model a list of evicted results, one page per epoch."),
    whole("manifest_budget", _ENGINE.manifest_budget, "Maximum tokens of one manifest page."),
    flag(
        "read_new_answers",
        default=_READING.new_answers,
        says="Also answer reads with *moved*, range diffs and text with markers, not only with *unchanged* and whole diffs.",
    ),
    whole(
        "read_min_run",
        _READING.min_run,
        "Minimum number of known lines that a marker may replace within a text.",
    ),
    whole(
        "read_max_bytes", _READING.max_bytes, "Texts of more bytes than this are not compared with an earlier version."
    ),
    whole(
        "read_max_lines",
        _READING.max_lines,
        "Texts of this many lines or more are not compared with an earlier version.",
    ),
    number("read_byte_ratio", _READING.byte_ratio, "Maximum size of a diff, as a share of the text's bytes."),
    number("read_line_ratio", _READING.line_ratio, "Maximum size of a diff, as a share of the text's lines."),
    whole("read_context", _READING.context, "Unchanged lines shown around a change in a diff."),
    whole("recall_lines", _RECALL.caps.lines, "Maximum lines of one recall or search result."),
    whole("recall_bytes", _RECALL.caps.bytes, "Maximum bytes of one recall or search result."),
    whole("search_matches", _RECALL.matches, "Maximum matches of one search."),
    whole("search_per_object", _RECALL.per_object, "Maximum matches per object of one search."),
    number("search_seconds", _RECALL.seconds, "Time limit of a search in seconds, checked before each object."),
    whole("ingest_files", _ENGINE.ingest.files, "Maximum files of one ingest."),
    whole("ingest_bytes", _ENGINE.ingest.bytes, "Maximum bytes of one ingest."),
    choice(
        "guard_profile",
        _GUARDS.profile,
        tuple(PROFILES),
        "Budget of the tool `read`. `strict`: 25 reads and 2,500 new lines between searches. `balanced`: limits that ordinary work does not meet. `off`: none.",
    ),
    choice(
        "guard_relevance",
        _GUARDS.relevance,
        ("refuse", "warn", "off"),
        "How the tool `read` treats a file outside the results of the last search.",
    ),
    choice(
        "guard_folders",
        _GUARDS.folders,
        ("refuse", "warn", "off"),
        "How the tool `read` treats files in `vendor`, `node_modules`, `.git` and `dist`.",
    ),
    *LAYOUT,
    flag(
        "deprecated_tools",
        default=False,
        says="Also offer models the tools that `read` has replaced: `read_file`, `read_symbol`, `get_snippet`, `dry_run_diff`.",
    ),
    flag("rereads", default=True, says="Answer repeated reads by the client's own tools with a marker or a diff."),
    choice(
        "marks",
        "extended",
        ("extended", "respected"),
        "`extended`: add and move cache breakpoints, and let the gateway choose cache TTLs. `respected`: leave both as the client sets them; then nothing is shown once, and no keep-alive request is sent.",
    ),
    choice(
        "floor_paging",
        PRESETS[DEFAULT].floor_paging,
        FLOOR_PAGING,
        "When tools that earlier sessions of the workspace did not use stay out of the prompt until the model searches for them. `cold`: where no cache may hold an earlier session's prompt. `always`: where it is expected to pay. Unless `never`, no attachment is sent twice. Tools: only Claude models, behind an address that knows Anthropic's tool search.",
        older={
            "true": "always",
            "yes": "always",
            "on": "always",
            "1": "always",
            "false": "never",
            "no": "never",
            "off": "never",
            "0": "never",
        },
    ),
    flag(
        "witness",
        default=False,
        says="Check each read answer and request with an independent checker before it is sent.",
    ),
    text(
        "store",
        None,
        "The store: a file, a folder for it, or `postgresql://...`. Default: one file per workspace in the user's data folder.",
        own=True,
    ),
)

GATEWAY: Final[tuple[Key, ...]] = (
    *(text(one.name, one.address, f"Address for {one.title} requests.", own=True) for one in VENDORS),
    text("chatgpt", _GATEWAY["chatgpt"], "Address for OpenAI requests with a ChatGPT login.", own=True),
    text("host", _GATEWAY["host"], "Address on which the gateway listens.", own=True),
    whole("port", _GATEWAY["port"], "Port on which the gateway listens. 0: any free port.", own=True),
    texts(
        "hosts",
        "Host names, in addition to loopback, for which the gateway accepts requests without the token.",
        own=True,
    ),
    number(
        "budget",
        _GATEWAY["budget"],
        "Seconds that a decision may take. After that the fallback is sent: the last rendering plus new messages, or the client's own bytes.",
    ),
    whole("body_limit", _GATEWAY["body_limit"], "Maximum bytes of a request."),
    number("silence", _GATEWAY["silence"], "Seconds without a byte from the provider after which a call fails."),
    number("grace", _GATEWAY["grace"], "Seconds that running calls get when the gateway stops."),
    flag("recall", default=_GATEWAY["recall"], says="Offer recall tools to the model."),
    flag(
        "memory",
        default=_GATEWAY["memory"],
        says="Keep the objects of sessions (chats, calls, files) and the index of searches up to date while the gateway runs. Else commands bring them up to date.",
    ),
    choice(
        "follow_files",
        FOLLOWS[0],
        FOLLOWS,
        "Whether the gateway follows on the disk the files that sessions of this machine touched: changes that no call explains, moves and deletions. `on`: `blame` calls such a change unknown. `person`: a change while no agent of its store is at work counts as a person's; only for a machine on which nothing else changes the files of a workspace.",
        own=True,
    ),
    number(
        "retention",
        _GATEWAY["retention"],
        "Days after its last use from which a running gateway may remove the journal of a session, a day after it was announced. Its objects stay. 0: never.",
        own=True,
    ),
    number(
        "quota",
        _GATEWAY["quota"],
        "Gigabytes (of 1,000,000,000 bytes) of journals and contents in the store. Above it, a running gateway may remove the journals of sessions that were not used for 7 days, the oldest first, a day after it was announced. Their objects stay. 0: no limit.",
        own=True,
    ),
    flag(
        "recall_everything",
        default=_GATEWAY["recall_everything"],
        says="Let recall tools also search and show what other sessions in the store said, read and wrote. Only for a gateway whose callers may all read them.",
        own=True,
    ),
    flag(
        "note_guidance",
        default=_GATEWAY["note_guidance"],
        says="Ask the model, in the description of the recall tools, to write linked Markdown notes for later sessions. About 110 tokens in each request.",
    ),
    whole("recalls", _GATEWAY["recalls"], "Maximum recall rounds per client request."),
    flag(
        "children",
        default=_GATEWAY["children"],
        says="Let the model ask child models about stored objects, at its own provider and with the key of the client's current request: your account pays. Never with a subscription login.",
        own=True,
    ),
    number(
        "children_hour_usd",
        _GATEWAY["children_hour_usd"],
        "Maximum cost of these child models per hour, in dollars.",
        own=True,
    ),
    flag(
        "subscriptions",
        default=_GATEWAY["subscriptions"],
        says="Also change requests made with a subscription login. The vendor may forbid it: at your own risk.",
        own=True,
    ),
    flag(
        "keep_alive",
        default=_GATEWAY["keep_alive"],
        says="Send a keep-alive request on your account when a pause would void the cache. `pagein serve` asks once in a terminal.",
        own=True,
    ),
    whole("keep_alive_session", _GATEWAY["keep_alive_session"], "Maximum keep-alive requests per session.", own=True),
    number(
        "keep_alive_session_bit",
        _GATEWAY["keep_alive_session_bit"],
        "Maximum cost of keep-alive requests per session, in BIT (uncached input tokens).",
        own=True,
    ),
    whole("keep_alive_hour", _GATEWAY["keep_alive_hour"], "Maximum keep-alive requests per hour.", own=True),
    number(
        "keep_alive_hour_bit",
        _GATEWAY["keep_alive_hour_bit"],
        "Maximum cost of keep-alive requests per hour, in BIT (uncached input tokens).",
        own=True,
    ),
    flag(
        "ask_cache_misses",
        default=_GATEWAY["ask_cache_misses"],
        says="Ask Anthropic with each call why it missed the cache (`diagnostics`), and show its reason beside pagein's. Stops after a refusal.",
        own=True,
    ),
    text(
        "otel",
        _GATEWAY["otel"],
        "Address of an OpenTelemetry collector, such as `http://127.0.0.1:4318`, that gets the figures and names of each model call, but no content. Needs the extra `otel`.",
        own=True,
    ),
)

MCP: Final[tuple[Key, ...]] = (
    texts(
        "mcp_tools",
        "Tools that `pagein mcp` offers beside `read`, `search` and `peek`, by the names of [tools](../tools.md). Each is in every prompt of the client.",
    ),
    flag(
        "mcp_structured",
        False,  # noqa: FBT003 - the default of a flag
        "Whether answers over MCP also have a structured form. Claude Code and codex then show their models that form in place of the text.",
    ),
    texts(
        "mcp_workspaces",
        "Folders, beside its own, whose files the MCP server may read. Not needed for clients that send their roots.",
        own=True,
    ),
)

CHILDREN: Final[tuple[Key, ...]] = (
    text(
        "child_model",
        "",
        "Model that answers delegated questions, as provider/model. Without it, models are not offered the tools `query`, `batch` and `extract`.",
        own=True,
    ),
    text("child_deep_model", "", "Model of the children of children. Default: `child_model`.", own=True),
    whole("child_depth", _CHILDREN.depth, "1: children may not ask children of their own. 2: they may.", own=True),
    whole("child_calls", _CHILDREN.calls, "Maximum children of one operation, at every depth together.", own=True),
    whole("child_concurrency", _CHILDREN.concurrency, "Maximum children that are asked at the same time.", own=True),
    number("child_seconds", _CHILDREN.child_seconds, "Seconds that one child may take.", own=True),
    number("child_operation_seconds", _CHILDREN.operation_seconds, "Seconds that one operation may take.", own=True),
    whole("child_tokens", _CHILDREN.output_tokens, "Maximum output tokens of one call to a child model.", own=True),
    whole("child_turns", _CHILDREN.turns, "Maximum calls to the model for one child.", own=True),
    number(
        "child_usd",
        _CHILDREN.usd,
        "Maximum cost of one operation in dollars. Checked before each call, for models in the price tables.",
        own=True,
    ),
    whole(
        "child_unpriced_tokens",
        _CHILDREN.unpriced_tokens,
        "Maximum tokens of one operation on models that the price tables do not list, in place of a cost.",
        own=True,
    ),
    whole(
        "child_confirm_above",
        _CHILDREN.confirm_above,
        "Number of children above which a person is asked first. Where nobody can be asked, the operation runs if its estimate is within `child_usd`.",
        own=True,
    ),
    flag(
        "child_memo",
        default=True,
        says="Answer a repeated question (same model, words and text) from the memory of this process, without a call.",
        own=True,
    ),
    text(
        "child_prompt",
        "",
        "System prompt of children, in place of the built-in one. `{{default}}` stands for the built-in prompt, `{task}`, `{tools}`, `{depth}` and `{depths}` for their values.",
        own=True,
    ),
    text(
        "delegation_prompt",
        "",
        "Words about child models in the system prompt of the model that asks, in place of the built-in ones. `{{default}}` stands for these.",
        own=True,
    ),
)

PI: Final[tuple[Key, ...]] = (
    choice(
        "pi_read_cache",
        "on",
        ("on", "shadow", "off"),
        "What pi's extension does with repeated reads. `on`: answer them with a marker or a diff. `shadow`: decide and check the answer, but change nothing; `/readcache-status` shows the result.",
    ),
    flag(
        "pi_read_modes",
        default=False,
        says="Give pi's own tool `read` the modes of the unified read as optional arguments. About 700 tokens in each request.",
    ),
    flag(
        "pi_paging",
        default=False,
        says="Let pi's extension evict old results from the context, where a session does not say otherwise (`/rlm on`, `/rlm off`).",
    ),
    choice(
        "pi_compaction",
        "cancel",
        ("cancel", "allow"),
        "What pi's extension does with pi's compaction while paging is on. `cancel`: cancel it as long as the request fits the window; old results then leave with the next request. `allow`: never cancel it.",
    ),
)

KEYS: Final[Mapping[str, Key]] = {one.name: one for one in (*ENGINE, *GATEWAY, *MCP, *CHILDREN, *PI)}
"""Every setting by name."""
