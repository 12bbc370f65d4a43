"""The bill of a replay: the plain values that `pagein replay --json` prints and every view draws from.

The shape of `Bill` is stable and documented in docs/replay.md. `Detail` feeds the pictures and may grow.
Money is in base-input-token equivalents (BIT: one uncached input token = 1) unless a name says usd.
Tokens are whole numbers. `None` means that a figure does not apply to a policy.
"""

from typing import TypedDict


class Paid(TypedDict):
    """A price.

    cost: BIT.
    usd: the same in US dollars (None for generic prices).
    """

    cost: float
    usd: float | None


class Figures(Paid):
    """The cost of a policy on a session, or on a sum of sessions.

    cost: the whole bill, recalls included.
    read, written, fresh, output: tokens by how they are billed, recall calls included.
    prompt_tokens: read + written + fresh of the recorded calls and the recalls.
    floor_tokens: prompt tokens of system prompt and tool schemas, which no policy can change.
    faults: recalls of results whose text a later step used.
    recall_cost: BIT of all recall calls.
    stress_recalls: simulated recalls beyond the textual ones.
    rereads: reads in the recording of content that the policy had evicted.
    keep_alives: keep-alive requests, sent during a pause so that the cache keeps the prompt.
    keep_alive_cost: BIT of the keep-alive requests, part of the cost.
    quotes_*: exact quotes in edits: visible in the request before the edit, all, and lost compared with `append`.
    stubs: results replaced by a stub, a preview or, after a reread, by a marker or a diff.
    epochs: batches of such replacements (compactions for `compact`).
    refused: requests that a provider would refuse.
    unrecoverable_bytes: evicted bytes that recall did not return exactly.
    layout: `inline`, `pooled` or `tiered`.
    """

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
    layout: str


class SessionBill(TypedDict):
    """A session: source, and figures per policy.

    title: the user's first words; "" if there are none.
    project: the folder that was worked in; None if not recorded.
    began: when its first request was sent, seconds since 1970; None if the recording tells no times.
    prices: the price table that it was billed by.
    """

    file: str
    id: str
    title: str
    project: str | None
    began: float | None
    source: str
    agent: str
    parent: str | None
    prices: str
    flags: dict[str, object]
    policies: dict[str, Figures]


class SkippedFile(TypedDict):
    """A file that was not replayed, with the reason in words for a person."""

    file: str
    reason: str


class GroupBill(TypedDict):
    """The sum over the sessions of a source."""

    policies: dict[str, Figures]


class Spread(TypedDict):
    """The cost of a policy in single sessions, each as a share of the baseline: 0.9 is a tenth cheaper.

    Free sessions are left out. low, high: the quartiles; half of the sessions lie between them.
    cheaper, dearer: number of sessions that cost less and more by at least half a thousandth.
    """

    sessions: int
    median: float
    low: float
    high: float
    best: float
    worst: float
    cheaper: int
    dearer: int


class Ratio(TypedDict):
    """Cost against the baseline, as the unweighted mean over the coding sources."""

    ratio: float


class Prediction(TypedDict):
    """The prediction error of the simulator for a source: `append` with the recorded TTL, against the provider's reports.

    Each figure is (predicted - recorded) / recorded. The `pure_` figures do not replay recorded misses.
    """

    calls: int
    read_error: float | None
    written_error: float | None
    pure_read_error: float | None
    pure_written_error: float | None


