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
from pagein.gateway.settings import GatewaySettings
from pagein.policy.eviction.overflow import Valve
from pagein.policy.eviction.residency import PRICED
from pagein.policy.stubs.previews import Previews
from pagein.settings.kinds import Key, choice, flag, number, text, texts, whole

_RESIDENCY, _PREVIEWS, _VALVE = PRICED, Previews(), Valve()
_ENGINE = Settings()
_READING, _RECALL = _ENGINE.reading, _ENGINE.recall
_GATEWAY: Final = {one.name: one.default for one in fields(GatewaySettings)}

ENGINE: Final[tuple[Key, ...]] = (
    choice(
        "residency",
        "usual",
        ("usual", "thrifty"),
        "How long results stay. `thrifty` puts the bill first: reads of files leave sooner, so more edits have to recall what they quote.",
    ),
    whole("keep_calls", _RESIDENCY.keep_calls, "Model calls that a result stays at least."),
    whole("keep_reads", _RESIDENCY.keep_reads, "The same for reads of files that nothing is known of."),
    whole("keep_calls_free", _RESIDENCY.keep_calls_free, "The same for other results where a rewrite is cheap anyway."),
    whole("min_tokens", _RESIDENCY.min_tokens, "Results below so many tokens stay for good."),
    whole(
        "previews_from",
        _PREVIEWS.chars,
        "Outputs from so many characters on enter as previews. 0: every output enters whole (*lossless only*).",
    ),
    whole("previews_show", _PREVIEWS.shown, "About so many characters of them are shown."),
    number(
        "valve", _VALVE.share, "The share of the window at which results leave if the bankroll covers it. 0: never."
    ),
    number("valve_limit", _VALVE.limit, "The share of the window at which results leave whatever that costs."),
    number("valve_low", _VALVE.low, "The share that it empties the window to."),
    whole(
        "valve_pastes",
        _VALVE.pastes,
        "Where results are not enough for that: the user's texts from so many characters on leave but for head and tail. 0: none does; else 1,000 or more.",
    ),
    whole(
        "window", _VALVE.window, "Tokens that the model's window holds, for models that are not in the price tables."
    ),
    flag(
        "arguments",
        default=False,
        says="Mask text of files in the arguments of old calls too. Only where a hook can hold back a call that would write what stands for it.",
        own=True,
    ),
    choice(
        "thinking",
        "kept",
        ("kept", "leaves"),
        "What becomes of what the model thought in turns that are over, behind what an epoch rewrites. `leaves`: it is not sent any more. Models that bind their thinking leave no choice.",
    ),
    texts("excluded", "Patterns of file names whose content is never stored, beside those that always hold."),
    flag("manifest", default=False, says="List what left for the model, a page at each epoch's edge."),
    whole("manifest_budget", _ENGINE.manifest_budget, "Tokens that one such page may take."),
    flag(
        "read_new_answers",
        default=_READING.new_answers,
        says="Answer a read also by *moved*, by a diff of a range and by text with markers in it, beside *unchanged* and whole diffs.",
    ),
    whole(
        "read_min_run",
        _READING.min_run,
        "The shortest run of known lines that a marker may stand for within such text.",
    ),
    whole("read_max_bytes", _READING.max_bytes, "No text beyond so many bytes is compared with an earlier one."),
    whole("read_max_lines", _READING.max_lines, "Nor one of so many lines or more."),
    number("read_byte_ratio", _READING.byte_ratio, "A diff is sent only below this share of the text's bytes."),
    number("read_line_ratio", _READING.line_ratio, "And only up to this share of its lines."),
    whole("read_context", _READING.context, "Unchanged lines shown around a change in a diff."),
    whole("recall_lines", _RECALL.caps.lines, "Lines that one recall or search shows at most."),
    whole("recall_bytes", _RECALL.caps.bytes, "Bytes of the same."),
    whole("search_matches", _RECALL.matches, "Matches that one search is answered with."),
    whole("search_per_object", _RECALL.per_object, "Matches of one object among them."),
    number("search_seconds", _RECALL.seconds, "Seconds after which a search looks into no further object."),
    whole("ingest_files", _ENGINE.ingest.files, "Files that one ingest may match."),
    whole("ingest_bytes", _ENGINE.ingest.bytes, "Bytes that one ingest may store."),
    flag("rereads", default=True, says="Answer what a client's own tools read again by a marker or a diff."),
    choice(
        "marks",
        "extended",
        ("extended", "respected"),
        "Whether cache marks of ours stand beside the client's where an epoch opens, or theirs are only respected.",
    ),
    flag(
        "witness", default=False, says="Let an independent checker look at each answer and request before it goes out."
    ),
    text(
        "store",
        None,
        "The store's file, a folder to put it in, or `postgresql://...`. The default is one file per workspace in the user's data folder.",
        own=True,
    ),
)

GATEWAY: Final[tuple[Key, ...]] = (
    text("anthropic", _GATEWAY["anthropic"], "Where requests for Anthropic go.", own=True),
    text("openai", _GATEWAY["openai"], "Where requests for OpenAI go.", own=True),
    text("chatgpt", _GATEWAY["chatgpt"], "Where requests for OpenAI go that are made with a ChatGPT login.", own=True),
    text("host", _GATEWAY["host"], "Where the gateway listens.", own=True),
    whole("port", _GATEWAY["port"], "Its port; 0: any that is free.", own=True),
    texts("hosts", "Names, beside loopback's, under which it answers who does not show the token.", own=True),
    number(
        "budget",
        _GATEWAY["budget"],
        "Seconds that a decision may take; then the last rendering goes out with what is new, or the client's own bytes.",
    ),
    whole("body_limit", _GATEWAY["body_limit"], "Bytes of the longest request that is taken."),
    number("silence", _GATEWAY["silence"], "Seconds without a byte from the provider until a call is given up."),
    number("grace", _GATEWAY["grace"], "Seconds that calls under way are given when the gateway is ended."),
    flag("recall", default=_GATEWAY["recall"], says="Offer the model tools that bring back what left its window."),
    whole("recalls", _GATEWAY["recalls"], "Recall rounds within one request of the client, at most."),
    flag(
        "subscriptions",
        default=_GATEWAY["subscriptions"],
        says="Also change requests that are made with a subscription's login. The vendor may not allow that: at your own risk.",
        own=True,
    ),
    flag(
        "keep_alive",
        default=_GATEWAY["keep_alive"],
        says="Choose the cache's lifetime, and send one request of our own, on your account, where a pause would void the cache.",
        own=True,
    ),
    whole("keep_alive_session", _GATEWAY["keep_alive_session"], "At most so many of them for a session.", own=True),
    number(
        "keep_alive_session_bit",
        _GATEWAY["keep_alive_session_bit"],
        "At most for so much, in uncached input tokens.",
        own=True,
    ),
    whole("keep_alive_hour", _GATEWAY["keep_alive_hour"], "At most so many of them in an hour.", own=True),
    number(
        "keep_alive_hour_bit",
        _GATEWAY["keep_alive_hour_bit"],
        "At most for so much in an hour, in uncached input tokens.",
        own=True,
    ),
)

KEYS: Final[Mapping[str, Key]] = {one.name: one for one in (*ENGINE, *GATEWAY)}
"""Every setting by name."""
