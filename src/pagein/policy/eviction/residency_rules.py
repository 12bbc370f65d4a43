"""The residency table. Each row is a rule: a kind of resident, and the age from which it may leave the window.

Rules of this file
------------------
1. A row is all that a rule needs. The queues (`waiting_residents`), the settings, the ablations of a replay and the
   table in docs/reference/residency.md are made from the rows.
2. The kind of a result is resolved once, when it enters (`residency`). The rows of its kind hold for it.
3. A resident with several rows may leave when the first of them lets it go.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal, TypeAlias

from pagein.errors import BadSetting
from pagein.policy.eviction.quote_odds import QuoteOdds, packaged_odds

ResidentKind: TypeAlias = Literal[
    "file read", "read", "web search", "server result", "result", "failure", "replaced text", "file text"
]
"""Kind of a result, or of a text in the arguments of a call.

file read: shows a file whose path is known. read: shows files.
web search: found by a tool that searches the web, of the client's or of the provider's.
server result: found or made by a tool that the provider runs itself.
result: any other result of a call that succeeded. failure: result of a call that failed.
replaced text: text that an edit took out of a file. file text: text that a call gave to a file.
"""

FILE_KINDS: Final[tuple[ResidentKind, ...]] = ("file read", "file text")
"""Kinds whose ages begin with accesses to files."""

SERVER_KINDS: Final[tuple[ResidentKind, ...]] = ("web search", "server result")
"""Kinds of results of tools that the provider runs itself."""

Clock: TypeAlias = Literal["shown", "touched", "shown whole"]
"""Start of a resident's age: the call that first showed it; the last access to its file, even one that failed; or the
last access that showed or wrote its whole file.
"""

Preset: TypeAlias = Literal["careful", "balanced", "thrifty"]
"""Name of one of the presets (`policy.eviction.presets`), from the fewest lost quotes to the lowest bill."""

Only: TypeAlias = Literal["", "edited", "older task", "only reads"]
"""Condition of a rule: none; the file was edited since; a person has spoken since; or the session was asked to read, and
has changed no file.
"""


@dataclass(frozen=True, slots=True)
class Age:
    """An age in model calls at which residents may leave.

    name: key of the setting where `says` describes it to users.
    calls: the default, as in the preset `careful`; None: never.
    balanced, thrifty: the age in these presets, where it differs from the default.
    at_least: name of another age that this one is never below.
    """

    name: str
    calls: int | None
    balanced: int | None = None
    thrifty: int | None = None
    says: str = ""
    at_least: str = ""

    def at(self, preset: Preset) -> int | None:
        """Return the age in a preset."""
        other = {"careful": None, "balanced": self.balanced, "thrifty": self.thrifty}[preset]
        return self.calls if other is None else other


@dataclass(frozen=True, slots=True)
class QuoteLimit:
    """The expected quotes per million tokens of a read below which it may leave.

    odds: the odds that an edit quotes the read later.
    quotes: the default, as in the preset `careful`. balanced, thrifty: in these presets, where it differs.
    """

    odds: QuoteOdds
    quotes: int = 0
    balanced: int | None = None
    thrifty: int | None = None

    def at(self, preset: Preset) -> "QuoteLimit":
        """Return the limit in a preset."""
        other = {"careful": None, "balanced": self.balanced, "thrifty": self.thrifty}[preset]
        return self if other is None else replace(self, quotes=other)


@dataclass(frozen=True, slots=True)
class Layer:
    """A group of rules that a replay can leave out (`pagein replay --without NAME`).

    does: what the rules do, for users. part_of: name of a layer that is never left out without this one.
    """

    name: str
    does: str
    part_of: str = ""

    def goes_with(self, name: str) -> bool:
        """Return whether the layer is left out with the layer of this name."""
        return name in (self.name, self.part_of)


@dataclass(frozen=True, slots=True)
class ResidencyRule:
    """A row of the table.

    name: identity of the rule. says: the residents, in words.
    kind, only: the residents that it holds for.
    clock: start of their age. after: age at which they may leave.
    cheap: a lower age where a rewrite is cheap anyway; None: no other. Only for the clock `shown`.
    why: reason. measured: figure that supports it, and how it was measured.
    layer: name in ablations; None: always part of the policy.
    limit: odds by which each resident is judged at that age, and again each time that it has become as much older;
        None: the age alone decides.
    wait: the least number of calls for which a resident stays, 1 or more; None: this rule evicts nothing. A result that
        the next call sees for the first time answers the latest assistant message: it stays.
    cheap_wait: the least number of calls for which a resident stays where a rewrite is cheap; None: the same as `wait`.
    """

    name: str
    says: str
    kind: ResidentKind
    after: Age
    cheap: Age | None = None
    clock: Clock = "shown"
    only: Only = ""
    why: str = ""
    measured: str = ""
    layer: Layer | None = None
    limit: QuoteLimit | None = None
    wait: int | None = field(init=False, repr=False, compare=False)
    cheap_wait: int | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        wait = None if self.after.calls is None else max(self.after.calls, 1)
        cheap = None if self.cheap is None or wait is None else min(self.cheap.calls or wait, wait)
        object.__setattr__(self, "wait", wait)
        object.__setattr__(self, "cheap_wait", cheap)
        is_of_file = self.kind in FILE_KINDS
        if is_of_file != (self.clock != "shown"):
            raise BadSetting(f"rule {self.name!r}: the age of a {self.kind} does not begin when it is {self.clock}")
        if is_of_file and self.cheap is not None:
            raise BadSetting(f"rule {self.name!r}: a {self.kind} has no lower age where a rewrite is cheap")
        if self.limit is not None and self.kind != "file read":
            raise BadSetting(f"rule {self.name!r}: nothing tells how likely a quote of a {self.kind} is")
        if self.only and not is_of_file:
            raise BadSetting(f"rule {self.name!r}: nothing tells whether a {self.kind} is {self.only}")

    @property
    def ages(self) -> tuple[Age, ...]:
        """The ages of the row."""
        return (self.after,) if self.cheap is None else (self.after, self.cheap)


@dataclass(frozen=True)
class ResidencyRules:
    """The rows in force. A kind has one row; only kinds of files, whose ages begin with accesses, may have several."""

    rows: tuple[ResidencyRule, ...]

    def __post_init__(self) -> None:
        for kind, rows in self.by_kind.items():
            if len(rows) > 1 and kind not in FILE_KINDS:
                raise BadSetting(f"the rules {', '.join(repr(row.name) for row in rows)} are for the same {kind}")

    @cached_property
    def by_kind(self) -> Mapping[ResidentKind, tuple[ResidencyRule, ...]]:
        """The rows for each kind that has any."""
        kinds = dict.fromkeys(row.kind for row in self.rows)
        return {kind: tuple(row for row in self.rows if row.kind == kind) for kind in kinds}

    @cached_property
    def ages(self) -> Mapping[str, Age]:
        """Every age by name."""
        return {age.name: age for row in self.rows for age in row.ages}

    @cached_property
    def lets_server_results_go(self) -> bool:
        """Whether results of tools that the provider runs itself may ever leave."""
        return any(self.lets_go(kind) for kind in SERVER_KINDS)

    def of(self, kind: ResidentKind) -> tuple[ResidencyRule, ...]:
        """Return the rows for a kind."""
        return self.by_kind.get(kind, ())

    def lets_go(self, kind: ResidentKind | None) -> bool:
        """Return whether residents of a kind may ever leave."""
        return kind is not None and any(row.after.calls is not None for row in self.of(kind))

    def without_layer(self, name: str) -> "ResidencyRules":
        """Return the rules without the rows of a layer."""
        return ResidencyRules(tuple(row for row in self.rows if row.layer is None or not row.layer.goes_with(name)))

    def with_ages(self, ages: Mapping[str, int | None]) -> "ResidencyRules":
        """Return the rules with other ages, given by name. Raises BadSetting for an age out of range."""
        for name, calls in ages.items():
            if name not in self.ages:
                raise BadSetting(f"no residency rule has an age {name!r}; there are {', '.join(self.ages)}")
            least = 0 if self.ages[name].says else 1
            if calls is not None and calls < least:
                raise BadSetting(f"{name} must be {least} or more, not {calls}")
        wanted = {name: ages.get(name, age.calls) for name, age in self.ages.items()}

        def changed(age: Age) -> Age:
            here, other = wanted[age.name], wanted.get(age.at_least)
            return replace(age, calls=here if here is None or other is None else max(here, other))

        return ResidencyRules(
            tuple(
                replace(row, after=changed(row.after), cheap=None if row.cheap is None else changed(row.cheap))
                for row in self.rows
            )
        )

    def without_ages(self) -> "ResidencyRules":
        """Return the rules without ages: no resident ever leaves."""
        return self.with_ages(dict.fromkeys(self.ages))

    def at(self, preset: Preset) -> "ResidencyRules":
        """Return the rules at the ages of a preset."""
        aged = self.with_ages({name: age.at(preset) for name, age in self.ages.items()})
        return ResidencyRules(
            tuple(row if row.limit is None else replace(row, limit=row.limit.at(preset)) for row in aged.rows)
        )


_FILES: Final = Layer("files", "a read of a file stays for as long as the file is worked on")
_READING: Final = Layer(
    "reading", "a read leaves sooner in a session that was asked to read and changes nothing", "files"
)
_ODDS: Final = Layer("odds", "a read leaves sooner where an edit will hardly quote it", "files")


def judged_reads(odds: QuoteOdds | None) -> tuple[ResidencyRule, ...]:
    """Return the row with a decision by the odds of a quote; empty without odds."""
    if odds is None:
        return ()
    return (
        ResidencyRule(
            "unlikely to be quoted",
            "a read that an edit will hardly quote, by counts of the session",
            "file read",
            Age("judged", 4),
            clock="touched",
            why="fewer quotes are expected for each million of its tokens than the preset allows",
            layer=_ODDS,
            limit=QuoteLimit(odds, 3, balanced=12, thrifty=40),
        ),
    )


USUAL: Final = ResidencyRules(
    (
        ResidencyRule(
            "edited file",
            "a read of a file that was edited since",
            "file read",
            Age("after_edit", 5, balanced=3, thrifty=3),
            clock="touched",
            only="edited",
            why="the work on the file is over",
            measured=".2 quotes per million tokens carried, from 3 calls after the last touch; 10 before",
            layer=_FILES,
        ),
        ResidencyRule(
            "file of an older task",
            "a read of a file, not edited since, from before the user's last message",
            "file read",
            Age("after_task", 12, balanced=7, thrifty=4),
            clock="touched",
            only="older task",
            why="it belongs to an older task",
            measured=".2 quotes per million tokens carried",
            layer=_FILES,
        ),
        ResidencyRule(
            "file of a reading session",
            "a read of a file in a session that was asked to read and has changed no file",
            "file read",
            Age("only_reads", 4, balanced=3, thrifty=3),
            clock="touched",
            only="only reads",
            why="no edit quotes it unless the person asks for a change, and then it stays again",
            layer=_READING,
        ),
        *judged_reads(packaged_odds()),
        ResidencyRule(
            "untouched file",
            "a read of a file of the current task, not edited since",
            "file read",
            Age("untouched", None),
            clock="touched",
            why="an edit may still quote it, however old it is",
            measured="2 quotes per million tokens carried, after 20 calls almost as often as after 4",
            layer=_FILES,
        ),
        ResidencyRule(
            "read",
            "a read of files whose names are not known",
            "read",
            Age(
                "keep_reads",
                20,
                thrifty=10,
                says="Minimum number of model calls that a file read stays if its file is not known.",
                at_least="keep_calls",
            ),
            why="an edit may quote it, and nothing tells when the work on its file is over",
        ),
        ResidencyRule(
            "result",
            "any other result",
            "result",
            Age("keep_calls", 5, says="Minimum number of model calls that a result stays."),
            Age(
                "keep_calls_free",
                3,
                says="Minimum number of model calls that other results stay when a rewrite is cheap: after a pause or at a new user turn.",
            ),
            why="no edit quotes it",
            measured="of 1,925 quotes that only results held, 4 were held by a result that was no read and over 2 calls old; 3, 4 or 7 calls: -.2, 0, +.1 points of the bill",
        ),
        ResidencyRule(
            "failure",
            "the result of a call that failed",
            "failure",
            Age("after_failure", None),
            why="it is short, and tells the model what not to try again",
        ),
        ResidencyRule(
            "server result",
            "the result of a tool that the provider ran itself, such as a web search",
            "server result",
            Age("after_server_result", None),
            why="nothing is measured yet: no recorded session has one",
        ),
        ResidencyRule(
            "replaced text",
            "the text that a successful edit replaced (`old_string` and its like)",
            "replaced text",
            Age("replaced", 3, thrifty=2),
            why="the file no longer holds it, so no later edit quotes it",
        ),
        ResidencyRule(
            "overwritten text",
            "the text that a file was given, where the file was written or shown whole since",
            "file text",
            Age("replaced", 3, thrifty=2),
            clock="shown whole",
            why="a later text shows the same file",
        ),
        ResidencyRule(
            "file text",
            "the text that a file was given (`new_string`, `content`, a patch)",
            "file text",
            Age("alone", 20, thrifty=10),
            clock="touched",
            why="an edit may quote it for as long as the file is worked on",
        ),
    )
)
"""The table at the ages of the default settings."""
