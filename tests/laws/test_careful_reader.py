"""Law 2 by random histories: a careful reader always has a true idea of the file."""

import random
import string
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.clients.working_clients import CLIENTS, Talk, lines_of
from tests.policy.reads.careful_reader import CarefulReader, Misled
from tests.policy.reads.file_histories import Script, answered, changed, fresh, part_of

import pagein
from pagein.engine.session import Session
from pagein.model.messages import ToolResult
from pagein.policy.reads.baseline import baseline
from pagein.policy.reads.read_request import ReadingSettings

SEEDS = st.integers(0, 2**32)
BOUNDS = {
    "default": ReadingSettings(),
    "eager": ReadingSettings(min_run=1, byte_ratio=1.0, line_ratio=1.0, context=0),
    "specified": ReadingSettings(new_answers=False),
    "narrow": ReadingSettings(max_bases=1, context=1, min_run=2),
}


def begun(draw: random.Random) -> str:
    return "\n".join(fresh(draw, draw.choice([4, 20, 90])))


def asked(draw: random.Random, text: str) -> tuple[int | None, int | None]:
    """Lines to read: often all, often the same, never behind the end."""
    total = text.count("\n") + 1
    first = None if draw.random() < 0.5 else draw.choice([1, total // 3 + 1, draw.randrange(1, total + 1)])
    count = None if draw.random() < 0.5 else draw.choice([total // 3 + 1, draw.randrange(1, total + 4)])
    return first, count


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
@settings(deadline=None, max_examples=150)
@given(seed=SEEDS)
def test_no_answer_of_the_policy_misleads(bounds: ReadingSettings, seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - a history, not a secret
    texts = [begun(draw)]
    here = [Script(texts[0], bounds)]
    for _ in range(40):
        told = draw.choice(here)
        if draw.random() < 0.02 and len(here) < 3:
            here.append(told.forks())
        _acts(draw, told, texts)
        texts.append(told.text)


def _acts(draw: random.Random, told: Script, texts: list[str]) -> None:
    match draw.choices(["read", "change", "revert", "edit", "write", "refresh", "compact"], [40, 14, 8, 20, 3, 6, 1])[
        0
    ]:
        case "read":
            told.reads(*asked(draw, told.text))
        case "change":
            told.changes(changed(draw, told.text))
        case "revert":
            told.changes(draw.choice(texts))
        case "edit" if (edit := part_of(draw, told.text)) is not None:
            told.edits(*edit, seen_before=draw.random() < 0.5)
        case "write":
            told.writes(changed(draw, told.text))
        case "refresh":
            first = draw.randrange(1, told.text.count("\n") + 2)
            told.refreshes(first, first + draw.randrange(9))
        case "compact":
            told.compacts()
        case _:
            pass


@dataclass
class Room:
    """A session on a real file and a real store, with the reader of its answers."""

    session: Session
    file: Path
    reader: CarefulReader = field(default_factory=CarefulReader)

    @property
    def text(self) -> str:
        return self.file.read_text(encoding="utf-8")

    def changes(self, text: str) -> None:
        self.file.write_text(text, encoding="utf-8")

    def reads(self, first: int | None, count: int | None) -> str:
        answer = self.session.read("f.txt", offset=first, limit=count)
        assert answer.failure is None
        shown = baseline(self.text, "f.txt", offset=first, limit=count)
        answered(self.reader, answer.text, shown.notice, first, count, self.text)
        return answer.text

    def edits(self, old: str, new: str, when: str) -> None:
        """when: whether it is told before the file changes, right after it, or when a formatter has changed it again."""
        before = self.text
        if when == "before":
            self.session.note_edit("f.txt", old, new)
        self.changes(before.replace(old, new))
        if when == "formatted":
            self.changes("\n".join(line.rstrip() for line in self.text.split("\n") if line != "    return"))
        if when != "before":
            self.session.note_edit("f.txt", old, new)
        self.reader.edited(old, new, before)


@settings(deadline=None, max_examples=60)
@given(seed=SEEDS)
def test_no_answer_of_a_session_misleads(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    place = tmp_path_factory.mktemp("room")
    draw = random.Random(seed)  # noqa: S311
    file = place / "f.txt"
    file.write_text(begun(draw), encoding="utf-8")
    texts = [file.read_text(encoding="utf-8")]
    engine = pagein.open(store=place / "s.pagein")
    names = ["s0"]
    here = [Room(engine.session("s0", workspace=place), file)]
    for _ in range(25):
        room = draw.choice(here)
        if draw.random() < 0.04:
            engine.close()
            engine = pagein.open(store=place / "s.pagein")
            for name, one in zip(names, here, strict=True):
                one.session = engine.session(name, workspace=place)
        if draw.random() < 0.02 and len(here) < 3:
            names.append(f"s{len(here)}")
            here.append(Room(room.session.fork(names[-1]), file, room.reader.copy()))
        _lives(draw, room, texts)
        texts.append(room.text)
    engine.close()


def _lives(draw: random.Random, room: Room, texts: list[str]) -> None:
    match draw.choices(["read", "change", "revert", "edit", "write", "refresh"], [40, 12, 8, 22, 3, 5])[0]:
        case "read":
            room.reads(*asked(draw, room.text))
        case "change":
            room.changes(changed(draw, room.text))
        case "revert":
            room.changes(draw.choice(texts))
        case "edit" if (edit := part_of(draw, room.text)) is not None:
            room.edits(*edit, draw.choice(["before", "after", "after", "formatted"]))
        case "write":
            text = changed(draw, room.text)
            room.changes(text)
            room.session.note_write("f.txt", text)
            room.reader.wrote(text)
        case "refresh":
            room.session.refresh("f.txt", offset=draw.randrange(1, room.text.count("\n") + 2), limit=4)
        case _:
            pass


@dataclass
class Client(Talk):
    """A client whose whole request is read again after each step, as its model would read it."""

    steps: list[tuple[str, str, str, tuple[int | None, int | None]]] = field(default_factory=list)

    def step(self, what: str, before: str, after: str, lines: tuple[int | None, int | None] = (None, None)) -> None:
        self.steps.append((what, before, after, lines))

    def judge(self) -> None:
        reader = CarefulReader()
        blocks = (block for message in self.sent for block in message.blocks)
        results = [block.text for block in blocks if isinstance(block, ToolResult)]
        for (what, before, after, lines), stands in zip(self.steps, results, strict=True):
            match what:
                case "read" if after and not stands.startswith("[pagein: "):  # an empty file shows no line to judge
                    self._read_by(reader, stands, after, lines)
                case "edit":
                    old, _, new = after.partition("\0")
                    reader.edited(old, new, before)
                case "write":
                    reader.wrote("\n".join(lines_of(self.client, after)))
                case _:
                    pass

    def _read_by(self, reader: CarefulReader, stands: str, text: str, lines: tuple[int | None, int | None]) -> None:
        truth = lines_of(self.client, text)
        first = lines[0] or 1
        last = len(truth) if lines[1] is None else min(first + lines[1] - 1, len(truth))
        core = _core(self.client, stands)
        ends = last == len(truth) and (lines[1] is None or last < first + lines[1] - 1)
        tells = self.client in ("pi", "opencode", "gemini-cli") or (self.client == "claude-code" and ends)
        reader.answered(core, first, last, truth, tells=tells)


def _core(client: str, stands: str) -> list[str]:
    """The lines that a result shows, without what the client puts around them."""
    if client == "codex":
        stands = stands.split("Output:\n", 1)[1].removesuffix("\n")
    if client == "opencode":
        stands = stands.split("<content>\n", 1)[1].rsplit("\n\n(", 1)[0]
    if client == "gemini-cli" and stands.startswith("\nIMPORTANT: "):
        stands = stands.split("--- FILE CONTENT (truncated) ---\n", 1)[1]
    if client == "pi" and stands.endswith("to continue.]"):
        stands = stands.rsplit("\n\n[", 1)[0]
    rows = stands.split("\n")
    if len(rows) > 1 and rows[1].startswith("--- a/"):
        return rows[:-1] if not rows[-1] else rows
    if client in ("pi", "codex", "gemini-cli"):
        return rows
    mark = "\t" if client == "claude-code" else ": "
    return [row if row.startswith("[readcache") else row.partition(mark)[2] for row in rows]


@pytest.mark.parametrize("name", CLIENTS)
@settings(deadline=None, max_examples=80)
@given(seed=SEEDS)
def test_no_request_of_a_client_misleads(name: str, seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311
    client = Client(name, {"a.py": begun(draw) + "\n"})
    texts = [client.files["a.py"]]
    for _ in range(25):
        _works(draw, client, texts)
        texts.append(client.files["a.py"])
        client.judge()


def _works(draw: random.Random, client: Client, texts: list[str]) -> None:
    text = client.files["a.py"]
    match draw.choices(["read", "change", "revert", "edit", "write", "leave"], [40, 14, 8, 22, 3, 4])[0]:
        case "read":
            lines = asked(draw, "\n".join(lines_of(client.client, text)))
            client.read("a.py", *lines)
            client.step("read", "", text, lines)
        case "change":
            client.files["a.py"] = changed(draw, text).rstrip("\n") + "\n.\n"
        case "revert":
            client.files["a.py"] = draw.choice(texts)
        case "edit" if (edit := part_of(draw, text)) is not None:
            _edits(client, *edit)
        case "write":
            client.write("a.py", changed(draw, text).rstrip("\n") + "\n.\n")
            client.step("write", text, client.files["a.py"])
        case "leave":
            client.leave(frozenset(call for call in client.truth if draw.random() < 0.2))
        case _:
            pass


def _edits(client: Client, old: str, new: str) -> None:
    text, calls, part = client.files["a.py"], len(client.sent), old.split("\n")
    at = text.count("\n", 0, text.index(old))
    if text.split("\n")[at : at + len(part)] == part:
        client.edit("a.py", at, part, new.split("\n"))
    if len(client.sent) > calls:
        client.step("edit", text, f"{old}\0{new}")


def test_the_reader_sees_what_is_wrong() -> None:
    """The reader itself: what was once said is refused by it."""
    truth = list(string.ascii_lowercase)
    reader = CarefulReader()
    reader.answered(truth, 1, 26, truth)
    reader.edited("c\nd", "c\nx\nd", "\n".join(truth))
    now = [*truth[:3], "x", *truth[3:]]
    for row in (
        "[readcache: unchanged in lines 10-20 of 27]",
        "[readcache: unchanged, 26 lines]",
        "[readcache: lines 10-20 of 27 unchanged, shown earlier as lines 8-18]",
    ):
        with pytest.raises(Misled):
            reader.copy().answered([row], 10, 20, now)
    reader.answered(["[readcache: lines 10-20 of 27 unchanged, shown earlier as lines 9-19]"], 10, 20, now)
