"""The agent's own transcript as a proof: only content that the window shows at the call counts."""

import json
import random
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.receipt_reads import read

import pagein
from pagein import wiring
from pagein.client_windows.own_window import OwnWindow
from pagein.engine.log.standing_receipts import StandingReceipt
from pagein.engine.reads import testimony
from pagein.engine.receipts import ReceiptedRead, ReceiptedReads
from pagein.engine.sent_windows import ToolRequest
from pagein.model import read_records
from pagein.model.entries import Entry, MessageEntry
from pagein.model.messages import Message, ToolResult
from pagein.model.names import ContentHash
from pagein.model.read_events import FileRead

LINES = [f"value_{number} = compute({number}) + {number * 7}\n" for number in range(40)]


class WritingClient:
    """An agent that writes a transcript. `seen`: the results that its window shows, the oldest first, each with its call's id."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.seen: list[tuple[str, str]] = []
        self.calls = 0

    def call(self) -> str:
        self.calls += 1
        return f"call-{self.calls}"

    def request(self, name: str) -> ToolRequest:
        """A call, as the server gets it."""
        return ToolRequest(name, "read", {}, 0.0)

    def write(self, file: Path, *rows: Mapping[str, Any]) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as opened:
            opened.writelines(json.dumps(one) + "\n" for one in rows)


class ClaudeLike(WritingClient):
    """Writes as Claude Code does: a tree by parents, and a file for each fork."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.folder = home / ".claude" / "projects" / "-work-app"
        self.session, self.rows, self.files = 0, 0, 1
        self.leaf: str | None = None
        self.places: list[tuple[str | None, list[tuple[str, str]]]] = [(None, [])]

    @property
    def window(self) -> OwnWindow:
        return OwnWindow({"CLAUDE_PROJECT_DIR": "/work/app"}, self.home, patience=0)

    def row(self, kind: str, content: object, **more: object) -> None:
        self.rows += 1
        name = f"row-{self.rows}"
        message = {"role": kind, "content": content}
        told = {"type": kind, "uuid": name, "parentUuid": self.leaf, "message": message, **more}
        self.write(self.folder / f"session-{self.session}.jsonl", told)
        self.leaf = name

    def ask(self) -> str:
        name = self.call()
        self.row("assistant", [{"type": "tool_use", "id": name, "name": "mcp__pagein__read", "input": {}}])
        return name

    def take(self, name: str, text: str) -> None:
        content = [{"type": "tool_result", "tool_use_id": name, "content": [{"type": "text", "text": text}]}]
        self.row("user", content)
        self.seen = [*self.seen, (name, text)]
        self.places.append((self.leaf, self.seen))

    def compact(self, luck: random.Random) -> None:
        kept = self.leaf
        self.leaf = None
        self.row("system", "", subtype="compact_boundary")
        self.row("user", "A summary.", isCompactSummary=True)
        if luck.random() < 0.5:  # rows that are kept become the parents of the next prompt
            self.leaf = kept
        self.seen = []

    def go_back(self, luck: random.Random) -> None:
        self.leaf, self.seen = luck.choice(self.places)

    def fork(self, luck: random.Random) -> None:
        rows = (self.folder / f"session-{self.session}.jsonl").read_text() if self.rows else ""
        self.session = self.files
        self.files += 1
        (self.folder).mkdir(parents=True, exist_ok=True)
        (self.folder / f"session-{self.session}.jsonl").write_text(rows)
        self.go_back(luck)


