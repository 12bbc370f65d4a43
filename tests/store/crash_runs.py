"""Kill processes at random moments while they write to a store, and examine the result. Run by test_crash.py, in its own
process.

Children are forked, so that one costs milliseconds and hundreds fit into a test. A child tells by a line on its pipe what was
acknowledged to it: whatever it has told must be there afterwards, and what it has not told must be there whole or not at all.
The store is never open here while a child is made: a connection does not survive a fork.
"""

import json
import os
import random
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from pagein.errors import StoreError
from pagein.model.entries import Entry, NoteEntry
from pagein.model.identifiers import uuid7
from pagein.model.messages import Message, Text
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, Origin, StoredObject
from pagein.model.references import Reference
from pagein.model.versions import Draft
from pagein.model.writes import Write, Written
from pagein.settings.sources import load_config
from pagein.store.upkeep.collection import Retention
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.lived_in_store import FILES, LivedIn, make_lived_in_store
from pagein.testing.upkeep_contract import export_all, import_all
from pagein.upkeep import check_store, garbage
from pagein.wiring import open as open_engine

Told = Callable[[str], None]


@dataclass
class Child:
    """A process at work. said: what it was acknowledged, in its words, as far as we have read."""

    pid: int
    pipe: int
    rest: bytes = b""
    said: list[str] = field(default_factory=list)

    def listen(self, seconds: float) -> None:
        """Read what it says for so long."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self.pipe], [], [], left)[0] and not self._read():
                return

    def kill(self) -> None:
        """End it at once, and read its last words."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        while self._read():
            pass
        os.close(self.pipe)

    def _read(self) -> bool:
        part = os.read(self.pipe, 65536)
        *lines, self.rest = (self.rest + part).split(b"\n")
        self.said += [line.decode() for line in lines]
        return bool(part)


@dataclass
class Moment:
    """When work is killed: at random, so that about half of the time it has come far enough, however slow the machine."""

    dice: random.Random
    span: float = 0.02

    def drawn(self) -> float:
        """Seconds from its beginning."""
        return self.dice.random() * 2 * self.span

    def was(self, *, late: bool) -> None:
        """Whether it had come far enough by then."""
        self.span *= 0.8 if late else 1.25


