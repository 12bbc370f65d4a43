"""A recording as a journal: the same facts, names and private texts as in the journal that a gateway keeps."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.past_sessions.conftest import FIXTURES, KEY, Pi, branch, entries, messages, texts

from pagein import wiring
from pagein.gateway.curation.session_hints import from_headers
from pagein.model.entries import CompactionEntry, MessageEntry, NoteEntry
from pagein.model.journal_notes import ClientNote
from pagein.model.memory_notes import RecordedNote
from pagein.model.messages import FileAccess, Message, Text, ToolCall, ToolResult
from pagein.past_sessions.intake import Intake
from pagein.past_sessions.recorded_journal import session_name
from pagein.replay.readers import Source, read_source
from pagein.replay.record.recorded_session import SessionHead
from pagein.store.sqlite.sqlite_store import SqliteStore


def test_the_facts_of_the_recording_come_first(
    intake: Intake, store: SqliteStore, recording: Callable[..., Path]
) -> None:
    intake.remember([recording()])
    first, second, *_ = entries(store, "cc-1")
    assert isinstance(first.body, NoteEntry)
    assert first.body.note == RecordedNote("claude-code", "/srv/shop")
    assert isinstance(second.body, NoteEntry)
    assert second.body.note == ClientNote("claude-code")
    assert (first.parent, second.parent) == (None, first.id)


@pytest.mark.parametrize(
    ("name", "sessions"),
    [
        ("claude-code.jsonl", {"cc-1", "cc-1/x1"}),
        ("codex.jsonl", {"cx-1"}),
        ("pi-v3.jsonl", {"pi-three"}),
        ("gemini-cli.json", {"gm-1"}),
        ("copilot-cli.jsonl", {"cp-1"}),
        ("opencode-export.json", {"ses_shop1"}),
    ],
)
def test_every_message_of_every_agent_is_in_the_journal(
    name: str, sessions: set[str], intake: Intake, store: SqliteStore
) -> None:
    report = intake.remember([FIXTURES / name])
    recorded = {
        session_name(one.head, ""): [item for item in one.entries if isinstance(item, Message)]
        for one in read_source(Source(name, FIXTURES / name))
    }
    assert report.failed == ()
    assert set(recorded) == sessions
    assert report.messages == sum(map(len, recorded.values()))
    for session, said in recorded.items():
        kept = messages(entries(store, session))
        assert [(one.role, len(one.blocks), one.at) for one in kept] == [
            (one.role, len(one.blocks), one.at) for one in said
        ]
        assert [entry.at for entry in entries(store, session) if isinstance(entry.body, MessageEntry)] == [
            one.at for one in said
        ]


def test_calls_carry_the_files_that_they_touch(
    intake: Intake, store: SqliteStore, recording: Callable[..., Path]
) -> None:
    intake.remember([recording()])
    calls = [block for one in messages(entries(store, "cc-1")) for block in one.blocks if isinstance(block, ToolCall)]
    assert FileAccess("read", "basket.py") in {access for call in calls for access in call.accesses}


def test_a_compaction_of_the_host_is_one_of_the_journal(
    intake: Intake, store: SqliteStore, recording: Callable[..., Path]
) -> None:
    intake.remember([recording()])
    bodies = [one.body for one in entries(store, "cc-1")]
    place = next(place for place, body in enumerate(bodies) if isinstance(body, CompactionEntry))
    after = bodies[place + 1]
    assert isinstance(after, MessageEntry)
    assert isinstance(after.message.blocks[0], Text)
    assert after.message.blocks[0].injected == "compact_summary"


@pytest.mark.parametrize(
    ("head", "headers"),
    [
        (SessionHead("s-1", "x", "claude-code", "f"), [("x-claude-code-session-id", "s-1")]),
        (
            SessionHead("s-1-sub-a7", "x", "claude-code/subagent", "f", parent="s-1"),
            [("x-claude-code-session-id", "s-1"), ("x-claude-code-agent-id", "a7")],
        ),
        (SessionHead("019-cx", "x", "codex", "f"), [("session_id", "019-cx")]),
        (SessionHead("019-cx", "x", "codex/subagent", "f", parent="018"), [("session-id", "019-cx")]),
        (SessionHead("ses_1", "x", "opencode", "f"), [("x-session-affinity", "ses_1")]),
    ],
)
def test_a_session_has_the_name_that_a_gateway_gives_it(head: SessionHead, headers: list[tuple[str, str]]) -> None:
    told = from_headers(headers)
    assert told is not None
    assert session_name(head, "") == told.key


def test_keys_and_excluded_files_stay_out(intake: Intake, store: SqliteStore, place: Path, tmp_path: Path) -> None:
    pi = Pi(tmp_path / "s.jsonl")
    pi.user(f"use {KEY} for it")
    pi.call("c1", "read", {"path": ".env"}, "PASSWORD=swordfish-and-more")
    pi.call("c2", "bash", {"command": f"deploy --key {KEY}"}, f"{KEY} accepted")
    pi.call("c3", "bash", {"command": "cat config/server.pem"}, "quite-private-words")
    pi.answer("done")
    intake.remember([pi.path])
    said = "\n".join(texts(entries(store, "pi-1")))
    assert "done" in said
    for secret in (KEY, "swordfish", "quite-private-words"):
        assert secret not in said
    whole = b"".join(path.read_bytes() for path in place.parent.glob("store.pagein*"))
    assert KEY.encode() not in whole


def test_what_is_withheld_is_withheld_as_in_a_session_of_the_engine(
    intake: Intake, store: SqliteStore, place: Path, tmp_path: Path
) -> None:
    """Weights too, and digests: the two ways to the journal are one."""
    pi = Pi(tmp_path / "s.jsonl")
    pi.user(f"use {KEY} for it")
    pi.call("c1", "read", {"path": "deploy/.env.production"}, "PASSWORD=swordfish-and-more")
    pi.call("c2", "bash", {"command": f"deploy --key {KEY}"}, f"{KEY} accepted")
    intake.remember([pi.path])
    (recorded,) = read_source(Source("s.jsonl", pi.path))
    with wiring.open(place) as engine:
        session = engine.session("by hand")
        for item in recorded.entries:
            if isinstance(item, Message):
                session.append(item)
        session.keep()

    def said(name: str) -> list[MessageEntry]:
        return [one.body for one in entries(store, name) if isinstance(one.body, MessageEntry)]

    assert said("pi-1") == said("by hand")
    results = [block for one in said("pi-1") for block in one.message.blocks if isinstance(block, ToolResult)]
    assert [block.withheld is not None for block in results] == [True, True]


def test_the_engine_goes_on_with_a_remembered_session(intake: Intake, place: Path, tmp_path: Path) -> None:
    pi = Pi(tmp_path / "s.jsonl")
    pi.user("hello")
    pi.call("c1", "bash", {"command": "ls"}, "a.py")
    intake.remember([pi.path])
    with wiring.open(place) as engine:
        session = engine.session("pi-1")
        session.append(Message("assistant", (Text("there is a.py"),)))
        session.append(Message("user", (Text("thanks"),)))
        request = session.advance()
    said = [block.text for one in request.tail for block in one.blocks if isinstance(block, Text | ToolResult)]
    assert said == ["hello", "a.py", "there is a.py", "thanks"]


def test_sessions_without_a_name_of_their_own_are_told_apart_by_what_they_say(
    intake: Intake, store: SqliteStore, tmp_path: Path
) -> None:
    """Logs of requests are often called alike, and a log that was moved is the same session."""
    for folder, words in (("a", "hello"), ("b", "good morning"), ("c", "hello")):
        row = {"model": "m", "messages": [{"role": "user", "content": words}]}
        answer = {"role": "assistant", "content": [{"type": "text", "text": "yes"}], "usage": {"input_tokens": 5}}
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "log.jsonl").write_text(json.dumps({"request": row, "response": answer}) + "\n")
    report = intake.remember([tmp_path / folder for folder in "abc"])
    assert (report.new, report.failed) == (2, ())
    names = [name for name in store.latest(9) if name.startswith("log-")]
    assert sorted(texts(entries(store, name))[0] for name in names) == ["good morning", "hello"]


def test_two_recordings_of_one_session_share_its_beginning(intake: Intake, store: SqliteStore, tmp_path: Path) -> None:
    for folder, end in (("a", "one end"), ("b", "another end")):
        pi = Pi(tmp_path / folder / "s.jsonl")
        pi.user("begin")
        pi.answer(end)
    intake.remember([tmp_path / "a", tmp_path / "b"])
    assert texts(entries(store, "pi-1")) == ["begin", "one end", "another end"]
    assert texts(branch(store, "pi-1")) == ["begin", "another end"]