class DecisionRow(TypedDict):
    """A decision of pagein on a session.

    call: number of the call after the decision, from 0.
    at: seconds from the first call.
    kind: `epoch` (old results evicted in one batch), `previews` (large outputs replaced by previews on arrival), `shown once` (large outputs that a single request shows, uncached) or `rereads` (repeated reads answered by a marker or a diff to earlier content of the window).
    reason: why pagein decided at this call.
    paged: number of results.
    tokens: by how much the prompt became shorter.
    expected: the saving in BIT that the engine counted on.
    realised: the saving in BIT at the end of the session, recalls included (null: not computed).
    bankroll: the BIT in hand before the decision.
    unlikely: for each read that left because an edit would hardly quote it, the counts that said so.
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
    unlikely: list[str]


class Why(TypedDict):
    """The reasons for every decision of pagein on a session.

    saved: BIT, against append-only.
    lifetimes: the part of `saved` that comes from the choice of cache TTL, after the cost of keep-alive requests. The decisions account for the rest.
    idle: why nothing more was evicted, as of the last call of the session.
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
    """A call with a cache miss: it read less from the provider's cache than the previous call had left there.

    call: number of the call, from 0.
    at: seconds from the first call.
    idle: seconds since the previous call.
    cause, who: the reason and who is responsible.
    words: the reason as a sentence.
    prompt, read: tokens as recorded.
    expected: tokens that the previous call left in the cache.
    predicted: tokens that the simulator reads.
    missed: tokens that were paid again.
    cost: BIT paid above the price of reading the missed tokens.
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
    """The sum of the misses with the same cause.

    calls: number of calls.
    missed: tokens that were paid again.
    cost: BIT of the missed tokens.
    share: share of the bill.
    """

    cause: str
    words: str
    calls: int
    missed: int
    cost: float
    share: float


class Checkup(TypedDict):
    """The cache of a source.

    calls: calls with recorded usage.
    bill: their cost in BIT, computed from the recorded usage.
    """

    calls: int
    bill: float
    ailments: list[Ailment]


class UsageLine(Paid):
    """A part of the recorded usage. calls: number of calls that have such tokens."""

    calls: int
    tokens: int


class RecordedUsage(TypedDict):
    """The usage that the provider reported for the recorded calls, and its cost by the chosen prices.

    whole: all of it.
    parts: `read`, `written`, `fresh` and `output`, which add up to the whole.
    again: by cause of the cache miss, the tokens that were paid again; its cost is that above the price of reading them.
    above: by size of a window, the tokens that were read beyond this size, call by call.
    lifetimes: by cache lifetime, the cost of the calls to a cache that offers a choice: `recorded`, `5m` and `1h`. Empty
    without such calls, or without times.
    long_writes: the tokens written for an hour: `all`; `unused`, which no call read after a pause that five minutes do not
    bridge, with the premium paid for them; `followed` by another call; and followed `within_minute`.
    """

    whole: UsageLine
    parts: dict[str, UsageLine]
    again: dict[str, UsageLine]
    above: dict[str, UsageLine]
    lifetimes: dict[str, UsageLine]
    long_writes: dict[str, UsageLine]


class Doctor(TypedDict):
    """Cache behaviour in the recordings, by kind of cache.

    misses: every cache miss.
    usage: the recorded usage of all sessions.
    """

    sources: dict[str, Checkup]
    misses: list[Miss]
    usage: RecordedUsage


class Bill(TypedDict):
    """The object that `pagein replay --json` prints.

    prices: the price table, or `own`: each session by that of its own model.
    spread: by policy; empty without the baseline.
    why: an entry per session if `--why` was given, otherwise empty.
    doctor: null without `--doctor`.
    """

    sessions: int
    skipped: list[SkippedFile]
    prices: str
    baseline: str
    policies: dict[str, Figures]
    groups: dict[str, GroupBill]
    macro: dict[str, Ratio]
    spread: dict[str, Spread]
    prediction: dict[str, Prediction]
    per_session: list[SessionBill]
    why: list[Why]
    doctor: Doctor | None


class CacheTrace(TypedDict):
    """Tokens per call, with a list entry for each call."""

    read: list[int]
    written: list[int]
    fresh: list[int]
    cost: list[float]


class Composition(TypedDict):
    """Parts of the prompt per call: `tokens[kind][call]`.

    Kinds: floor, user, assistant, arguments, results, stubs, recalled, hidden.
    """

    tokens: dict[str, list[int]]


class EpochMark(TypedDict):
    """An epoch: the call that opened it, the reason, and the amount evicted."""

    call: int
    reason: str
    paged: int
    tokens: int


class LargeResident(TypedDict):
    """A large resident of the window: label, size, and the tokens spent on carrying it under `append`."""

    label: str
    kind: str
    tokens: int
    born: int
    carried: int


class Detail(TypedDict):
    """The data for the pictures of a session. Lists are per call, in order. Times are seconds from the first call.

    traces: by policy, for every policy that was replayed.
    composition: for `append` and `pagein` only.
    why: null if `pagein` was not replayed.
    pauses: calls before which the cache TTL had passed.
    compactions: calls that begin a new window.
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