class CodexLike(WritingClient):
    """Writes as codex does: a list, and a file for each fork."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.thread, self.threads = "thread-0", 1

    @property
    def window(self) -> OwnWindow:
        return OwnWindow({}, self.home, patience=0)

    @property
    def file(self) -> Path:
        return self.home / ".codex/sessions/2026/11/23" / f"rollout-2026-11-23T16-46-15-{self.thread}.jsonl"

    def row(self, kind: str, payload: Mapping[str, Any]) -> None:
        self.write(self.file, {"type": kind, "payload": payload})

    def ask(self) -> str:
        name = self.call()
        self.row("response_item", {"type": "function_call", "name": "read", "call_id": name})
        return name

    def take(self, name: str, text: str) -> None:
        head = {"type": "input_text", "text": "Wall time: 0.0068 seconds\nOutput:"}
        parts = [head, {"type": "input_text", "text": text}]
        self.row("response_item", {"type": "function_call_output", "call_id": name, "output": parts})
        self.seen = [*self.seen, (name, text)]

    def compact(self, luck: random.Random) -> None:
        del luck
        self.row("compacted", {"message": "A summary."})
        self.seen = []

    def go_back(self, luck: random.Random) -> None:
        self.row("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
        self.seen = self.seen[: luck.randrange(len(self.seen) + 1)]

    def fork(self, luck: random.Random) -> None:
        rows = self.file.read_text() if self.file.is_file() else ""
        self.thread = f"thread-{self.threads}"
        self.threads += 1
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(rows)
        self.go_back(luck)


class OpencodeLike(WritingClient):
    """Writes as opencode does: a database with messages and their parts, and copies of both for each fork."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.file = home / ".local" / "share" / "opencode" / "opencode.db"
        self.file.parent.mkdir(parents=True)
        self.rows, self.forks, self.session = 0, 0, "ses_0"
        self.places: list[tuple[int, list[tuple[str, str]]]] = [(0, [])]
        with self.database() as database:
            columns = "id TEXT PRIMARY KEY, revert TEXT, time_updated INTEGER, parent_id TEXT, directory TEXT, title TEXT, version TEXT"
            database.execute(f"CREATE TABLE session ({columns})")
            database.execute(
                "CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT)"
            )
            database.execute("CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT)")
            database.execute("INSERT INTO session (id, time_updated) VALUES (?, 0)", (self.session,))

    @property
    def window(self) -> OwnWindow:
        return OwnWindow({"OPENCODE": "1"}, self.home, patience=0)

    @contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.file)) as database, database:
            database.execute("PRAGMA synchronous = OFF")
            yield database

    def request(self, name: str) -> ToolRequest:
        return ToolRequest("", "read", {"target": "a.py"}, 1000.0 + self.calls)

    def message(self, info: Mapping[str, Any], part: Mapping[str, Any]) -> None:
        self.rows += 1
        name = f"msg_{self.rows:04}"
        with self.database() as database:
            database.execute(
                "INSERT INTO message VALUES (?, ?, ?, ?)", (name, self.session, self.rows, json.dumps(info))
            )
            database.execute(
                "INSERT INTO part VALUES (?, ?, ?, ?)", (f"prt_{name}", name, self.session, json.dumps(part))
            )
            database.execute("UPDATE session SET time_updated = ? WHERE id = ?", (self.rows, self.session))

    def tool(self, name: str, **state: object) -> dict[str, Any]:
        told = {"input": {"target": "a.py"}, "time": {"start": (1000 + self.calls) * 1000}, **state}
        return {"type": "tool", "tool": "pagein_read", "callID": name, "state": told}

    def ask(self) -> str:
        name = self.call()
        self.message({"role": "assistant"}, self.tool(name, status="running"))
        return name

    def take(self, name: str, text: str) -> None:
        self.update(name, self.tool(name, status="completed", output=text))
        self.seen = [*self.seen, (name, text)]
        self.places.append((self.rows, self.seen))

    def update(self, name: str, part: Mapping[str, Any]) -> None:
        with self.database() as database:
            of_call = "json_extract(data, '$.callID') = ? AND session_id = ?"
            database.execute(f"UPDATE part SET data = ? WHERE {of_call}", (json.dumps(part), name, self.session))  # noqa: S608

    def compact(self, luck: random.Random) -> None:
        if luck.random() < 0.5:
            self.message({"role": "user"}, {"type": "compaction"})
        else:
            self.message({"role": "assistant", "summary": True}, {"type": "text", "text": "A summary."})
        self.seen = []
        self.places.append((self.rows, self.seen))

    def go_back(self, luck: random.Random) -> None:
        last = luck.randint(0, self.rows)
        with self.database() as database:
            database.execute("DELETE FROM message WHERE session_id = ? AND time_created > ?", (self.session, last))
            database.execute("DELETE FROM part WHERE message_id NOT IN (SELECT id FROM message)")
        self.places = [one for one in self.places if one[0] <= last]
        self.seen = self.places[-1][1]

    def fork(self, luck: random.Random) -> None:
        self.forks += 1
        before, self.session = self.session, f"ses_{self.forks}"
        with self.database() as database:
            database.execute("INSERT INTO session (id, time_updated) VALUES (?, ?)", (self.session, self.rows))
            rows = database.execute(
                "SELECT id, time_created, data FROM message WHERE session_id = ?", (before,)
            ).fetchall()
            for name, at, data in rows:
                new = f"{name}{self.session}"
                database.execute("INSERT INTO message VALUES (?, ?, ?, ?)", (new, self.session, at, data))
                parts = database.execute("SELECT id, data FROM part WHERE message_id = ?", (name,)).fetchall()
                for part, told in parts:
                    database.execute(
                        "INSERT INTO part VALUES (?, ?, ?, ?)", (f"{part}{self.session}", new, self.session, told)
                    )
        self.go_back(luck)


