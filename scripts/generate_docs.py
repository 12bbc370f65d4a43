"""Write docs/reference/ from the code: the command line from its own help, the JSON bill from the docstrings of its types, the
notes of the journal from the table of their kinds, the rules of the providers from the tables that the checker works with, the
settings from their keys, the Python API from its signatures, the tool `read` and the tiers from their tables.

`--check` writes nothing and fails where a page is stale.
"""

import ast
import dataclasses
import inspect
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

import typer

from pagein import errors, wiring
from pagein.assembly import (
    AssembledPrompt,
    HistoryMessage,
    PooledAgent,
    PooledCall,
    PromptContents,
    TieredPrompts,
    pooled,
    tiered,
)
from pagein.cli.cli import app
from pagein.cli.corpus_figures import CLIENTS_TTLS, NEW_STORE, NO, SESSIONS, YES, share
from pagein.engine.engine import Engine
from pagein.engine.engine import Settings as EngineSettings
from pagein.engine.prepared_request import Observation, PreparedRequest
from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.engine.session_pools import PoolReply, SessionPools
from pagein.engine.window.pin_actions import InWindow, Touch
from pagein.model import bill
from pagein.model.laid_prompts import LaidBlock
from pagein.model.note_forms import KINDS, NoteKind
from pagein.policy.eviction.overflow import Valve
from pagein.policy.eviction.presets import DEFAULT, PRESETS
from pagein.policy.eviction.quote_odds import TERMS, QuoteOdds
from pagein.policy.eviction.residency import Residency
from pagein.policy.eviction.residency_rules import USUAL, ResidencyRule
from pagein.policy.eviction.waiting_residents import ARGUMENT_KINDS
from pagein.policy.layouts.pooled_window import PooledRules
from pagein.policy.pools.pool_values import PoolRules, PoolState
from pagein.policy.stubs.previews import Previews
from pagein.policy.tiers.tier_rules import CHOICES
from pagein.policy.tiers.tier_values import BANDS
from pagein.policy.tiers.transitions import EVENTS, TRANSITIONS, Transition
from pagein.ports import HOOK_LOSSES
from pagein.providers.caches.cache_doctor import Diagnosis
from pagein.providers.prices.model_abilities import FEATURES, TABLE, Abilities
from pagein.providers.validity import Api, ValidityRule
from pagein.providers.wire import RULES, format_named
from pagein.replay.policies.ablation import LAYERS
from pagein.settings.keys import CHILDREN, ENGINE, GATEWAY, MCP, PI
from pagein.settings.kinds import Key
from pagein.settings.sources import NAME, VARIABLE
from pagein.tools.brief import answer_call, definitions
from pagein.tools.calls import Offer
from pagein.tools.delegation_tools import BATCH, QUERY
from pagein.tools.expand import EXPAND
from pagein.tools.ingest import INGEST
from pagein.tools.peek import PEEK
from pagein.tools.reading.argument_matrix import matrix_table
from pagein.tools.reading.read_problems import code_table
from pagein.tools.search import SEARCH
from pagein.tools.version_tools import HISTORY, SELECT
from pagein.tools.window_tools import PIN
from pagein.ui.columns import COST, DEEDS, POLICY_MEANINGS, BillColumn

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"
README = ROOT / "README.md"
RESIDENCY = REFERENCE / "residency.md"
RESIDENCY_PAGE = ROOT / "docs" / "residency.md"
PI_PAGE = REFERENCE / "pi.md"
RESULTS = ROOT / "docs" / "reference" / "residency-results.md"
READ_PAGE = REFERENCE / "read.md"
TOOLS_PAGE = REFERENCE / "tools.md"
BENCHMARKS = REFERENCE / "benchmarks.md"
COMPARISON = ROOT / "docs" / "comparison.md"
NOTICE = "<!-- Written by scripts/generate_docs.py (make docs checks it); edit the code, not this page. -->"


