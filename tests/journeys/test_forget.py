"""A forgotten text is nowhere any more, comes back in no way, and stops no session."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.log.test_withheld_requests import APIS, EAGER, WORK, Step, body, opened, stored
from typer.testing import CliRunner

import pagein
from pagein import archive, erasure, upkeep, wiring
from pagein.cli.cli import app
from pagein.engine.engine import Engine
from pagein.engine.prepared_request import PreparedRequest
from pagein.engine.reads.session_guards import ServedRead, ServedSearch
from pagein.engine.recall.object_search import Lookup
from pagein.errors import BadInput
from pagein.model.identifiers import uuid7
from pagein.model.journal_notes import OtherNote
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.model.versions import Draft
from pagein.model.writes import Write
from pagein.policy.guards.judgement import ReadAsk
from pagein.policy.privacy.erased_texts import ErasedTexts, tombstone
from pagein.policy.privacy.erasure import SAYS_SO, finder, forms_of
from pagein.ports import ForgettingStore
from pagein.providers.validity import Api

SAID = "the dove lands at nine"
TOLD = Step("Bash", {"command": "cat plan.txt"}, "plan\n" * 200 + f"{SAID}\n" + "plan\n" * 200)
ASKED = Step("Bash", {"command": f"echo '{SAID}' | wc"}, "1 5 23\n" * 60)
KEY = b"k" * 32


def forgot(folder: Path, *arguments: str, status: int = 0) -> dict[str, Any]:
    done = CliRunner().invoke(
        app, ["forget", *arguments, "--store", str(folder / "store.db"), "--workspace", str(folder), "--json"]
    )
    assert done.exit_code == status, done.output
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def clean(folder: Path) -> bool:
    with closing(wiring.open_for_upkeep(folder / "store.db", workspace=folder)) as store:
        report = upkeep.check_store(store)
    return report.is_clean


def asked(engine: Engine, steps: Sequence[Step], api: Api, count: int) -> PreparedRequest:
    return engine.prepare(body(steps[:count], api), api, at=10.0 * count, hint="one")


def test_the_schema_of_the_store_is_no_place_where_a_word_is_left_and_all_else_is(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        assert asked(engine, [WORK, WORK], "anthropic", 2).failure is None
    for word in ("reference_to", "UNIQUE(document", "places of paged-out", "SQLite format"):
        assert forgot(tmp_path, word)["left"] == []
    with closing(sqlite3.connect(tmp_path / "store.db")) as store, store:
        store.execute("INSERT INTO layer(name, place, version) VALUES('another', 0, 'a reference_to it')")
    assert forgot(tmp_path, "reference_to", status=1)["left"] == ["store.db holds it still"]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("place", [TOLD, ASKED], ids=["result", "arguments"])
@pytest.mark.parametrize("when", [2, 5], ids=["in the window", "paged out"])
def test_a_session_goes_on_in_a_running_process_after_something_in_it_was_forgotten(
    tmp_path: Path, api: Api, place: Step, when: int
) -> None:
    steps = [WORK, place, WORK, WORK, WORK, WORK, WORK]
    with opened(tmp_path) as engine:
        for count in range(when + 1):
            assert asked(engine, steps, api, count).failure is None
        assert SAID.encode() in stored(tmp_path)
        answer = forgot(tmp_path, SAID)
        assert answer["left"] == []
        assert sum(answer["found"].values()) > 0
        assert SAID.encode() not in stored(tmp_path)
        after = [asked(engine, steps, api, count) for count in range(when, len(steps) + 1)]
        assert [one.failure for one in after] == [None] * len(after)
        assert after[0].placed == "retried"
        assert {one.placed for one in after[1:]} == {"continued"}
        assert after[-1].replaced
    assert SAID.encode() not in stored(tmp_path)
    assert clean(tmp_path)
    with opened(tmp_path) as engine:  # and in another one
        again = asked(engine, [*steps, WORK], api, len(steps) + 1)
        assert (again.failure, again.placed) == (None, "continued")
    assert SAID.encode() not in stored(tmp_path)


def test_a_session_of_the_library_that_is_open_meanwhile_goes_on(tmp_path: Path) -> None:
    steps = [WORK, TOLD, WORK, WORK, WORK, WORK, WORK]
    with opened(tmp_path) as engine:
        held = engine.session("one")
        for count in range(1, 5):
            held.prepare(body(steps[:count], "anthropic"), api="anthropic", at=10.0 * count)
        forgot(tmp_path, SAID)
        for count in range(5, 8):
            prepared = held.prepare(body(steps[:count], "anthropic"), api="anthropic", at=10.0 * count)
            assert prepared.failure is None
            assert prepared.replaced
            held.observe({"usage": {"input_tokens": 10, "output_tokens": 1}})
        assert engine.session("one").leaf != held.leaf
    assert SAID.encode() not in stored(tmp_path)


def test_a_person_is_told_whether_the_text_was_there(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        asked(engine, [TOLD], "anthropic", 1)

    def told(text: str) -> str:
        named = ["--store", str(tmp_path / "store.db"), "--workspace", str(tmp_path)]
        return CliRunner().invoke(app, ["forget", text, *named]).stdout.splitlines()[0]

    assert told(SAID).startswith("rewritten: ")
    assert told("a text that nobody said") == "not found: the store holds no such text"


def test_an_object_is_forgotten_whole_and_its_stub_says_so(tmp_path: Path) -> None:
    steps = [TOLD, WORK, WORK, WORK, WORK]
    with opened(tmp_path) as engine:
        requests = [asked(engine, steps, "anthropic", count) for count in range(len(steps) + 1)]
        paged = [one for request in requests for one in (request.opened.paged if request.opened else ())]
        name = next(one.object_id for one in paged if one.call_id == "call_0")
        assert SAID in engine.recall(name)
        assert forgot(tmp_path, name)["left"] == []
        assert SAID not in engine.recall(name)
        assert "forgotten" in engine.recall(name)
        now = asked(engine, [*steps, WORK], "anthropic", len(steps) + 1)
        assert now.failure is None
        assert f"[pagein: {name} |" in now.body.decode()
        assert SAYS_SO in now.body.decode()
        assert forgot(tmp_path, name)["texts"] == 0
    assert SAID.encode() not in stored(tmp_path)
    assert clean(tmp_path)


def test_a_forgotten_text_is_withheld_where_it_comes_again(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        engine.session("before").keep()
        forgot(tmp_path, SAID)
        steps = [WORK, TOLD, ASKED, WORK, WORK, WORK]
        requests = [asked(engine, steps, "anthropic", count) for count in range(len(steps) + 1)]
        assert [one.failure for one in requests] == [None] * len(requests)
        assert all(SAID.encode() in one.body for one in requests[2:])  # the window shows it
        assert requests[-1].replaced
        session = engine.session("two")
        session.append(Message("user", (Text(f"remember: {SAID}"),)))
        session.append(Message("assistant", (ToolCall("c1", "Say", json.dumps({"what": SAID})),)))
        session.append(Message("tool", (ToolResult("c1", f"said {SAID}", "Say"),)))
        session.advance()
        session.note(OtherNote("mine", json.dumps({"what": SAID})))
        session.keep()
    assert SAID.encode() not in stored(tmp_path)
    assert clean(tmp_path)


def test_files_versions_and_searches_are_told_anew(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    plan = work / "plan.md"
    plan.write_text("# Plan\n" + "line\n" * 50 + SAID + "\n")
    (work / "other.md").write_text("# Other\n\nsee [[plan]]\n")
    (tmp_path / "kept").mkdir()
    with pagein.open(tmp_path / "kept" / "store.db", workspace=work, settings=EAGER) as engine:
        session = engine.session("one", workspace=work)
        assert SAID in session.read("plan.md").text
        ingesting = session.recalls.ingest_below(str(work))
        assert ingesting is not None
        assert ingesting.ingest(["*.md"]).done
        session.recalls.search(Lookup(SAID))
        with closing(_store(tmp_path / "kept")) as store:
            files = archive.files_of(store, work)
            first = files.touch(str(plan))
            plan.write_text(plan.read_text() + "more\n")
            second = files.touch(str(plan))
            files.touch(str(work / "other.md"))
            assert first is not None
            assert second is not None
        answer = forgot(tmp_path / "kept", SAID)
        assert answer["left"] == []
        assert answer["found"]["versions"] >= 2
        assert answer["found"]["log lines"] >= 1
        assert SAID.encode() not in stored(tmp_path / "kept")
        with closing(_store(tmp_path / "kept")) as store:
            history = store.history(first.id)
            texts = [store.content(one) for one in history]
            assert len(texts) == 2
            assert all(text is not None and "forgotten]" in text and SAID not in text for text in texts)
            assert store.current(first.id) == history[-1]
        again = engine.session("one", workspace=work)
        assert SAID in again.read("plan.md").text  # the file is the user's
        assert dict(again.read("plan.md").details) == {}
    assert SAID.encode() not in stored(tmp_path / "kept")
    assert clean(tmp_path / "kept")


def test_what_the_guards_noted_is_forgotten_too(tmp_path: Path) -> None:
    work, kept = tmp_path / "work", tmp_path / "kept"
    work.mkdir()
    kept.mkdir()
    (work / "plan.md").write_text(SAID + "\n")
    with opened(kept) as engine:
        session = engine.session("one", workspace=work)
        text = session.read("plan.md").text
        session.guards.note_search(ServedSearch(SAID, ["plan.md"], 1, "code"))
        read = ServedRead("file", "plan.md", 1, 1, 1, len(text), content=text)
        session.guards.note_read(session.guards.judge(ReadAsk("file", "plan.md", "plan.md")), read)
        [item] = session.guards.state.bundle.items
        assert item.encode() in stored(kept)
        assert forgot(kept, SAID)["left"] == []
        assert SAID.encode() not in stored(kept)
        assert item.encode() not in stored(kept)
    assert clean(kept)


def test_a_whole_session_is_forgotten_and_goes_on(tmp_path: Path) -> None:
    steps = [TOLD, ASKED, WORK, WORK, WORK, WORK, WORK]
    with opened(tmp_path) as engine:
        for count in range(6):
            asked(engine, steps, "anthropic", count)
        assert forgot(tmp_path, "--session", "one")["left"] == []
        kept = stored(tmp_path)
        assert SAID.encode() not in kept
        assert WORK.result[:60].encode() not in kept
        after = [asked(engine, steps, "anthropic", count) for count in range(5, len(steps) + 1)]
        assert [one.failure for one in after] == [None] * len(after)
        assert {one.placed for one in after[1:]} == {"continued"}
    assert SAID.encode() not in stored(tmp_path)
    assert clean(tmp_path)
    with pytest.raises(BadInput, match="no session"), closing(_store(tmp_path)) as store:
        erasure.forget_session(store, "nobody", tmp_path / "store.db", tmp_path / "log")


def test_text_of_a_forgotten_session_is_withheld_when_repeated(tmp_path: Path) -> None:
    """A client that goes on under another name tells the whole conversation; what another session said too is its own."""
    private = "we sell the house in\nspring, tell nobody " * 5
    steps = [TOLD, WORK, Step("Bash", {"command": "echo"}, private), WORK, WORK]
    with opened(tmp_path) as engine:
        asked(engine, steps, "anthropic", 5)
        engine.prepare(body([WORK, WORK], "anthropic", "else"), "anthropic", at=1.0, hint="two")
        forgot(tmp_path, "--session", "one")
        assert b"spring" not in stored(tmp_path)
        after = engine.prepare(body(steps, "anthropic"), "anthropic", at=90.0, hint="three")
        assert after.failure is None
        assert private.encode().replace(b"\n", b"\\n") in after.body
        assert b"spring" not in stored(tmp_path)
        assert SAID.encode() not in stored(tmp_path)
        assert WORK.result[:60].encode() in stored(tmp_path)
        steps += [WORK] * 3
        later = [
            engine.prepare(body(steps[:count], "anthropic"), "anthropic", at=90.0 + count, hint="three")
            for count in (6, 7, 8)
        ]
        assert [one.failure for one in later] == [None] * 3
        assert later[-1].replaced > 0
        assert b"spring" not in stored(tmp_path)
    assert clean(tmp_path)


def _store(folder: Path) -> ForgettingStore:
    return wiring.open_for_forgetting(folder / "store.db", workspace=folder)


def test_exports_and_imports_behave(tmp_path: Path) -> None:
    steps = [WORK, TOLD, WORK, WORK, WORK]
    with opened(tmp_path) as engine:
        for count in range(len(steps) + 1):
            asked(engine, steps, "anthropic", count)
    with closing(_store(tmp_path)) as store:
        upkeep.export_to(store, str(tmp_path / "before.jsonl"))
    forgot(tmp_path, SAID)
    with closing(_store(tmp_path)) as store:
        done = upkeep.export_to(store, str(tmp_path / "after.jsonl"))
        assert done.lost == []
        assert upkeep.garbage(store, upkeep.Retention(), 0.0, apply=True).is_empty
        taken = upkeep.import_from(store, str(tmp_path / "before.jsonl"))
        assert taken.forgotten > 0
        assert upkeep.check_store(store).is_clean
        assert not any(SAID.encode() in data for _, data in erasure._contents(store))
    assert SAID in (tmp_path / "before.jsonl").read_text()
    assert SAID not in (tmp_path / "after.jsonl").read_text()
    with closing(wiring.open_for_upkeep(tmp_path / "new.db", workspace=tmp_path, new=True)) as store:
        upkeep.import_from(store, str(tmp_path / "after.jsonl"))
        assert upkeep.check_store(store).is_clean


def test_an_import_omits_text_forgotten_in_this_store(tmp_path: Path) -> None:
    """Also in a store that has nothing else of it, whatever stands between the letters."""
    said = 'the "dove"\nlands at nine'
    step = Step("Bash", {"command": f"echo '{said}'"}, "plan\n" * 200 + said)
    steps = [WORK, step, WORK, WORK, WORK]
    with opened(tmp_path) as engine:
        for count in range(len(steps) + 1):
            asked(engine, steps, "anthropic", count)
        note = Draft(id=uuid7(1_000, bytes(10)), type="note", content=f"remember: {said}", metadata={"said": said})
        with closing(_store(tmp_path)) as store:
            store.write(Write("one", note, 1.0))
            upkeep.export_to(store, str(tmp_path / "whole.jsonl"))
    folder = tmp_path / "other"
    folder.mkdir()
    with closing(wiring.open_for_upkeep(folder / "store.db", workspace=folder, new=True)) as store:
        store.put(b"something")
    forgot(folder, said)
    with closing(_store(folder)) as store:
        done = upkeep.import_from(store, str(tmp_path / "whole.jsonl"))
        assert done.forgotten >= 4
        assert done.counts["entry"] == done.added["entry"] > len(steps)
        forms = [form.encode() for form in forms_of(said)]
        assert [where for where, data in erasure._contents(store) if any(one in data for one in forms)] == []
        (version,) = store.history(note.id)
        assert store.content(version) == f"remember: [pagein: withheld, {len(said)} characters, forgotten]"
        assert upkeep.check_store(store).is_clean
        again = upkeep.import_from(store, str(tmp_path / "whole.jsonl"))
        assert again.added == {}
    with opened(folder) as engine:
        assert asked(engine, [*steps, WORK], "anthropic", 6).placed == "continued"


def test_forget_reports_a_short_or_missing_text(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        engine.session("one").append(Message("user", (Text("hello"),)))
        engine.session("one").keep()
    for arguments in (["cat"], ["pg-01234567-89abcdef"], [], ["text", "--session", "one"]):
        done = CliRunner().invoke(app, ["forget", *arguments, "--store", str(tmp_path / "store.db")])
        assert done.exit_code != 0
        assert "Traceback" not in done.output
    answer = forgot(tmp_path, "nobody ever said this")
    assert sum(answer["found"].values()) == 0
    typed = CliRunner().invoke(app, ["forget", "-", "--store", str(tmp_path / "store.db")], input=SAID + "\n")
    assert typed.exit_code == 0
    assert SAID not in typed.output
    with closing(sqlite3.connect(tmp_path / "store.db")) as store:
        assert SAID not in "\n".join(store.iterdump())


@pytest.mark.parametrize("typed", [True, False], ids=["typed", "argument"])
def test_half_a_surrogate_pair_is_found_whatever_the_locale(tmp_path: Path, *, typed: bool) -> None:
    half = "the dove \ud800 lands at nine"
    with opened(tmp_path) as engine:
        engine.session("one").append(Message("user", (Text(f"I say: {half}"),)))
        engine.session("one").keep()
    raw = half.encode("utf-8", "surrogatepass")
    command = [
        sys.executable,
        "-m",
        "pagein",
        "forget",
        "-" if typed else raw,
        "--store",
        str(tmp_path / "store.db"),
        "--json",
    ]
    for language in ("C.UTF-8", "C", "en_US.UTF-8"):
        done = subprocess.run(  # noqa: S603 -- our own command
            command,
            input=raw + b"\n" if typed else b"",
            capture_output=True,
            env={**os.environ, "LC_ALL": language},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert sum(json.loads(done.stdout)["found"].values()) == (1 if language == "C.UTF-8" else 0)
    with opened(tmp_path) as engine:
        assert half not in str(engine.session("one").window())


def test_forget_refuses_input_that_is_not_utf8(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        engine.session("one").append(Message("user", (Text("hello"),)))
        engine.session("one").keep()
    done = CliRunner().invoke(
        app, ["forget", "-", "--store", str(tmp_path / "store.db")], input=b"a latin letter: \xe9 here"
    )
    assert isinstance(done.exception, BadInput)
    assert "give it in UTF-8" in str(done.exception)


def test_forgetting_an_unknown_session_names_the_nearest_ones(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        engine.session("fix-login").append(Message("user", (Text("hello"),)))
        engine.session("fix-login").keep()
    done = CliRunner().invoke(app, ["forget", "--session", "fix-logn", "--store", str(tmp_path / "store.db")])
    assert isinstance(done.exception, BadInput)
    assert "'fix-login'" in str(done.exception)
    assert "pagein sessions" not in str(done.exception)


@given(st.text(min_size=6, max_size=40), st.text(max_size=80), st.text(max_size=80))
@settings(max_examples=200)
def test_a_text_is_known_again_wherever_it_stands(text: str, before: str, behind: str) -> None:
    forgotten = ErasedTexts(KEY, (tombstone(text, KEY),))
    whole = before + text + behind
    for finds in (forgotten.finds, finder([text])):
        assert finds(whole)
        assert all(text in whole[one.start : one.end] for one in finds(whole))


@given(st.text(min_size=6, max_size=20), st.text(max_size=60))
def test_a_tombstone_matches_only_its_own_text(text: str, other: str) -> None:
    found = ErasedTexts(KEY, (tombstone(text, KEY),)).finds(other)
    assert bool(found) == (text in other)


def test_a_tombstone_tells_nothing_without_the_key() -> None:
    one, other = tombstone(SAID, KEY), tombstone(SAID, b"l" * 32)
    assert one.digest != other.digest
    assert one.beginning != other.beginning
    assert SAID not in repr(one)
