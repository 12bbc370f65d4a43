"""Requests that `prepare` makes from recorded sessions in three formats, with restarts, retries and forks, and the stores after them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from scripts.behaviour import surfaces, tables
from scripts.behaviour.conversations import FORMATS, MODELS, Format, Talk, body, reply
from scripts.behaviour.records import Witness, lines
from scripts.behaviour.stillness import World

_MOST_CALLS: Final = 45
_RESTART: Final = 13
_FORK: Final = 4
_PAUSE: Final = 30.0
_SHORT: Final = 90
EAGER: Final = """
keep_calls = 2
keep_reads = 3
keep_calls_free = 1
min_tokens = 60
previews_from = 1500
previews_show = 600
manifest = true
manifest_budget = 400
arguments = true
thinking = "leaves"
window = 60000
witness = true
"""
THRIFTY: Final = """
residency = "thrifty"
keep_calls = 1
min_tokens = 30
previews_from = 0
marks = "respected"
rereads = false
valve = 0
"""
MANNERS: Final = {"usual": "", "eager": EAGER, "thrifty": THRIFTY}


@dataclass(frozen=True, slots=True)
class Step:
    """One request. fresh: the engine is opened anew first."""

    label: str
    body: bytes
    at: float
    usage: tuple[int, int, int, int] | None
    fresh: bool = False


def corpora(root: Path) -> Iterator[tuple[str, Path]]:
    """Files with recorded sessions: those of the tests, the demo, and, where they lie beside the checkout, the small corpora."""
    fixtures = root / "tests" / "fixtures" / "sessions"
    for path in sorted(one for one in fixtures.iterdir() if one.suffix in (".jsonl", ".json")):
        yield f"fixtures/{path.name}", path
    for folder in ("claude-project", "opencode"):
        yield f"fixtures/{folder}", fixtures / folder
    yield "demo", root / "examples" / "demo-session.jsonl.gz"
    for name in ("mini", "native"):
        for path in sorted((root.parent / "shared" / "corpus" / name).glob("*.gz")):
            yield f"{name}/{path.name.split('.')[0]}", path


def watch(world: World, root: Path, witness: Witness, few: int | None = None, *, drives: bool = True) -> None:
    """All sessions, in all formats, by all settings. few: only so many of the files. drives: False: they are only read."""
    for number, (name, path) in enumerate(list(corpora(root))[:few]):
        for talk in surfaces.talks(path, name):
            witness.see(f"sessions/{talk.name}", talk.plain)
            if not talk.said or not drives:
                continue
            for place, wire in enumerate(FORMATS):
                is_short = len(talk.said) < _SHORT
                for turn, manner in enumerate(MANNERS):
                    if manner == "usual" or is_short or (number + place + turn) % len(FORMATS) == 0:
                        drive(world, talk, wire, manner, number, witness)


def steps(talk: Talk, wire: Format, model: str) -> Iterator[Step]:
    """The requests of a session: its calls, some of them again after a restart, and in the middle another branch."""
    calls = talk.calls(_MOST_CALLS)
    for number, place in enumerate(calls):
        one = talk.said[place]
        at = one.at or 1_750_000_000.0 + _PAUSE * place
        usage = one.usage if one.usage is not None else (900, 40 * place, 300, 50)
        sent = body(talk, place, wire, model)
        yield Step(f"{number:03}", sent, at, usage)
        if number % _RESTART == _RESTART - 1:
            yield Step(f"{number:03} again", sent, at + 1, None, fresh=True)
        if number == len(calls) // 2 and number > _FORK:
            other = talk.changed(calls[number - 3], "On the other hand, try it another way.")
            for more in calls[number - 2 : number + _FORK]:
                yield Step(f"{number:03} fork {more:04}", body(other, more, wire, model), at + 2, usage)


def drive(world: World, talk: Talk, wire: Format, manner: str, number: int, witness: Witness) -> None:
    """One session in one format by one kind of settings."""
    name = f"{talk.name}/{wire}/{manner}"
    folder = world.scene("drive")
    store = folder / "store.pagein"
    # some clients name their session, others do not
    hint = None if talk.name.startswith("fixtures/") else "recorded"
    lasting = 5000.0 if manner == "eager" else 0.0
    with world.configured(MANNERS[manner]):
        engine = surfaces.opened(store)
        try:
            for step in steps(talk, wire, MODELS[wire][number % 2]):
                world.clock.set(step.at)
                if step.fresh:
                    engine.close()
                    engine = surfaces.opened(store)
                witness.see(f"requests/{name}/{step.label}", _outcome(engine, step, wire, hint, lasting))
            recalls(engine, store, f"recalls/{name}", witness)
        finally:
            engine.close()
    if store.is_file():
        for table, data in tables.tables(store):
            witness.see(f"stores/{name}/{table}", data)


def _outcome(engine: surfaces.Engine, step: Step, wire: Format, hint: str | None, lasting: float) -> bytes:
    try:
        sent = surfaces.prepared(engine, step.body, wire, at=step.at, hint=hint, lasting=lasting)
    except surfaces.PageinError as problem:
        return f"refused: {problem}".encode()
    told = surfaces.facts(sent)
    told["client"] = sha256(step.body).hexdigest()
    if step.usage is not None:
        told["seen"] = surfaces.seen(engine, sent, reply(step.usage, wire))
    return sent.body + b"\n" + json.dumps(told, sort_keys=True).encode()


def recalls(engine: surfaces.Engine, store: Path, name: str, witness: Witness) -> None:
    """Each object of a store, as it is recalled."""
    if not store.is_file():
        return
    rows: list[object] = []
    for one in tables.objects(store):
        try:
            text = engine.recall(one).encode("utf-8", "surrogatepass")
            rows.append([one, len(text), sha256(text).hexdigest()])
        except surfaces.PageinError as problem:
            rows.append([one, f"refused: {problem}"])
    witness.see(name, lines(rows))