steps = st.lists(
    st.tuples(st.sampled_from(("read", "read", "read", "edit", "compact", "back", "fork", "cut")), st.integers(0, 39)),
    min_size=3,
    max_size=16,
)


@pytest.mark.parametrize("make", [ClaudeLike, CodexLike, OpencodeLike])
@settings(max_examples=40)
@given(steps, st.randoms(use_true_random=False))
def test_the_witness_agrees_with_each_answer_that_a_transcript_proves(
    tmp_path_factory: pytest.TempPathFactory,
    make: Callable[[Path], ClaudeLike | CodexLike | OpencodeLike],
    done: list[tuple[str, int]],
    luck: random.Random,
) -> None:
    """A client that compacts, goes back, forks, and shortens what it shows, quotes nothing."""
    folder = tmp_path_factory.mktemp("window")
    file, lines = folder / "a.py", list(LINES)
    file.write_text("".join(lines))
    client = make(folder / "home")
    answers: dict[str, tuple[FileRead, str]] = {}
    with pagein.open(folder / "store.db", workspace=folder) as engine:
        reads, window = ReceiptedReads(engine.session("mcp", workspace=folder)), client.window
        others = {"compact": client.compact, "back": client.go_back, "fork": client.fork}

        def stored(version: ContentHash) -> bytes | None:
            return engine._blobs.get(version)

        for kind, number in done:
            if kind == "edit":
                lines[number] = f"changed_{luck.randrange(3)}\n"
                file.write_text("".join(lines))
            elif kind in others:
                others[kind](luck)
            if kind not in ("read", "cut"):
                continue
            call = client.ask()
            thread = client.thread if isinstance(client, CodexLike) else ""
            found = read(
                reads,
                "a.py",
                offset=min(number, 30) if number % 2 else None,
                standing=lambda call=call, thread=thread: window.standing(client.request(call), thread),  # type: ignore[misc]
            )
            assert found.result.failure is None
            event = read_records.decode(found.result.details)
            assert isinstance(event, FileRead)
            told = testimony.Testimony()
            for name, _ in client.seen:
                if name in answers:
                    told.add(name, *answers[name])
            told.add(testimony.CANDIDATE, event, found.result.text)
            assert [one for one in told.objections(stored) if one.call_id == testimony.CANDIDATE] == []
            if kind == "cut":
                client.take(call, found.text[20:])
            else:
                client.take(call, found.text)
                answers[call] = (event, found.result.text)


def _read(reads: ReceiptedReads, standing: Callable[[], Mapping[str, StandingReceipt]]) -> ReceiptedRead:
    return read(reads, "a.py", standing=standing)


@pytest.mark.parametrize("make", [ClaudeLike, CodexLike, OpencodeLike])
def test_a_second_read_gets_a_marker_and_one_behind_a_compaction_the_text(
    tmp_path: Path, make: Callable[[Path], ClaudeLike | CodexLike | OpencodeLike]
) -> None:
    (tmp_path / "a.py").write_text("".join(LINES))
    client = make(tmp_path / "home")
    thread = client.thread if isinstance(client, CodexLike) else ""
    with pagein.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        reads, window = ReceiptedReads(engine.session("mcp", workspace=tmp_path)), client.window
        answers = []
        for step in range(4):
            if step == 3:
                client.compact(random.Random(1))  # noqa: S311 - a choice
            call = client.ask()
            found = _read(reads, lambda call=call: window.standing(client.request(call), thread))  # type: ignore[misc]
            client.take(call, found.text)
            answers.append(found.result.text)
    marker = "[readcache: unchanged, 41 lines]"
    assert answers == ["".join(LINES), marker, marker, "".join(LINES)]


def test_a_transcript_that_was_written_anew_is_read_anew(tmp_path: Path) -> None:
    client = ClaudeLike(tmp_path)
    text = "x\n[known=0123456789]"
    client.take(client.ask(), text)
    window, call = client.window, client.ask()
    assert list(window.standing(client.request(call))) == ["call-1"]
    file = client.folder / "session-0.jsonl"
    rows = file.read_text().splitlines(keepends=True)
    file.write_text("".join(rows[2:]))
    assert window.standing(client.request(call)) == {}