def forked(work: Callable[[Told], None]) -> Child:
    """A child that does this work."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return Child(pid, reading)
    os.close(reading)

    def told(line: str) -> None:
        os.write(writing, f"{line}\n".encode())

    try:
        work(told)
    except BaseException as problem:  # noqa: BLE001 -- told to the parent, who judges
        told(f"failed {type(problem).__name__}: {problem}")
    os._exit(0)


@contextmanager
def opened(path: Path) -> Iterator[SqliteUpkeep]:
    store = SqliteUpkeep(path)
    try:
        yield store
    finally:
        store.close()


# --- writers -----------------------------------------------------------------------------------------------------


def write_for_ever(path: Path, dice: random.Random, name: str, told: Told) -> NoReturn:
    """Everything that can be written, in random order."""
    store = SqliteUpkeep(path)
    secret, leaf, number = store.secret(), None, 0
    while True:
        number += 1
        content = b"%s %d " % (name.encode(), number) + dice.randbytes(dice.choice([1, 300, 20_000]))
        kind = dice.randrange(5)
        if kind == 0:
            told(f"blob {store.put(content)}")
        elif kind == 1:
            stored = an_object(content, f"{name}-{number}", secret)
            if not store.put_objects([(stored, content)]):
                told(f"object {stored.id} {stored.content}")
        elif kind == 2:
            leaf = say(store, name, leaf, number)
            told(f"said {name} {leaf}")
        elif kind == 3:
            with store.exclusive():  # as a read does: a blob and what refers to it
                store.put(content)
                leaf = say(store, name, leaf, number, content)
            told(f"read {name} {leaf} {ContentHash.of(content)}")
        else:
            change(store, dice, f"{name} {number}", told)


def say(store: SqliteUpkeep, session: str, leaf: str | None, number: int, content: bytes = b"") -> str:
    """Three entries in one call."""
    names = [f"{session}-{number}-{n}" for n in range(3)]
    data = json.dumps({"hash": ContentHash.of(content).hex}) if content else "{}"
    parents = [leaf, *names[:-1]]
    store.append(
        session, [Entry(one, parent, NoteEntry("n", data)) for one, parent in zip(names, parents, strict=True)]
    )
    return names[-1]


def an_object(content: bytes, call: str, secret: bytes) -> StoredObject:
    name = ContentHash.of(content)
    origin = Origin("objects", call)
    chars = len(content)
    return StoredObject(ObjectId.of(name, origin, secret), name, "blob", "here", origin, "bytes", 1, chars)


def change(store: SqliteUpkeep, dice: random.Random, request: str, told: Told) -> None:
    """A new version of an object that everybody changes, on top of the one that is newest."""
    object_id = uuid7(dice.randrange(3), bytes(10))
    current = store.current(object_id)
    draft = Draft(
        id=object_id,
        type="note",
        content=f"{request}\n" + "line\n" * dice.randrange(500),
        metadata={"to": Reference(uuid7(dice.randrange(5), bytes(10)))},
        additional={"more": request},
    )
    expected = 0 if current is None else current.number
    answer = store.write(Write(request, draft, 1.0, expected))
    if isinstance(answer, Written):
        told(f"version {object_id} {answer.version.number} {answer.version.object_hash}")


def look(store: SqliteUpkeep, said: list[str]) -> None:
    """Everything that was acknowledged is there."""
    for line in said:
        kind, *rest = line.split()
        if kind == "blob":
            store.get(ContentHash(rest[0]))
        elif kind == "object":
            found = store.find(ObjectId(rest[0]))
            assert found is not None, line
            assert store.get(found.content), line
        elif kind in ("said", "read"):
            ids = [entry.id for entry in store.entries(rest[0]) if isinstance(entry, Entry)]
            assert rest[1] in ids, line
            assert len(ids) % 3 == 0, f"half of a call is there: {ids[-4:]}"
            assert store.leaf(rest[0]) == ids[-1], line
            if kind == "read":
                store.get(ContentHash(rest[2]))
        elif kind == "version":
            version = store.version(rest[0], int(rest[1]))
            assert version is not None, line
            assert version.object_hash.hex == rest[2], line
            assert store.content(version), line
        else:
            raise AssertionError(line)


def clean(store: SqliteUpkeep) -> None:
    report = check_store(store)
    assert report.findings == [], report.findings[:3]


def writers(folder: Path, seed: int, rounds: int) -> dict[str, int]:
    """Three writers at a time on one store, each killed at a moment of its own."""
    dice = random.Random(seed)  # noqa: S311 -- a test's dice
    moment = Moment(dice)
    said: list[str] = []
    kills = 0
    path = folder / "0.pagein"
    for number in range(rounds):
        if number % 40 == 0:  # a store that is only being made when it happens
            path = folder / f"{number}.pagein"
            said = []
        names = [f"s{number}-{n}" for n in range(3)]
        children = [forked(writer(path, dice.randrange(2**32), name)) for name in names]
        for child in children:
            child.listen(moment.drawn())
        fresh: list[str] = []
        for child in dice.sample(children, 3):
            child.kill()
            kills += 1
            fresh += child.said
            moment.was(late=len(child.said) > 3)
        said += fresh
        with opened(path) as store:
            look(store, fresh)
            if number % 40 == 39:
                look(store, said)
                clean(store)
    with opened(path) as store:
        look(store, said)
        clean(store)
    return {"kills": kills, "acknowledged": len(said)}


def writer(path: Path, seed: int, name: str) -> Callable[[Told], None]:
    return lambda told: write_for_ever(path, random.Random(seed), name, told)  # noqa: S311 -- a test's dice


def makers(folder: Path, seed: int, rounds: int) -> dict[str, int]:  # noqa: ARG001 -- called like the others
    """Stores that four processes make at the same time."""
    for number in range(rounds):
        path = folder / f"{number}.pagein"
        children = [forked(maker(path)) for _ in range(4)]
        for child in children:
            os.waitpid(child.pid, 0)
            child.listen(300)
            os.close(child.pipe)
        assert all(child.said == ["made"] for child in children), [child.said for child in children]
    return {"made": rounds}


def maker(path: Path) -> Callable[[Told], None]:
    def make(told: Told) -> None:
        with opened(path) as store:
            store.put(b"body")
        told("made")

    return make


# --- upkeep that is killed ---------------------------------------------------------------------------------------


def upkeep(folder: Path, seed: int, rounds: int) -> dict[str, int]:
    """An import, then a collection, each killed at a random moment: all of it has happened, or nothing."""
    dice = random.Random(seed)  # noqa: S311 -- a test's dice
    lived = make_lived_in_store(folder / "lived.pagein", folder / "work", seed, 80)
    with opened(lived.store) as store:
        lines = export_all(store)
    done = {"kills": 0, "imports": 0, "collections": 0}
    importing, collecting = Moment(dice), Moment(dice)
    for number in range(rounds):
        path = folder / f"{number}.pagein"
        with opened(path) as store:
            store.append("was here", [Entry("a", None, NoteEntry("n", "{}"))])
            before = export_all(store)
        child = forked(lambda told, path=path: told(imported(path, lines)))  # type: ignore[misc]  # a default that binds
        child.listen(importing.drawn())
        child.kill()
        done["kills"] += 1
        with opened(path) as store:
            importing.was(late=export_all(store) != before)
            if export_all(store) != before:
                done["imports"] += 1
                assert b'"was here"' in b"".join(export_all(store))
            elif child.said:
                raise AssertionError("an import that was acknowledged is not there")
            clean(store)
            import_all(store, lines)
            store.put_many([b"garbage %d" % n for n in range(200)])
            ended = set(lived.names[1:])
            for name in ended:
                store.end_session(name)
        child = forked(lambda told, path=path: told(collected(path)))  # type: ignore[misc]  # a default that binds
        child.listen(collecting.drawn())
        child.kill()
        done["kills"] += 1
        is_done = finish_collection(path, ended, child.said)
        collecting.was(late=is_done)
        done["collections"] += is_done
    return done


def finish_collection(path: Path, ended: set[str], said: list[str]) -> bool:
    """Go on with a collection that was killed. Return whether it had removed the sessions: all of them at once, they are small."""
    with opened(path) as store:
        clean(store)
        left = {one.name for one in store.sessions()} & ended
        assert left in (set(), ended)
        assert not (left and said), "a collection that was acknowledged has not been"
        garbage(store, Retention(keep=0.0), time.time() + 9, apply=True)
        assert garbage(store, Retention(keep=0.0), time.time() + 9, apply=False).is_empty
        clean(store)
    return not left


def imported(path: Path, lines: list[bytes]) -> str:
    with opened(path) as store:
        import_all(store, lines)
    return "imported"


def collected(path: Path) -> str:
    with opened(path) as store:
        garbage(store, Retention(keep=0.0), time.time() + 9, apply=True)
    return "collected"


# --- a disk that says no -----------------------------------------------------------------------------------------


def full(folder: Path, seed: int, rounds: int) -> dict[str, int]:
    """A writer whose files may not grow beyond a size, a different one each time; then they may again."""
    dice = random.Random(seed)  # noqa: S311 -- a test's dice
    refused = 0
    for number in range(rounds):
        path = folder / f"{number}.pagein"
        limit = dice.randrange(40_000, 400_000)
        child = forked(lambda told, path=path, limit=limit: fill(path, dice, limit, told))  # type: ignore[misc]  # binds
        os.waitpid(child.pid, 0)
        child.listen(5)
        os.close(child.pipe)
        assert child.said[-1] == "went on", child.said[-1]
        refused += sum(line.startswith("refused StoreError") for line in child.said)
        assert not any(line.startswith("failed") for line in child.said), child.said[-1]
        with opened(path) as store:
            look(store, [line for line in child.said if line.split()[0] not in ("refused", "went")])
            clean(store)
    return {"refused": refused}


def fill(path: Path, dice: random.Random, limit: int, told: Told) -> None:
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    store = SqliteUpkeep(path)
    patience = 3
    while patience:
        content = dice.randbytes(9_000)
        try:
            told(f"blob {store.put(content)}")
        except StoreError as problem:
            told(f"refused StoreError: {problem}")
            patience -= 1
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    told(f"blob {store.put(b'there is room again' * 1000)}")
    told("went on")


def readonly(folder: Path, seed: int, rounds: int) -> dict[str, int]:  # noqa: ARG001 -- called like the others
    """A store that may be read by its user and written by nobody. Root may write whatever it likes, so it becomes somebody else."""
    lived = make_lived_in_store(folder / "store" / "one.pagein", folder / "work", seed, 60)
    make_lived_in_store(
        folder / "other.pagein", folder / "work", seed, 20
    )  # loads what is loaded on first use, while we may
    with opened(lived.store) as store:
        store.put(b"nobody needs this")  # so that a collection has something to give up
        clean(store)
        before = export_all(store)
    for path in (folder, folder / "store", folder / "work", *(folder / "work").iterdir()):
        path.chmod(0o755)
    lived.store.chmod(0o444)
    lived.store.parent.chmod(0o555)
    child = forked(lambda told: refused(lived, told))
    os.waitpid(child.pid, 0)
    child.listen(5)
    os.close(child.pipe)
    lived.store.parent.chmod(0o755)
    lived.store.chmod(0o600)
    assert child.said[-1] == "went on", child.said
    with opened(lived.store) as store:
        assert export_all(store) == before
        clean(store)
    return {"refused": sum(line.startswith("StoreError") for line in child.said)}


def refused(lived: LivedIn, told: Told) -> None:
    if os.geteuid() == 0:
        os.setgid(65_534)
        load_config()  # what is imported when it is needed: the checkout may be closed to whom this process becomes
        os.setuid(65_534)
    with opened(lived.store) as store:
        for attempt in (lambda: store.put(b"new"), lambda: garbage(store, Retention(), time.time(), apply=True)):
            try:
                attempt()
            except StoreError as problem:
                told(f"StoreError {problem}")
    with open_engine(lived.store, workspace=lived.folder) as engine:
        session = engine.session("main", workspace=lived.folder)
        for name in FILES:
            result = session.read(name, bypass_cache=True)
            text = (lived.folder / name).read_text()
            assert result.text == text, "the agent must get what it would have had without us"
            told(str(result.failure))
        session.append(Message("user", (Text("go on"),)))
        prepared = session.advance()
        assert prepared.tail, "a request goes out all the same"
        told(str(prepared.failure).removeprefix("the journal was not kept: "))
    told("went on")


if __name__ == "__main__":
    which = {"writers": writers, "upkeep": upkeep, "full": full, "readonly": readonly, "makers": makers}[sys.argv[1]]
    print(json.dumps(which(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))))  # noqa: T201 -- for the test
