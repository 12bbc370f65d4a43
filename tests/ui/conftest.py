"""A bill and its details of our own making: a session of 160 calls, three epochs, two pauses, one compaction."""

from collections.abc import Callable

import pytest

from pagein.model.bill import (
    Ailment,
    Bill,
    CacheTrace,
    Checkup,
    Composition,
    Detail,
    Doctor,
    Figures,
    Miss,
    SessionBill,
    Why,
)
from pagein.replay.results.recorded_usage import sum_of
from pagein.replay.results.spread import spreads

CALLS = 160
PAUSES = (41, 97)
COMPACTION = 131
EPOCHS = (58, 97, 120)
KINDS = ("floor", "user", "assistant", "arguments", "results", "stubs", "recalled", "hidden")
FACTORS = {
    "none": 5.4,
    "append": 1.0,
    "append-5m": 0.99,
    "append-1h": 1.04,
    "rolling": 1.98,
    "clear": 1.07,
    "compact": 0.95,
    "pagein": 0.873,
    "optimum": 0.65,
    "bound": 0.58,
}


def figures(cost: float, **known: float | None) -> Figures:
    made: Figures = {
        "cost": cost,
        "usd": cost * 3e-6,
        "read": int(cost * 6),
        "written": int(cost * 0.2),
        "fresh": 160,
        "output": int(cost * 0.02),
        "prompt_tokens": int(cost * 6.2) + 160,
        "floor_tokens": int(cost * 1.1),
        "calls": CALLS,
        "layout": "inline",
        "faults": None,
        "recall_cost": None,
        "stress_recalls": None,
        "rereads": None,
        "keep_alives": None,
        "keep_alive_cost": None,
        "quotes_visible": None,
        "quotes_lost": None,
        "quotes_total": None,
        "stubs": None,
        "epochs": None,
        "refused": None,
        "unrecoverable_bytes": None,
    }
    return {**made, **known}  # type: ignore[typeddict-item]  # the names are checked by the views


def engine_figures(cost: float, **known: float | None) -> Figures:
    deeds: dict[str, float | None] = {
        "faults": 3,
        "recall_cost": 21_000.0,
        "stress_recalls": 4,
        "rereads": 2,
        "keep_alives": 0,
        "keep_alive_cost": 0.0,
        "quotes_visible": 117,
        "quotes_lost": 1,
        "quotes_total": 120,
        "stubs": 64,
        "epochs": len(EPOCHS),
        "refused": 0,
        "unrecoverable_bytes": 0,
    }
    return figures(cost, **{**deeds, **known})


def policies(cost: float = 3_420_000.0) -> dict[str, Figures]:
    return {
        name: (engine_figures if name in {"pagein", "rolling", "clear"} else figures)(cost * factor)
        for name, factor in FACTORS.items()
    }


def session(number: int, cost: float) -> SessionBill:
    return {
        "file": f"sessions/{number:03}.jsonl",
        "id": f"session-{number}",
        "title": f"Mend the parser, part {number}",
        "project": f"/home/ada/project-{number}",
        "began": None,
        "source": "alpha" if number % 2 else "beta",
        "agent": "Claude Code",
        "parent": "session-0" if number == 2 else None,
        "prices": "generic:r=.1,w=1.25",
        "flags": {},
        "policies": policies(cost),
    }


def make_bill(number: int = 1) -> Bill:
    each = [session(index, 3_420_000.0 / (index + 1)) for index in range(number)]
    total = sum(one["policies"]["append"]["cost"] for one in each)
    sources = sorted({one["source"] for one in each})
    return {
        "sessions": number,
        "skipped": [],
        "prices": "generic:r=.1,w=1.25",
        "baseline": "append",
        "policies": policies(total),
        "groups": {source: {"policies": policies(total / len(sources))} for source in sources},
        "spread": spreads((one["policies"] for one in each), "append"),
        "macro": {name: {"ratio": factor} for name, factor in FACTORS.items()} if len(sources) > 1 else {},
        "prediction": {
            source: {
                "calls": 1603,
                "read_error": 0.004,
                "written_error": 0.047,
                "pure_read_error": 0.012,
                "pure_written_error": -0.1,
            }
            for source in sources
        },
        "per_session": each,
        "why": [],
        "doctor": None,
    }


