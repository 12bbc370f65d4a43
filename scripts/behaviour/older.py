"""A store of an older version: it opens, passes the check, returns the same texts, and its sessions continue with the same bytes."""

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Final

from scripts.behaviour import surfaces, tables
from scripts.behaviour.conversations import FORMATS, MODELS, Format, Talk, reply
from scripts.behaviour.records import Witness
from scripts.behaviour.requests import MANNERS, recalls, steps
from scripts.behaviour.stillness import World

_BEFORE: Final = 2 / 3
_LIVED: Final = 60
_USAGE: Final = (900, 0, 300, 50)


def keep(world: World, root: Path, to: Path) -> None:
    """Write the store: lived in, and with sessions of the demo in all formats that have not ended."""
    work, folder = world.scene("work"), world.scene("older")
    store = folder / "store.pagein"
    with world.configured(MANNERS["usual"]):
        surfaces.make_lived_in_store(store, work, 5, _LIVED)
        for wire in FORMATS:
            _go(world, root, store, wire, None, is_first=True)
    with sqlite3.connect(store) as source, sqlite3.connect(to) as target:
        target.execute("PRAGMA page_size = 4096")
        source.backup(target)


def watch(world: World, root: Path, kept: Path, witness: Witness) -> None:
    """Open a copy of the store that was kept."""
    store = world.scene("older") / "store.pagein"
    shutil.copyfile(kept, store)
    with world.configured(MANNERS["usual"]):
        words = ["--store", str(store), "--json"]
        for asked in (["check"], ["objects"], ["window", "main"], ["stats", "--session", "main"]):
            witness.see(f"older/{asked[0]}", json.dumps(surfaces.run(*asked, *words), sort_keys=True).encode())
        for workspace in (None, world.folder / "work"):
            engine = surfaces.opened(store, workspace)
            recalls(engine, store, f"older/recalls {'of requests' if workspace is None else 'of a life'}", witness)
            engine.close()
        made = world.folder / "older.jsonl"
        surfaces.run("export", str(made), "--store", str(store), "--quiet")
        witness.see("older/exported", made.read_bytes())
        for wire in FORMATS:
            _go(world, root, store, wire, witness, is_first=False)
        witness.see("older/check after", json.dumps(surfaces.run("check", *words), sort_keys=True).encode())
    for name, data in tables.tables(store):
        witness.see(f"older/store after/{name}", data)


def _go(world: World, root: Path, store: Path, wire: Format, witness: Witness | None, *, is_first: bool) -> None:
    """The first part of the demo as requests, or the rest."""
    every = [one for one in steps(_demo(root), wire, MODELS[wire][0]) if " " not in one.label]
    count = int(len(every) * _BEFORE)
    engine = surfaces.opened(store)
    for one in every[:count] if is_first else every[count - 1 :]:
        world.clock.set(one.at)
        sent = surfaces.prepared(engine, one.body, wire, at=one.at, hint=f"demo {wire}")
        used = surfaces.seen(engine, sent, reply(one.usage or _USAGE, wire))
        if witness is not None:
            told = json.dumps({**surfaces.facts(sent), "seen": used}, sort_keys=True).encode()
            witness.see(f"older/goes on/{wire}/{one.label}", sent.body + b"\n" + told)
    engine.close()


def _demo(root: Path) -> Talk:
    return surfaces.talks(root / "examples" / "demo-session.jsonl.gz", "demo")[0]