def main() -> int:
    """Write the pages, or with --check compare them. Returns the exit status."""
    pages = {
        REFERENCE / "api.md": python_api(),
        REFERENCE / "cli.md": command_line(),
        REFERENCE / "json.md": json_bill(),
        REFERENCE / "notes.md": journal_notes(),
        READ_PAGE: read_tool(_read(READ_PAGE)),
        REFERENCE / "rules.md": request_rules(),
        REFERENCE / "settings.md": settings(),
        REFERENCE / "tiers.md": tiers(),
        TOOLS_PAGE: with_arguments(_read(TOOLS_PAGE)),
        README: with_corpus_figures(_read(README), figures_of_readme()),
        RESULTS: with_corpus_figures(_read(RESULTS), figures_of_results()),
        RESIDENCY: with_residency_rules(_read(RESIDENCY)),
        RESIDENCY_PAGE: _between(_read(RESIDENCY_PAGE), "ages", default_ages()),
        COMPARISON: _between(_read(COMPARISON), "peers", peers(_read(BENCHMARKS))),
        PI_PAGE: _between(_read(PI_PAGE), "hooks", hook_table()),
    }
    stale = [path for path, text in pages.items() if _read(path) != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{_named(path)} is stale; run: .venv/bin/python scripts/generate_docs.py")
        return 1 if stale else 0
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for path in stale:
        path.write_text(pages[path], encoding="utf-8")
        print(f"wrote {_named(path)}")
    return 0


def _named(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def peers(benchmarks: str) -> Iterator[str]:
    """The columns of the first table of all programs that a newcomer needs."""
    table = benchmarks[benchmarks.index("| row | whole bill |") :].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    shown = {
        "row": "program",
        "whole bill": "whole bill",
        "breakpoint moved": "breakpoint moved",
        "prompt tokens": "prompt tokens",
        "lost": "quotes lost",
    }
    shown |= {"faults": "faults", "refused": "refused"}
    places = [rows[0].index(name) for name in shown]
    lines = [[*shown.values()], ["---"] * len(places), *([row[place] for place in places] for row in rows[2:])]
    yield from (f"| {' | '.join(line)} |" for line in lines)


def with_corpus_figures(page: str, lines: Iterable[str]) -> str:
    """The page with what pagein comes to on recorded sessions between its marks."""
    return _between(page, "figures", lines)


def figures_of_readme() -> Iterator[str]:
    """The figures for a newcomer."""
    less, claude = (round(100 * (1 - one)) for one in (NO.cost, NO.claude_code))
    median, bridged = (round(100 * (1 - one)) for one in (NO.median, YES.median))
    new_less, new_median = (round(100 * (1 - one)) for one in (NEW_STORE.cost, NEW_STORE.median))
    yield f"On {SESSIONS} recorded sessions of real users, with default settings, pagein lowers the bill by {less} % against the same calls without it (mean"
    yield f"of six sources), and by {claude} % for Claude Code alone. The median session of Claude Code saves {median} %{', with keep-alive requests or without' if bridged == median else f', and {bridged} % with keep-alive requests'}. In a new store"
    yield f"the bill falls by {new_less} %, that median session by {new_median} %: sessions borrow from what earlier ones saved ([all figures](docs/reference/residency-results.md#cache-lifetimes))."


def figures_of_results() -> Iterator[str]:
    """The same figures as a table, with those of a gateway that leaves TTLs to the client."""
    yield "| figure | client's TTLs | chosen TTLs, in a new store | in an older store: **no**, the default | and keep-alive requests: **yes** |"
    yield "|---|---|---|---|---|"
    for name, says in (
        ("cost", "cost, macro"),
        ("claude_code", "three Claude Code sources"),
        ("median", "the median session, Claude Code"),
    ):
        yield f"| {says} | {' | '.join(share(getattr(one, name)) for one in (CLIENTS_TTLS, NEW_STORE, NO, YES))} |"


def hook_table() -> Iterator[str]:
    """The rows of what a host loses without a hook."""
    yield "| missing | lost | what remains |"
    yield "|---|---|---|"
    for one in HOOK_LOSSES.values():
        yield f"| {one.missing} | {one.lost} | {one.remains} |"


def with_residency_rules(page: str) -> str:
    """The page with the rows of the residency table between its marks: those for results, those for arguments of calls."""
    results = [row for row in USUAL.rows if row.kind not in ARGUMENT_KINDS]
    arguments = [row for row in USUAL.rows if row.kind in ARGUMENT_KINDS]
    odds = next(row.limit.odds for row in USUAL.rows if row.limit is not None)
    tables = (
        ("results", _residency_table(results)),
        ("arguments", _residency_table(arguments)),
        ("odds", _odds_table(odds)),
    )
    for name, table in tables:
        page = _between(page, name, table)
    return page


TIERS_INTRO = """The [tiered layout](../layouts.md#tiers) keeps items in tiers by *N*: with the preset `pagein`, the number of requests since the last
change."""
TIERS_SEED = """Items move by the rows below. A file or symbol entry with N of 3 leaves the active list. A message leaves it when other items move
anyway, or when the old messages have more tokens than `cache_min_tokens` times `cache_buffer_multiplier` (1024 by 1.5). With
`cache_min_tokens=0` no tier asks for tokens, and history stays active."""
TIERS_CORRECTIONS = """The seed design rewrites what is cached. Each correction is a choice of its own (`TierRules`). The promotion `rewritten` needs
six others at their corrected value; `TierRules` refuses the rest."""


def tiers() -> str:
    """The page of the stability tiers: thresholds, transitions, corrections."""
    lines = [NOTICE, "", "# Tiers", "", TIERS_INTRO, "", *_tier_bands()]
    lines += ["", "## Preset `seed`", "", TIERS_SEED, "", *_tier_transitions()]
    return "\n".join([*lines, "", "## Corrections", "", TIERS_CORRECTIONS, "", *_tier_choices(), ""])


def _tier_bands() -> Iterator[str]:
    yield "| tier | N of an item that enters | N at which it goes on | to |"
    yield "|---|---|---|---|"
    for band in reversed(BANDS):
        yield f"| {band.tier} | {band.entry_n} | {band.promotion_n or '-'} | {band.above or '-'} |"


def _tier_transitions() -> Iterator[str]:
    yield "| event of an item | its tier | its tier after | its N after |"
    yield "|---|---|---|---|"
    for event, says in EVENTS.items():
        alike: dict[tuple[str, str], list[str]] = {}
        for band in BANDS:
            if (row := TRANSITIONS.get((band.tier, event))) is not None:
                after = _tier_after(row) if row.beyond is not None or row.to != band.tier else "the same"
                alike.setdefault((after, _n_after(row)), []).append(band.tier)
        yield from (f"| {says} | {', '.join(tiers)} | {after} | {n} |" for (after, n), tiers in alike.items())


def _tier_after(row: Transition) -> str:
    return row.to if row.beyond is None else f"{row.to}; {row.beyond} once N would be {row.until}"


def _n_after(row: Transition) -> str:
    n = "the same" if row.same else "N + 1" if row.n is None else str(row.n)
    return n if row.beyond is None else f"{n}; {row.until}"


def _tier_choices() -> Iterator[str]:
    yield "| choice | preset `seed` | preset `pagein` | what the first did |"
    yield "|---|---|---|---|"
    for one in CHOICES:
        yield f"| `{one.name}` | {one.seed} | {one.corrected} | {one.why} |"


def _between(page: str, name: str, lines: Iterable[str]) -> str:
    begin, end = f"<!-- {name}: written by scripts/generate_docs.py -->\n", f"<!-- /{name} -->"
    before, first, rest = page.partition(begin)
    _, second, after = rest.partition(end)
    if not (first and second):
        raise SystemExit(f"a page has lost its marks: {begin}")
    return before + begin + "\n".join(lines) + "\n" + end + after


def default_ages() -> Iterator[str]:
    """What may leave, with the default preset."""
    yield from ("| what | may leave after |", "|---|---|")
    yield from (f"| {row.says} | {_since(row)} |" for row in USUAL.rows if row.kind not in ARGUMENT_KINDS)


def _residency_table(rows: list[ResidencyRule]) -> Iterator[str]:
    others = [{row.name: row for row in USUAL.at(name).rows} for name in PRESETS if name != DEFAULT]
    names = " | ".join(name for name in PRESETS if name != DEFAULT)
    yield f"| what | may leave after | {names} | where a rewrite is cheap anyway | why | measured |"
    yield f"|---|---|{'---|' * len(others)}---|---|---|"
    for row in rows:
        cheap = "the same" if row.cheap_wait is None else _calls(row.cheap_wait)
        other = [_age(rows[row.name]) for rows in others]
        ages = (_since(row), *other, "never" if row.wait is None else cheap)
        yield f"| {row.says} | {' | '.join(ages)} | {row.why} | {row.measured} |"


def _odds_table(odds: QuoteOdds) -> Iterator[str]:
    yield "| term | thousandths of a logit for each unit | its usual value |"
    yield "|---|---|---|"
    for (name, each), mean in zip(odds.coefficients, odds.means, strict=True):
        term = TERMS[name]
        words = term.says.replace("{:,}", "*n*").replace("{}", "*n*") + (
            ", 4 log2(*n* + 1)" if "{" in term.says else ""
        )
        yield f"| {words} | {each} | {mean} |"
    yield f"| always | {odds.intercept} | |"


def _age(row: ResidencyRule) -> str:
    if row.limit is None or row.wait is None:
        return _calls(row.wait)
    return f"under {row.limit.quotes} quotes per million tokens expected, after {_calls(row.wait)} and each {row.wait} more"


def _since(row: ResidencyRule) -> str:
    if row.limit is not None:
        return _age(row)
    setting = f" (`{row.after.name}`)" if row.after.says else ""
    clock = {"shown": "", "touched": " without a touch of the file", "shown whole": " after that"}[row.clock]
    return "never" if row.wait is None else f"{_calls(row.wait)}{clock}{setting}"


def _calls(wait: int | None) -> str:
    return "never" if wait is None else f"{wait} calls"


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


HEAD = ("| | takes | default | |", "|---|---|---|---|")
FEW = 20
"""Options of more commands than this are described once."""
SHARED = ("## Options of many commands", "", "Each command names those that it has, behind its own options.", "")


def command_line() -> str:
    """Every command: what it does, its arguments, its options, its examples."""
    root = typer.main.get_command(app)
    commands = getattr(root, "commands", {})
    shown = [("pagein", root, 2)]
    for name, command in sorted(commands.items()):
        shown.append((f"pagein {name}", command, 2))
        shown += [(f"pagein {name} {below}", one, 3) for below, one in getattr(command, "commands", {}).items()]
    counts = Counter(row for _, command, _ in shown for row in _rows(command))
    shared = [row for row, count in counts.most_common() if count > FEW and row.startswith("| `--")]
    parts = [NOTICE, "", "# Command line", *_panels(commands), "", *SHARED, *HEAD, *shared, ""]
    for path, command, level in shown:
        parts += _command(path, command, level, shared)
    return "\n".join(parts).rstrip() + "\n"


def _panels(commands: Mapping[str, object]) -> Iterator[str]:
    """The commands by the panels of the help, each with its first sentence."""
    panel = ""
    places = {one: place for place, one in reversed(list(enumerate(map(_panel, commands.values()))))}
    for name, command in sorted(commands.items(), key=lambda named: places[_panel(named[1])]):
        if panel != (now := _panel(command)):
            panel = now
            yield from ("", f"**{panel}**", "")
        first = inspect.cleandoc(getattr(command, "help", None) or "").partition("\n")[0]
        yield f"- [`{name}`](#pagein-{name}): {first}"


def _panel(command: object) -> str:
    return str(getattr(command, "rich_help_panel", ""))


def _rows(command: object) -> list[str]:
    return [row for parameter in getattr(command, "params", ()) if (row := _parameter(parameter))]


def _command(path: str, command: object, level: int, shared: Container[str]) -> Iterator[str]:
    yield f"{'#' * level} `{path}`"
    yield ""
    yield inspect.cleandoc(getattr(command, "help", None) or "")
    yield ""
    rows = _rows(command)
    if own := [row for row in rows if row not in shared]:
        yield from (*HEAD, *own, "")
    if also := [row.split("|")[1].strip() for row in rows if row in shared]:
        yield from (f"Also {', '.join(also)}.", "")
    epilog = getattr(command, "epilog", None)
    if epilog:
        kind, _, examples = str(epilog).partition(":")
        yield from (f"{kind}:", "", "```sh", *examples.strip().split("\n\n"), "```", "")


def _parameter(parameter: object) -> str:
    if "completion" in str(getattr(parameter, "name", "")) or getattr(parameter, "hidden", False):
        return ""
    names = [*getattr(parameter, "opts", ()), *getattr(parameter, "secondary_opts", ())]
    is_argument = getattr(parameter, "param_type_name", "") == "argument"
    name = str(getattr(parameter, "metavar", "")) if is_argument else ", ".join(names)
    takes = (
        "" if is_argument or getattr(parameter, "is_flag", False) else str(getattr(parameter, "metavar", None) or "")
    )
    told = str(getattr(parameter, "help", "") or "").replace("|", "\\|")
    cells = (f"`{name}`", takes, _default(parameter))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} | {told} |"


def _default(parameter: object) -> str:
    shown = getattr(parameter, "show_default", None)
    if isinstance(shown, str):
        return shown
    value = getattr(parameter, "default", None)
    return (
        ""
        if value in (None, False, (), []) or callable(value)
        else f"`{str(value).lower() if value is True else value}`"
    )


def json_bill() -> str:
    """The bill that `--json` prints: its objects, and what the policies and the columns of the tables mean."""
    source = inspect.getsource(bill)
    tree = ast.parse(source)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    order = ["Bill", *(node.name for node in classes if node.name != "Bill")]
    by_name = {node.name: node for node in classes}
    parts = [NOTICE, "", "# The bill as JSON", "", "`pagein replay --json` prints one object of the shape `Bill`."]
    parts += [_prose(ast.get_docstring(tree) or ""), ""]
    for name in (name for name in order if name in _reachable(by_name)):
        parts += _type(by_name[name])
    parts += ["## Policies", "", *(f"- `{name}`: {meaning}" for name, meaning in POLICY_MEANINGS.items()), ""]
    parts += ["## Layers", "", "What `--without` takes away.", ""]
    parts += [*(f"- `{name}`: {layer.does}" for name, layer in LAYERS.items()), ""]
    parts += ["## Columns of the tables", "", *_columns((*COST, *DEEDS[1:])), ""]
    return "\n".join(parts).rstrip() + "\n"


def _reachable(by_name: dict[str, ast.ClassDef]) -> set[str]:
    """The types that a Bill is made of; those of the pictures are no part of the JSON."""
    found: set[str] = set()
    waiting = ["Bill"]
    while waiting:
        name = waiting.pop()
        if name in by_name and name not in found:
            found.add(name)
            waiting += re.findall(r"\w+", " ".join(kind for _, kind in _fields(by_name[name])))
    return found


def _type(node: ast.ClassDef) -> Iterator[str]:
    yield f"## {node.name}"
    yield ""
    yield _prose(ast.get_docstring(node) or "")
    yield ""
    yield from ("| field | type |", "|---|---|")
    yield from (f"| `{name}` | `{kind.replace('|', chr(92) + '|')}` |" for name, kind in _fields(node))
    yield ""


def _fields(node: ast.ClassDef) -> list[tuple[str, str]]:
    return [
        (ast.unparse(field.target), ast.unparse(field.annotation))
        for field in node.body
        if isinstance(field, ast.AnnAssign)
    ]


def _prose(docstring: str) -> str:
    """A docstring as Markdown: lines that begin with names and a colon become a list."""
    lines = []
    for line in docstring.splitlines():
        for part in [part for part in re.split(r";\s+(?=[a-z_]+: )|;$", line) if part] or [""]:
            named = re.match(r"((?:[\w*]+(?:, )?)+): (.*)", part)
            lines.append(f"- `{named[1]}`: {named[2]}" if named and named[1][0].islower() else part)
    return "\n".join(lines)


WIRES: dict[Api, str] = {
    "anthropic": "Messages",
    "openai_chat": "Chat",
    "openai_responses": "Responses",
    "gemini_generate_content": "Gemini",
}
RULES_INTRO = """pagein sends no request that its provider would refuse. These are the known reasons, in the provider's own words where we
have seen them (others are marked *ours*), with `{...}` for variable parts. `pagein.providers.wire` checks whole requests, or
only their new parts:

```python
>>> from pagein.providers.wire import check_body
>>> body = {"model": "claude-opus-5", "messages": [{"role": "assistant", "content": "hello"}]}
>>> [(one.rule, one.message, one.status) for one in check_body(body, "anthropic")]
[('M8', 0, 400), ('M9', 0, 400)]

```

The sources are the vendors' documentation, for Chat and Responses error texts in public issues of client projects, read between 2026-08-22
and 2026-11-21. A rule that depends on the model refuses only what is documented for it; a model that is not in the table below is refused nothing
for what it is. Thinking is compared with what is known of the answers it came with (`with_request`), headers and account only where
they are told (`target`)."""


def request_rules() -> str:
    """Every reason for which providers refuse requests, and what each model refuses."""
    parts = [NOTICE, "", "# Why a request would be refused", "", RULES_INTRO, ""]
    parts += ["## Rules", "", "| id | in | rule | the provider says | status |", "|---|---|---|---|---|"]
    parts += [_rule(name, rule) for name, rule in RULES.items()]
    parts += ["", "## Models", "", "What is documented to be refused, by model and first day of the row.", ""]
    parts += ["| model | from | refuses | binds thinking | source |", "|---|---|---|---|---|"]
    parts += [_abilities(row) for rows in TABLE.values() for row in rows]
    return "\n".join(parts).rstrip() + "\n"


def _rule(name: str, rule: ValidityRule) -> str:
    said = [*(_code(text) for text in rule.errors), *(f"*ours:* {_code(text)}" for text in rule.words)]
    told = "<br>".join(said) or f"*refuses nothing:* {rule.kept}"
    status = str(rule.status) if rule.check else ""
    wires = ", ".join(WIRES[api] for api in WIRES if name in format_named(api).validity.rules)
    return f"| {name} | {wires} | {rule.says} | {told} | {status} |"


def _code(text: str) -> str:
    return f"`` {text.replace('|', chr(92) + '|')} ``" if "`" in text else f"`{text}`"


def _abilities(row: Abilities) -> str:
    refuses = ", ".join(one for one in FEATURES if one in row.refuses)
    binds = {True: "yes" if row.checks else "yes, unchecked", False: "", None: "?"}[row.binds]
    return f"| {row.name} | {row.valid_from or ''} | {refuses} | {binds} | {row.source} |"


NOTES_INTRO = """A note is a fact in the [journal](journal.md) beside the messages and the decisions: an entry `noted` with a `kind` and with `data`, a
text that is mostly JSON. These are the kinds that pagein writes. The fields of a kind are those of its class in `model/journal_notes.py`;
`model/note_forms.py` has the stored form. Notes of other kinds, and notes that cannot be understood, are kept as they are and have no effect.

The last column says whether the data may hold words of the conversation, names of files, or digests of either. When all content of a session is
forgotten, the data of such notes are erased, and so are those of unknown kinds."""


def read_tool(page: str) -> str:
    """The page of the tool `read` with its arguments and codes of errors."""
    return _between(_between(page, "arguments", matrix_table()), "codes", code_table())


def with_arguments(page: str) -> str:
    """The page of the tools with the arguments of each from its schema."""
    for tool in (PEEK, SEARCH, EXPAND, SELECT, HISTORY, PIN, INGEST, QUERY, BATCH):
        page = _between(page, tool.name, _arguments(tool))
    return page


def _arguments(tool: Offer) -> Iterator[str]:
    required = tool.schema.get("required", ())
    yield from ("| argument | | default |", "|---|---|---|")
    for name, about in tool.schema["properties"].items():
        says = about["description"].rstrip(".").replace("|", "\\|")
        yield f"| `{name}` | {says} | {'required' if name in required else about.get('default', '')} |"


def journal_notes() -> str:
    """Every kind of note in the journal."""
    parts = [NOTICE, "", "# Notes in the journal", "", NOTES_INTRO, ""]
    parts += ["| kind | what it records | class | words |", "|---|---|---|---|"]
    return "\n".join([*parts, *map(_note_kind, KINDS)]) + "\n"


def _note_kind(kind: NoteKind) -> str:
    says = (kind.note.__doc__ or "").partition("\n")[0].rstrip(".")
    return f"| `{kind.name}` | {says} | `{kind.note.__name__}` | {'yes' if kind.has_words else ''} |"


SETTINGS_INTRO = f"""They apply to `pagein.open`, `pagein serve` and `pagein replay` alike. A key has its value from the last of these places that
sets it:

1. its default;
2. the user's file: the file named by `{VARIABLE}`, else `{NAME}` in the folder for a user's configuration (`~/.config/pagein` on Linux);
3. `{NAME}` in the workspace;
4. the environment: `PAGEIN_` and the key in capitals;
5. options of a command, and arguments of `pagein.open`. `settings=` replaces all keys of the engine.

Files are TOML, the keys at the top:

```toml
keep_calls = 8
excluded = ["*.secret"]
```

A workspace's file comes from the authors of the workspace, so it cannot set keys marked *yours*. An invalid setting is an error with file,
key and remedy at the start of an engine or the gateway."""


def settings() -> str:
    """Every key: what it takes, what holds where nobody says, what it means."""
    parts = [NOTICE, "", "# Settings", "", SETTINGS_INTRO, ""]
    for title, keys in (("Engine", ENGINE), ("Gateway", GATEWAY), ("MCP", MCP), ("Child models", CHILDREN), ("pi", PI)):
        parts += [f"## {title}", "", "| key | in the environment | takes | default | |", "|---|---|---|---|---|"]
        parts += [*(_key(one) for one in keys), ""]
    return "\n".join(parts).rstrip() + "\n"


def _key(key: Key) -> str:
    default = (
        ""
        if key.default in (None, (), "")
        else f"`{str(key.default).lower() if key.default in (True, False) and isinstance(key.default, bool) else key.default}`"
    )
    return f"| `{key.name}` | `{key.variable}` | {key.takes} | {default} | {key.says}{' *Yours.*' if key.own else ''} |"


API: tuple[tuple[str, tuple[object, ...]], ...] = (
    ("Opening", (wiring.open, Engine, EngineSettings, Residency, Previews, Valve)),
    ("A session", (Session,)),
    ("Requests and replies", (PreparedRequest, Observation, Diagnosis)),
    ("The user's hand", (Touch, InWindow)),
    ("Pools", (SessionPools, PoolReply, PoolState, PoolRules)),
    ("Recall tools", (definitions, answer_call, ReadResult)),
    ("Assembled prompts", (tiered, TieredPrompts, PromptContents, HistoryMessage, AssembledPrompt, LaidBlock)),
    ("Pooled agents", (pooled, PooledAgent, PooledCall, PooledRules)),
)
# what hosts use, or pagein itself
_HIDDEN = frozenset(
    [
        "advance",
        "append",
        "behind",
        "catch_up",
        "client",
        "compacted",
        "evidence",
        "forget",
        "free_wait",
        "inherit",
        "is_kept",
        "journal",
        "keep",
        "may_leave",
        "move",
        "note",
        "reading",
        "reads_wait",
        "recalling",
        "rendering",
        "repairs",
        "resumed",
        "size",
        "spliced",
        "traffic",
        "turn",
        "window_files",
        "with_prices_of",
        "withhold",
    ]
)


def python_api() -> str:
    """What `import pagein` offers to loops of one's own, from its signatures and docstrings."""
    parts = [
        NOTICE,
        "",
        "# Python",
        "",
        "What `import pagein` offers to a loop of one's own; how it is used: [library.md](../library.md).",
        "",
    ]
    for title, things in API:
        parts += [f"## {title}", ""]
        for one in things:
            parts += _class(one) if inspect.isclass(one) else _function("###", _path(one), one)
    parts += ["## Errors", "", "```", *_tree(), "```", ""]
    return "\n".join(parts).rstrip() + "\n"


def _path(thing: object) -> str:
    module = getattr(thing, "__module__", "")
    if module.startswith("pagein.assembly."):
        module = "pagein.assembly"  # what it offers is imported from there
    return "pagein.open" if thing is wiring.open else f"{module}.{getattr(thing, '__name__', '')}"


def _class(kind: type) -> Iterator[str]:
    made = inspect.signature(kind).parameters
    yield from (f"### `{_path(kind)}`", "", _about(kind, [*made]), "")
    if dataclasses.is_dataclass(kind):
        rows = [one for one in dataclasses.fields(kind) if one.name not in ("sent", "original")]
        yield from ("| field | type | default |", "|---|---|---|")
        yield from (f"| `{one.name}` | {_cell(one.type)} | {_given(one)} |" for one in rows)
        yield ""
    for name, member in vars(kind).items():
        if name.startswith("_") or name in _HIDDEN:
            continue
        inner = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if isinstance(inner, property | cached_property):
            yield from (f"#### `.{name}`", "", inspect.getdoc(inner) or "", "")
        elif inspect.isfunction(inner):
            yield from _function("####", f".{name}", inner)


def _function(level: str, name: str, function: object) -> list[str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))  # type: ignore[arg-type]
    node = next(one for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
    arguments = [one for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs) if one.arg != "self"]
    taken = re.sub(r"^self(, )?", "", ast.unparse(node.args))
    returned = ast.unparse(node.returns) if node.returns else "None"
    told = re.sub(r"((?:: |-> ))'([^']+)'", r"\1\2", f"{name.rpartition('.')[2]}({taken}) -> {returned}")
    waits = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    about = _about(function, [one.arg for one in arguments])
    return [f"{level} `{name}`", "", "```python", f"{waits}{told}", "```", "", about, ""]