def make_detail(identity: str = "session-0", title: str = "Teach the parser to say where it stopped") -> Detail:
    compositions = {"append": _composition(paging=False), "pagein": _composition(paging=True)}
    return {
        "id": identity,
        "file": "sessions/000.jsonl",
        "title": title,
        "times": [call * 20.0 + sum(1800.0 for pause in PAUSES if call >= pause) for call in range(CALLS)],
        "pauses": list(PAUSES),
        "compactions": [COMPACTION],
        "traces": {
            name: _trace(compositions["pagein" if name == "pagein" else "append"], factor, paging=name == "pagein")
            for name, factor in FACTORS.items()
        },
        "composition": compositions,
        "epochs": [
            {"call": call, "reason": "batch of 40k removable tokens", "paged": 21, "tokens": 43_000} for call in EPOCHS
        ],
        "residents": [
            {
                "label": f"Read src/package/module_{number}.py",
                "kind": ("Read", "Bash", "Grep")[number % 3],
                "tokens": 14_000 - 900 * number,
                "born": 7 * number,
                "carried": (14_000 - 900 * number) * (CALLS - 7 * number),
            }
            for number in range(12)
        ],
        "why": make_why(identity),
    }


def make_why(identity: str = "session-0") -> Why:
    return {
        "file": "sessions/000.jsonl",
        "id": identity,
        "source": "alpha",
        "calls": CALLS,
        "saved": 39_000.0,
        "lifetimes": 0.0,
        "decisions": [
            {
                "call": call,
                "at": 20.0 * call,
                "kind": "previews" if number == 1 else "epoch",
                "reason": ("cold cache", "big output", "rent paid")[number],
                "paged": 21,
                "tokens": 43_000,
                "expected": 9_000.0,
                "realised": (20_000.0, None, -1_000.0)[number],
                "bankroll": 12_000.0,
                "unlikely": [],
            }
            for number, call in enumerate(EPOCHS)
        ],
        "idle": "carrying 9,000 tokens had cost 900 BIT by the last call, and taking them out 4,000",
    }


def _composition(*, paging: bool) -> Composition:
    tokens: dict[str, list[int]] = {kind: [] for kind in KINDS}
    now = dict.fromkeys(KINDS, 0) | {"floor": 18_000, "user": 1_200}
    for call in range(CALLS):
        if call == COMPACTION:
            now |= {"results": 4_000, "arguments": 500, "assistant": 900, "stubs": 0, "hidden": 300, "recalled": 0}
        if paging and call in EPOCHS:
            now["stubs"] += 840
            now["results"] = max(now["results"] - 43_000, 9_000)
        now["results"] += (call * 7919) % 1900
        now["arguments"] += (call * 104_729) % 320
        now["assistant"] += 80 + call % 60
        now["hidden"] += 60
        now["user"] += 400 if call % 29 == 0 else 0
        now["recalled"] += 1_500 if paging and call in {70, 111} else 0
        for kind in KINDS:
            tokens[kind].append(now[kind])
    return {"tokens": tokens}


def _trace(composition: Composition, factor: float, *, paging: bool) -> CacheTrace:
    prompts = [sum(column) for column in zip(*composition["tokens"].values(), strict=True)]
    trace: CacheTrace = {"read": [], "written": [], "fresh": [], "cost": []}
    before = 0
    for call, prompt in enumerate(prompts):
        cold = call in PAUSES or call == 0
        read = 18_000 if cold or call == COMPACTION or (paging and call in EPOCHS) else min(before, prompt)
        trace["read"].append(read)
        trace["written"].append(prompt - read)
        trace["fresh"].append(1)
        trace["cost"].append((0.1 * read + 1.25 * (prompt - read) + 5 * 220) * (1 if paging else factor))
        before = prompt
    return trace


def make_doctor() -> Doctor:
    ailment: Ailment = {
        "cause": "unexplained",
        "words": "the provider no longer had what it was given",
        "calls": 6,
        "missed": 158_381,
        "cost": 142_543.0,
        "share": 0.114,
    }
    expired: Ailment = {
        **ailment,
        "cause": "expired",
        "words": "it had expired",
        "calls": 2,
        "cost": 12_000.0,
        "share": 0.01,
    }
    miss: Miss = {
        "file": "sessions/000.jsonl",
        "id": "session-0",
        "source": "alpha",
        "call": 41,
        "at": 1335.4,
        "idle": 8.3,
        "cause": "unexplained",
        "who": "provider",
        "words": "the provider no longer had what it was given",
        "prompt": 121_008,
        "read": 16_496,
        "expected": 120_728,
        "predicted": 120_728,
        "missed": 104_232,
        "cost": 198_040.8,
    }
    checkup: Checkup = {"calls": 57, "bill": 1_245_998.0, "ailments": [ailment, expired]}
    sources: dict[str, Checkup] = {"alpha": checkup, "beta": {**checkup, "ailments": [ailment]}}
    return {"sources": sources, "misses": [miss] * 30, "usage": sum_of([])}


@pytest.fixture
def bill() -> Bill:
    return make_bill()


@pytest.fixture
def bills() -> Callable[[int], Bill]:
    return make_bill


@pytest.fixture
def detail() -> Detail:
    return make_detail()


@pytest.fixture
def details() -> Callable[[str, str], Detail]:
    return make_detail