def test_another_file_of_the_same_name_and_end_is_read_anew(tmp_path: Path) -> None:
    client = ClaudeLike(tmp_path)
    client.take(client.ask(), "x\n[known=0123456789]")
    window, call = client.window, client.ask()
    assert list(window.standing(client.request(call))) == ["call-1"]
    file = client.folder / "session-0.jsonl"
    other = file.with_suffix(".new")
    other.write_text(file.read_text().replace("[known=0123456789]", "(gone, as long as) "))
    other.replace(file)
    assert window.standing(client.request(call)) == {}


STRANGE_ROWS: list[tuple[type[ClaudeLike | CodexLike], object]] = [
    (ClaudeLike, "{broken"),
    (ClaudeLike, [1]),
    (ClaudeLike, {"type": "content-replacement"}),
    (
        ClaudeLike,
        {"type": "marble-origami-commit", "sessionId": "s", "firstArchivedUuid": "row-1", "lastArchivedUuid": "row-2"},
    ),
    (ClaudeLike, {"type": "of-a-later-version", "uuid": "u", "parentUuid": None}),
    (ClaudeLike, {"type": "user", "isCompactSummary": True, "uuid": "u", "message": {"content": "A summary."}}),
    (
        ClaudeLike,
        {
            "type": "assistant",
            "message": {"context_management": {"applied_edits": [{"type": "clear_tool_uses_20250919"}]}},
        },
    ),
    (ClaudeLike, {"type": "assistant", "message": {"context_management": 7}}),
    (CodexLike, "{broken"),
    (CodexLike, {"type": "compacted", "payload": {}}),
    (CodexLike, {"type": "event_msg", "payload": {"type": "context_compacted"}}),
    (CodexLike, {"type": "response_item", "payload": {"type": "compaction_summary"}}),
    (CodexLike, {"type": "retained_context", "payload": {}}),
    (CodexLike, {"type": "of_a_later_version"}),
]


@pytest.mark.parametrize(("make", "row"), STRANGE_ROWS)
def test_a_row_that_nobody_understands_ends_the_proof(
    tmp_path: Path, make: type[ClaudeLike | CodexLike], row: object
) -> None:
    client = make(tmp_path)
    client.take(client.ask(), "x\n[known=0123456789]")
    with next(tmp_path.rglob("*.jsonl")).open("a") as opened:
        opened.write((row if isinstance(row, str) else json.dumps(row)) + "\n")
    assert client.window.standing(client.request(client.ask()), getattr(client, "thread", "")) == {}


@pytest.mark.parametrize(
    ("make", "row"),
    [
        (ClaudeLike, {"type": "queue-operation"}),
        (ClaudeLike, {"type": "assistant", "message": {"context_management": {"applied_edits": []}}}),
        (ClaudeLike, {"type": "assistant", "message": {"context_management": None}}),
        (ClaudeLike, {"type": "system", "subtype": "turn_duration"}),
        (CodexLike, {"type": "turn_context", "payload": {"model": "gpt"}}),
        (CodexLike, {"type": "event_msg", "payload": {"type": "token_count"}}),
    ],
)
def test_a_row_that_takes_nothing_out_leaves_the_proof(
    tmp_path: Path, make: type[ClaudeLike | CodexLike], row: object
) -> None:
    client = make(tmp_path)
    client.take(client.ask(), "x\n[known=0123456789]")
    with next(tmp_path.rglob("*.jsonl")).open("a") as opened:
        opened.write(json.dumps(row) + "\n")
    assert list(client.window.standing(client.request(client.ask()), getattr(client, "thread", ""))) == ["call-1"]


def test_an_answer_whose_provider_cleared_results_proves_nothing_for_its_own_call(tmp_path: Path) -> None:
    client = ClaudeLike(tmp_path)
    client.take(client.ask(), "x\n[known=0123456789]")
    cleared = {"applied_edits": [{"type": "clear_thinking_20251015"}, {"type": "clear_tool_uses_20250919"}]}
    call = [{"type": "tool_use", "id": "call-9", "name": "mcp__pagein__read", "input": {}}]
    row = {"type": "assistant", "uuid": "u", "parentUuid": client.leaf}
    client.write(
        client.folder / "session-0.jsonl", {**row, "message": {"content": call, "context_management": cleared}}
    )
    assert client.window.standing(client.request("call-9")) == {}


