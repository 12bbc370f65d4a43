"""The library: reads of files that change, writes, recalls, the user's hand, compactions, forks, a second process, forgetting."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from scripts.behaviour import surfaces, tables
from scripts.behaviour.conversations import FORMATS, Json
from scripts.behaviour.records import Witness
from scripts.behaviour.requests import EAGER, recalls
from scripts.behaviour.stillness import World

_SHELL: Json = {"name": "shell", "description": "Run a command.", "input_schema": {"type": "object"}}

# What the user's hand does, in front of which call.
_ACTS: Final = {
    3: ("veto", "call_1"),
    4: ("drop", "call_2"),
    5: ("say", "Never touch the migrations."),
    6: ("epoch",),
    8: ("restore", "call_2"),
    9: ("epoch",),
    11: ("pin", "call_10"),
    12: ("off",),
    14: ("on",),
    15: ("unpin", "call_1"),
    16: ("pin", "no such thing"),
    17: ("epoch",),
}
_PAUSE: Final = 5.0
# Seconds before a call: around the five minutes and the hour of caches.
_WAITS: Final = {7: 299.0, 10: 305.0, 18: 305.0, 19: 299.0, 20: 3605.0, 21: 3595.0}
_RESTART: Final = 13
_CALLS: Final = 22
_QUESTIONS: Final[tuple[tuple[str, Json], ...]] = (
    ("ingest", {"paths": ["*.txt", "a.py"]}),
    ("search", {"pattern": "row 919"}),
    ("search", {"pattern": "/value \\d+5$/", "scope": "all"}),
    ("stats", {}),
    ("peek", {"id": "pg-00000000-00000000"}),
    ("read", {"path": "b.md"}),
    ("nothing", {}),
)


@dataclass
class Told:
    """Names what is seen, one after the other."""

    witness: Witness
    scene: str
    count: int = field(default=0)

    def see(self, what: str, value: object) -> None:
        """An answer: bytes as they are, all else as JSON."""
        self.count += 1
        data = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True).encode()
        self.witness.see(f"library/{self.scene}/{self.count:03} {what}", data)

    def of(self, what: str, work: Callable[[], object]) -> None:
        """What comes out of it, or what it refuses with."""
        try:
            self.see(what, work())
        except surfaces.PageinError as problem:
            self.see(what, f"refused: {problem}")


def watch(world: World, witness: Witness) -> None:
    """All scenes."""
    _tools(Told(witness, "tools"))
    for manner, settings in (("usual", ""), ("eager", EAGER)):
        with world.configured(settings):
            _reads(world, Told(witness, f"reads {manner}"))
            _loop(world, Told(witness, f"loop {manner}"))
    with world.configured(""):
        for seed in (1, 2, 3):
            _life(world, seed, Told(witness, f"life {seed}"))


def _tools(told: Told) -> None:
    for wire in FORMATS:
        told.see(f"definitions {wire}", surfaces.definitions(wire))
    for one in surfaces.tool_offers():
        told.see(f"tool {one['name']}", one)
    told.see("guidance", surfaces.tool_guidance())


def _file(rows: int, word: str) -> str:
    return "".join(f"{number}: {word} {number * 7919 % 1000}\n" for number in range(rows))


@dataclass
class _Reader:
    """A session that reads, and shows its model what it read."""

    world: World
    told: Told
    session: surfaces.Session

    def read(self, path: str, offset: int | None = None, limit: int | None = None, *, anew: bool = False) -> None:
        """One read, and the request behind it."""
        self.world.clock.set(self.world.clock.at + _PAUSE)
        what = f"{path} {offset} {limit} {anew}"
        try:
            found = self.session.read(path, offset, limit, bypass_cache=anew)
        except surfaces.PageinError as problem:
            self.told.see(f"read {what}", f"refused: {problem}")
            return
        self.told.see(f"read {what}", _result(found))
        self.told.of(
            f"request {what}", partial(surfaces.shown, self.session, f"read_{self.told.count}", path, found.text)
        )


def _reads(world: World, told: Told) -> None:
    work, store = world.scene("work"), world.scene("kept") / "store.pagein"
    (work / "a.py").write_text(_file(300, "value"))
    (work / "long.txt").write_text(_file(2600, "row"))
    (work / "b.md").write_text("# Title\n\nWords.\n")
    (work / ".env").write_text("TOKEN=0123456789abcdef\n")
    (work / "odd.bin").write_bytes(bytes(range(256)) * 4)
    engine = surfaces.opened(store, work)
    reader = _Reader(world, told, engine.session("reader", work))
    for path in ("a.py", "b.md", "long.txt", ".env", "odd.bin", "missing.txt", "."):
        reader.read(path)
        reader.read(path)
    reader.read("long.txt", 2000, 300)
    reader.read("long.txt", 2100, 100)
    reader.read("a.py", 50, 20)
    _changes(work, reader)
    for name, question in _QUESTIONS:
        told.of(f"tool {name}", partial(surfaces.tool_answer, reader.session, name, question, "t"))
    engine.close()
    again = surfaces.opened(store, work)
    late = _Reader(world, told, again.session("reader", work))
    late.read("a.py")
    for one in tables.objects(store)[:4]:
        parts: list[Json] = [{"id": one, "line": 5, "lines": 3}, {"id": one, "offset": 100, "length": 80}, {"id": one}]
        for part in parts:
            told.of("peek", partial(surfaces.tool_answer, late.session, "peek", part, "p"))
    recalls(again, store, f"recalls/{told.scene}", told.witness)
    again.close()
    _kept(store, told)


def _changes(work: Path, reader: _Reader) -> None:
    """Files change, by others and by the model itself; the session forks and is compacted."""
    session, told = reader.session, reader.told
    lines = (work / "a.py").read_text().splitlines(keepends=True)
    lines[100:103] = ["changed\n", "changed too\n"]
    (work / "a.py").write_text("".join(lines))
    reader.read("a.py")
    reader.read("a.py", 90, 30)
    (work / "a.py").write_text("".join(["first\n", *lines]))
    reader.read("a.py", 200, 40)
    reader.read("a.py", anew=True)
    told.of("refresh", lambda: _result(session.refresh("a.py", 10, 20)))
    reader.read("a.py", 5, 60)
    session.note_write("b.md", "# Title\n\nOther words.\n")
    (work / "b.md").write_text("# Title\n\nOther words.\n")
    reader.read("b.md")
    session.note_edit("b.md", "Other", "More")
    (work / "b.md").write_text("# Title\n\nMore words.\n")
    reader.read("b.md")
    told.of("forked", lambda: _result(session.fork("reader's fork").read("a.py")))
    session.compact()
    reader.read("a.py")
    told.of("status", lambda: surfaces.values(session.status()))


def _result(one: object) -> Json:
    return {name: getattr(one, name, None) for name in ("text", "details", "is_error", "failure")}


def _loop(world: World, told: Told) -> None:
    """An agent's loop with requests of its own, and everything that the user's hand can do in between."""
    store = world.scene("kept") / "store.pagein"
    engine = surfaces.opened(store, world.scene("work"))
    session = engine.session("loop", model="claude-sonnet-5-5")
    request: Json = {
        "model": "claude-sonnet-5-5",
        "max_tokens": 4000,
        "cache_control": {"type": "ephemeral"},
        "system": surfaces.tool_guidance(),
        "tools": [_SHELL, *surfaces.definitions("anthropic")],
        "messages": [{"role": "user", "content": "Build it."}],
    }
    messages: list[Json] = request["messages"]

    def call(note: str) -> None:
        world.clock.set(world.clock.at + _WAITS.get(len(messages) // 2, 4 * _PAUSE))
        sent = session.prepare(request, at=world.clock.at)
        told.see(note, sent.body + b"\n" + json.dumps(surfaces.facts(sent), sort_keys=True).encode())
        session.observe(
            {"usage": {"input_tokens": 400, "cache_read_input_tokens": 90 * len(messages), "output_tokens": 60}}
        )

    call("call 0")
    for number in range(1, _CALLS):
        use = {"type": "tool_use", "id": f"call_{number}", "name": "shell", "input": {"command": f"make part-{number}"}}
        output = _file(20 + number * 53 % 240, f"part-{number}")
        result = {"type": "tool_result", "tool_use_id": f"call_{number}", "content": output}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        if number in _ACTS:
            act, *target = _ACTS[number]
            told.of(f"hand {number} {act}", partial(surfaces.order, session, act, *target))
        call(f"call {number}")
        told.see(f"window {number}", surfaces.values(session.hand.window()))
        if number == _RESTART:
            engine.close()
            engine = surfaces.opened(store, world.folder / "work")
            session = engine.session("loop", model="claude-sonnet-5-5")
            call("again")
    fork = session.fork("loop's fork")
    other = {
        **request,
        "messages": [*messages[:-4], {"role": "assistant", "content": "Done."}, {"role": "user", "content": "More."}],
    }
    sent = fork.prepare(other, at=world.clock.at + 60)
    told.see("fork", sent.body)
    for name in tables.objects(store)[:5]:
        asked: list[tuple[str, Json]] = [
            ("peek", {"id": name}),
            ("peek", {"id": name, "line": 3, "lines": 2}),
            ("search", {"pattern": "919", "scope": [name]}),
        ]
        for tool, given in asked:
            told.of(f"brief {tool}", partial(surfaces.brief_answer, session, tool, given, "b"))
    told.of("stats", lambda: surfaces.tool_answer(session, "stats", {}, "s"))
    recalls(engine, store, f"recalls/{told.scene}", told.witness)
    engine.close()
    _kept(store, told)


def _life(world: World, seed: int, told: Told) -> None:
    """A store that was lived in, and what commands make of it."""
    store, work = world.scene("kept") / "store.pagein", world.scene("work")
    surfaces.make_lived_in_store(store, work, seed, 90)
    _kept(store, told)
    words = ["--store", str(store), "--workspace", str(work), "--json"]
    commands = [["check"], ["objects"], ["search", "note"], ["history", "note-1"], ["show", "note-1", "--metadata"]]
    commands += [[name, one] for one in tables.sessions(store)[:2] for name in ("window",)]
    commands += [[name, "--session", one] for one in tables.sessions(store)[:2] for name in ("stats", "reads")]
    commands += [["gc", "--apply"], ["forget", "call-5 line"], ["check"]]
    for one in commands:
        told.see(" ".join(one), surfaces.run(*one, *words))
    made = world.folder / "export.jsonl"
    told.see("export", surfaces.run("export", str(made), "--store", str(store), "--quiet"))
    told.see("exported", made.read_bytes())
    told.see("import", surfaces.run("import", str(made), "--store", str(made.with_suffix(".pagein")), "--quiet"))
    _kept(made.with_suffix(".pagein"), told)
    made.with_suffix(".pagein").unlink()


def _kept(store: Path, told: Told) -> None:
    for name, data in tables.tables(store):
        told.witness.see(f"stores/{told.scene} {store.stem}/{name}", data)