def _about(thing: object, names: list[str]) -> str:
    """A docstring as Markdown, where what is said of each of these names becomes a line of a list."""
    known = "|".join(map(re.escape, names)) or "(?!)"
    begins = rf"(?:{known})(?:, (?:{known}))*: "
    parts = [" ".join(part.split()) for part in (inspect.getdoc(thing) or "").split("\n\n")]
    parts = [part.replace("Raises ", "\nRaises ") for part in parts]
    lines = [line for part in parts for line in re.split(rf"(?:(?<=[.;?]) |\n)(?={begins}|Raises )|\n", part)]
    made = []
    for line in (line.strip() for line in lines):
        named = re.match(rf"((?:{known})(?:, (?:{known}))*): ", line)
        made.append(
            f"- {', '.join(f'`{one}`' for one in named[1].split(', '))}: {line[named.end() :]}"
            if named
            else f"\n{line}\n"
        )
    return re.sub(r"\n{3,}", "\n\n", "\n".join(made)).strip()


def _cell(kind: object) -> str:
    text = kind if isinstance(kind, str) else getattr(kind, "__name__", None) or str(kind)
    if not isinstance(kind, type):
        text = str(kind)
    return f"`{re.sub(r'(?:[a-z_]+[.])+(?=[A-Z])', '', text).replace('typing.', '').replace('|', chr(92) + '|')}`"


def _given(one: "dataclasses.Field[object]") -> str:
    plain = one.default is None or isinstance(one.default, bool | int | float | str)
    return f"`{one.default!r}`" if plain else ""


def _tree() -> list[str]:
    text = inspect.cleandoc(errors.__doc__ or "")
    return text.split("```")[1].strip().splitlines()


def _columns(columns: tuple[BillColumn, ...]) -> Iterator[str]:
    yield from ("| column | meaning |", "|---|---|")
    yield from (f"| {column.title} | {column.meaning} |" for column in columns)


if __name__ == "__main__":
    sys.exit(main())