def test_codex_shows_long_results_in_part_so_they_prove_nothing(tmp_path: Path) -> None:
    client = CodexLike(tmp_path)
    client.take(client.ask(), "x" * 9_000 + "\n[known=0123456789]")
    client.take(client.ask(), "x" * 8_000 + "\n[known=0123456789]")
    assert list(client.window.standing(client.request(client.ask()), client.thread)) == ["call-2"]
    (tmp_path / ".codex" / "config.toml").write_text("tool_output_token_limit = 500\n")
    assert client.window.standing(client.request(client.ask()), client.thread) == {}


@pytest.mark.parametrize("thread", ["", "../../etc", "*", "thread-9"])
def test_a_thread_of_no_rollout_proves_nothing(tmp_path: Path, thread: str) -> None:
    client = CodexLike(tmp_path)
    client.take(client.ask(), "x\n[known=0123456789]")
    assert client.window.standing(client.request(client.ask()), thread) == {}


def test_the_session_of_a_call_of_opencode_is_taken_into_the_store_without_a_result_for_the_call(
    tmp_path: Path,
) -> None:
    client = OpencodeLike(tmp_path)
    client.message({"role": "user"}, {"type": "text", "text": "the parrot is green"})
    name = client.ask()
    place = client.window.transcript(client.request(name))
    assert place == (client.file, "ses_0")

    def remembered() -> list[Message]:
        with wiring.open_intake(tmp_path / "s.pagein") as intake:
            assert intake.remember_member(client.file, "ses_0").failed == ()
        with closing(wiring.open_for_upkeep(tmp_path / "s.pagein", looks=True)) as store:
            bodies = [one.body for one in store.entries("ses_0") if isinstance(one, Entry)]
        return [one.message for one in bodies if isinstance(one, MessageEntry)]

    assert [one.role for one in remembered()] == ["user", "assistant"]
    client.take(name, "what was found")
    *_, last = remembered()
    assert isinstance(last.blocks[0], ToolResult)
    assert last.blocks[0].text == "what was found"
    client.fork(random.Random(1))  # noqa: S311 - as the other forks here
    client.ask()
    client.session = "ses_0"
    client.ask()
    assert client.window.transcript(client.request(name)) is None  # two sessions make this call


def test_a_call_of_opencode_that_may_be_another_sessions_proves_nothing(tmp_path: Path) -> None:
    client = OpencodeLike(tmp_path)
    client.take(client.ask(), "x\n[known=0123456789]")
    call = client.request(client.ask())
    assert list(client.window.standing(call)) == ["call-1"]
    assert client.window.standing(replace(call, at=call.at + 60)) == {}, "a call that an earlier process left running"
    assert client.window.standing(replace(call, arguments={"target": "b.py"})) == {}
    assert OwnWindow({}, tmp_path, patience=0).standing(call) == {}, "another agent started this process"
    client.fork(random.Random(3))  # noqa: S311 - a choice
    client.ask()
    assert client.window.standing(client.request("")) == {}


@pytest.mark.parametrize("loss", ["pruned", "failed", "reverted", "unknown part", "no JSON", "plugin", "plugin file"])
def test_what_opencode_took_out_or_may_change_proves_nothing(tmp_path: Path, loss: str) -> None:
    client = OpencodeLike(tmp_path)
    client.take(client.ask(), text := "x\n[known=0123456789]")
    config = tmp_path / ".config" / "opencode"
    config.mkdir(parents=True)
    (config / "opencode.json").write_text("{}")
    if loss == "pruned":
        client.update(
            "call-1", client.tool("call-1", status="completed", output=text, time={"start": 1, "compacted": 2})
        )
    elif loss in ("failed", "reverted"):
        change = {"failed": "message SET data = '{\"error\": {}}'", "reverted": "session SET revert = '{}'"}[loss]
        with client.database() as database:
            database.execute(f"UPDATE {change}")
    elif loss == "unknown part":
        client.message({"role": "user"}, {"type": "of-a-later-version"})
    elif loss == "no JSON":
        with client.database() as database:
            database.execute("UPDATE part SET data = '{'")
    elif loss == "plugin":
        (config / "opencode.json").write_text('{"plugin": ["pruning"]}')
    else:
        (config / "plugins").mkdir()
        (config / "plugins" / "pruning.ts").touch()
    assert client.window.standing(client.request(client.ask())) == {}
