"""The bill of a replay: the plain values that `pagein replay --json` prints and every view draws from.

The shape of `Bill` is stable and documented in docs/replay.md; `Detail` feeds the pictures and may grow.
Money is in base-input-token equivalents (BIT: one uncached input token = 1) unless a name says usd.
Tokens are whole numbers. `None` stands where a figure does not apply to a policy.
"""

from typing import TypedDict


class Figures(TypedDict):
    """What one policy costs on one session or a sum of sessions.

    cost: the whole bill in BIT, recalls included; usd: the same in US dollars (None for generic prices).
    read, written, fresh, output: tokens by how they are billed; recall calls are in them.
    prompt_tokens: read + written + fresh of the recorded calls and the recalls.
    floor_tokens: tokens of system prompt and tool schemas within them: no policy can touch those.
    faults: recalls that a later step textually needed; recall_cost: BIT of all recall calls;
    stress_recalls: recalls drawn beyond the textual ones; rereads: reads the recording made of something paged out.
    keep_alives: requests sent through a pause so that the cache keeps what it holds; keep_alive_cost: BIT of these, in the cost.
    quotes_*: exact edit quotes visible in the request that made them, of all, and lost against `append`.
    stubs: results replaced by a stub, a preview or, where they were read again, by a marker or a diff; epochs: batches of such replacements (compactions for `compact`).
    refused: requests a provider would refuse; unrecoverable_bytes: paged-out bytes that recall did not return exactly.
    """

    cost: float
    usd: float | None
    read: int
    written: int
    fresh: int
    output: int
    prompt_tokens: int
    floor_tokens: int
    calls: int
    faults: int | None
    recall_cost: float | None
    stress_recalls: int | None
    rereads: int | None
    keep_alives: int | None
    keep_alive_cost: float | None
    quotes_visible: int | None
    quotes_lost: int | None
    quotes_total: int | None
    stubs: int | None
    epochs: int | None
    refused: int | None
    unrecoverable_bytes: int | None


class SessionBill(TypedDict):
    """One session: where it came from and its figures per policy."""

    file: str
    id: str
    source: str
    agent: str
    parent: str | None
    flags: dict[str, object]
    policies: dict[str, Figures]


class SkippedFile(TypedDict):
    """A file that was not replayed, and why, in words for a person."""

    file: str
    reason: str


class GroupBill(TypedDict):
    """The sum over the sessions of one source."""

    policies: dict[str, Figures]


class Ratio(TypedDict):
    """Cost against the baseline, as the unweighted mean over the coding sources."""

    ratio: float


class Prediction(TypedDict):
    """How well the simulator predicts what the provider reported, for one source, `append` with the recorded TTL.

    Each figure is (predicted - recorded) / recorded; the `pure_` ones without replaying recorded misses.
    """

    calls: int
    read_error: float | None
    written_error: float | None
    pure_read_error: float | None
    pure_written_error: float | None


class DecisionRow(TypedDict):
    """One decision of pagein on one session. call: before which, from 0; at: seconds from the first call.

    kind: `epoch` (old results left in one batch), `previews` (big outputs entered as previews) or `rereads` (what was read again was
    answered by what stands in the window); reason: why then. paged: how many
    results; tokens: by how much that made the prompt shorter. In BIT: expected, what the engine counted on; realised, what the
    session had saved by it at its end, recalls included (null where nobody reckoned); bankroll, what it had in hand before.
    """

    call: int
    at: float
    kind: str
    reason: str
    paged: int
    tokens: int
    expected: float
    realised: float | None
    bankroll: float


class Why(TypedDict):
    """Why pagein did what it did to one session. saved: BIT, against append-only. lifetimes: the part of it that choosing the
    cache's lifetimes saved, keep-alive requests charged; all decisions together saved the rest.

    idle: why nothing more left, by how the session stood at its last call.
    """

    file: str
    id: str
    source: str
    calls: int
    saved: float
    lifetimes: float
    decisions: list[DecisionRow]
    idle: str


class Miss(TypedDict):
    """One call that read less from its provider's cache than the call before it had left there. call: its number, from 0.

    at: seconds from the first call; idle: since the call before. cause, who: why, and whose doing; words: the same as a sentence.
    Tokens: prompt and read as recorded; expected, what the call before held; predicted, what the simulator reads; missed, the part
    of it that was paid again. cost: BIT, what that was dearer than reading it.
    """

    file: str
    id: str
    source: str
    call: int
    at: float
    idle: float
    cause: str
    who: str
    words: str
    prompt: int
    read: int
    expected: int
    predicted: int
    missed: int
    cost: float


class Ailment(TypedDict):
    """All misses of one cause: calls, tokens that were paid again, what that cost in BIT, and its share of the bill."""

    cause: str
    words: str
    calls: int
    missed: int
    cost: float
    share: float


class Checkup(TypedDict):
    """The cache of one source. calls: those with recorded usage; bill: what they cost, in BIT, by the usage that was recorded."""

    calls: int
    bill: float
    ailments: list[Ailment]


class Doctor(TypedDict):
    """What became of the provider's cache in the recordings, by the kind of cache that each ran on. misses: every one of them."""

    sources: dict[str, Checkup]
    misses: list[Miss]


class Bill(TypedDict):
    """The one object of `pagein replay --json`.

    why: one for each session where `--why` was given, else empty. doctor: null without `--doctor`.
    """

    sessions: int
    skipped: list[SkippedFile]
    prices: str
    baseline: str
    policies: dict[str, Figures]
    groups: dict[str, GroupBill]
    macro: dict[str, Ratio]
    prediction: dict[str, Prediction]
    per_session: list[SessionBill]
    why: list[Why]
    doctor: Doctor | None


class CacheTrace(TypedDict):
    """Tokens per call, one list entry a call."""

    read: list[int]
    written: list[int]
    fresh: list[int]
    cost: list[float]


class Composition(TypedDict):
    """What the prompt consists of, per call: `tokens[kind][call]`.

    Kinds: floor, user, assistant, arguments, results, stubs, recalled, hidden.
    """

    tokens: dict[str, list[int]]


class EpochMark(TypedDict):
    """One epoch: at which call it was opened, why, what it paged out."""

    call: int
    reason: str
    paged: int
    tokens: int


class LargeResident(TypedDict):
    """One of the largest things in the window: what it is, its size, and what carrying it cost under `append` in tokens."""

    label: str
    kind: str
    tokens: int
    born: int
    carried: int


class Detail(TypedDict):
    """The pictures of one session. Lists are per call, in order; times are seconds from the first call.

    policies of `traces` are those that were replayed; `composition` exists for `append` and `pagein`; why: null where `pagein` was
    not replayed.
    pauses: calls before which the cache's lifetime had passed. compactions: calls that begin a new window.
    """

    id: str
    file: str
    title: str
    times: list[float]
    pauses: list[int]
    compactions: list[int]
    traces: dict[str, CacheTrace]
    composition: dict[str, Composition]
    epochs: list[EpochMark]
    residents: list[LargeResident]
    why: Why | None
