"""A job through a real gateway, and what memory tells of it: the objects, as commands and the library give them."""

import itertools
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.processes import ended, gateway_process, until
from tests.journeys.coding_client import CodingClient, uses
from typer.testing import CliRunner

import pagein
from pagein import wiring
from pagein.cli.cli import app
from pagein.engine.recall.reference_graph import Selection
from pagein.engine.session import Session
from pagein.memory.followed_place import LAYER
from pagein.model.links import Resolution
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.model.versions import Draft, Provenance
from pagein.model.writes import Query, Write, Written
from pagein.simulator import SimulatedProvider
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.tools.calls import Call
from pagein.tools.catalogue import answer

TOKENS = "---\nstatus: open\n---\n# Tokens\n\nThey live a day, see [[auth]]. #security\n"
AUTH = "# Auth\n\nUses [[tokens]].\n"
WORDS = ("Write down how tokens expire.", "Make it a day.", "Thank you.")
_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
Run = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Job:
    """What is left of a job: the store, the folder, the requests of the client's last message, and who answered."""

    store: Path
    folder: Path
    messages: list[dict[str, Any]]

    @property
    def code(self) -> str:
        return str(self.folder / "auth.py")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Two sessions: one writes a note and code, changes the code and runs a test; the other writes another note."""
    place = tmp_path_factory.mktemp("job")
    folder = place / "work"
    folder.mkdir()
    code, note = str(folder / "auth.py"), str(folder / "notes" / "tokens.md")
    with SimulatedProvider() as provider, gateway_process(provider.url, place) as (url, process):
        first = CodingClient(url, folder, "monday")
        first.asks(
            WORDS[0],
            [{"thinking": "a note first"}, {"text": "I write it down."}, uses("Write", file_path=note, content=TOKENS)],
            [uses("Bash", command="echo 3 passed"), uses("Write", file_path=code, content="DAY = 1\nHOUR = 2\n")],
            [{"text": "Written."}],
        )
        first.asks(
            WORDS[1],
            [uses("Read", file_path=code)],
            [uses("Edit", file_path=code, old_string="DAY = 1", new_string="DAY = 86400")],
            [uses("Edit", file_path=code, old_string="not there", new_string="x")],
            [{"text": "A day it is."}],
        )
        first.asks(WORDS[2], [{"text": "Gladly."}])
        second = CodingClient(url, folder, "tuesday")
        second.asks(
            "Note how we log in.",
            [uses("Write", file_path=str(folder / "notes" / "auth.md"), content=AUTH)],
            [{"text": "Noted."}],
        )
        second.asks("Bye.", [{"text": "Bye."}])
        until(lambda: _is_followed(place / "s.pagein"))  # by the running gateway, without a command
        assert ended(process) == 0
    assert [record.refused for record in provider.requests if record.refused] == []
    return Job(place / "s.pagein", folder, first.messages)


def _is_followed(store: Path) -> bool:
    opened = SqliteStore(store)
    try:
        layer = opened.layer(LAYER)
        return layer is not None and layer[0] == opened.last_place() > 0
    finally:
        opened.close()


@pytest.fixture
def run(job: Job, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command on the store of the job, and returns what it says with --json."""
    monkeypatch.chdir(job.folder)

    def run(command: str, *arguments: str, store: Path = job.store) -> Any:  # noqa: ANN401 - JSON
        done = CliRunner().invoke(app, [command, *arguments, "--json", "--store", str(store)])
        assert done.exit_code == 0, (done.stdout, done.exception)
        return json.loads(done.stdout)

    return run


@pytest.fixture
def copy(job: Job, tmp_path: Path) -> Path:
    """The store of the job, to be changed."""
    return Path(shutil.copy(job.store, tmp_path / "copy.pagein"))


@pytest.fixture
def library(copy: Path, job: Job) -> Iterator[Session]:
    """A later session of the library on the same store."""
    with pagein.open(copy, workspace=job.folder) as engine:
        yield engine.session("later")


def of_kind(run: Run, kind: str, **more: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run("objects", "--type", kind, **more)["objects"]
    return found


def call_of(run: Run, tool: str, number: int = 0) -> dict[str, Any]:
    """A call of a tool, the first made first."""
    found = [one for one in reversed(of_kind(run, "toolcall")) if one["view"]["tool"] == tool]
    shown: dict[str, Any] = run("show", found[number]["id"])
    return shown


def test_each_object_of_a_job_has_its_canonical_fields(run: Run) -> None:
    found = run("objects")["objects"]
    kinds = {one["type"] for one in found}
    assert kinds == {"session", "chat", "user", "system_prompt", "toolcall", "note", "file"}
    for one in found:
        assert _UUID7.fullmatch(one["id"]) or one["type"] == "toolcall"
        shown = run("show", one["id"])
        assert "content" in shown
        assert (shown["content_hash"] is None) == (shown["content"] is None)
        for name in ("metadata_view_hash", "object_hash"):
            assert re.fullmatch("[0-9a-f]{64}", shown[name])
        assert shown["provenance"]["origin"]
        assert shown["provenance"]["generator"] in ("human", "agent", "tool", "system")
        assert set(one["view"]) > {"id", "type"} or one["type"] == "session"
        assert shown["metadata"]


def test_nothing_that_the_user_said_is_missing(run: Run) -> None:
    told = of_kind(run, "user")
    said = {run("show", one["id"])["content"]: one for one in told}
    assert {*WORDS, "Note how we log in.", "Bye."} == set(said)
    assert run("show", said[WORDS[1]]["id"])["metadata"]["turn"] == 2


def test_a_call_is_an_object_with_its_output(run: Run, job: Job) -> None:
    bash = call_of(run, "Bash")
    assert (bash["content"], bash["metadata"]["status"]) == ("3 passed\n", "ok")
    assert bash["view"]["args_display"] == '{"command":"echo 3 passed"}'
    refused = call_of(run, "Edit", 1)
    assert refused["metadata"]["status"] == "fail"
    assert "not found" in refused["content"]
    said = {block["id"] for message in job.messages for block in message["content"] if block["type"] == "tool_use"}
    assert said <= {one["id"] for one in of_kind(run, "toolcall")}


def test_a_chat_and_its_calls_lead_to_one_another_with_their_places(run: Run) -> None:
    edit = call_of(run, "Edit")
    back = next(one for one in edit["references"] if one["path"] == "/metadata/chat_ref")
    assert back["resolved"]
    assert edit["metadata"]["turn"] == 2
    assert set(back["pin"]) == {"at", "object_hash", "metadata_view_hash", "content_hash"}
    (forth,) = (one for one in run("backlinks", edit["id"])["backlinks"] if one["type"] == "chat")
    assert forth["id"] == back["id"]
    place = edit["metadata"]["place"] - 1
    assert forth["place"] == f"/additional/turns.2.1/0/steps/{place}/toolcall/object"
    assert forth["reference"]["pin"]["content_hash"] == edit["content_hash"]


def test_a_call_and_its_files_lead_to_one_another(run: Run, job: Job) -> None:
    edit, file = call_of(run, "Edit"), run("show", job.code)
    (touched,) = (one for one in edit["references"] if one["path"].startswith("/metadata/file_refs"))
    assert (touched["id"], touched["relation"]) == (file["id"], "edit")
    assert touched["pin"]["content_hash"] == file["content_hash"]
    assert edit["id"] in {one["id"] for one in run("backlinks", job.code)["backlinks"]}


def test_a_chat_is_one_document_in_which_results_are_only_named(run: Run) -> None:
    chat = run("chat", "monday")
    assert [turn["said"][0]["words"] for turn in chat["turns"]] == list(WORDS)
    steps = [(one["kind"], one.get("tool") or one["text"]) for one in chat["turns"][0]["steps"]]
    assert steps == [
        ("thinking", "a note first"),
        ("text", "I write it down."),
        ("call", "Write"),
        ("call", "Bash"),
        ("call", "Write"),
        ("text", "Written."),
    ]
    assert "3 passed" not in json.dumps(chat)[json.dumps(chat).index('"steps"') :].replace("echo 3 passed", "")
    assert run("show", chat["id"])["content"] is None


def test_a_chat_has_a_version_for_what_was_said_by_then(run: Run) -> None:
    chat = run("chat", "monday")
    versions = run("history", chat["id"])["versions"]
    assert len(versions) >= 5
    turns = [run("show", f"{chat['id']}@{one['version']}")["view"]["turn_count"] for one in reversed(versions)]
    assert turns == sorted(turns)
    (early,) = run("chat", f"{chat['id']}@1")["turns"]
    assert (early["said"][0]["words"], early["steps"]) == (WORDS[0], [])


def test_a_file_has_a_version_for_each_content_that_was_known(run: Run, job: Job) -> None:
    edited, written = run("history", "auth.py")["versions"]
    assert [(one["op"], one["known"], one["said"]) for one in (written, edited)] == [
        ("write", "whole", WORDS[0]),
        ("edit", "whole", WORDS[1]),
    ]
    assert run("show", "auth.py")["content"] == Path(job.code).read_text()
    assert run("show", "auth.py@1")["content"] == "DAY = 1\nHOUR = 2\n"
    assert run("show", "auth.py", "--as-of", str(written["at"]))["version"] == 1
    assert "-DAY = 1\n+DAY = 86400\n" in run("diff", "auth.py@1..2")["diff"]


def test_a_note_is_a_document_and_its_links_are_references(run: Run) -> None:
    note, other = run("show", "tokens"), run("show", "auth")
    assert note["content"] == TOKENS
    told = note["metadata"]
    assert (told["title"], told["tags"], told["frontmatter"]) == ("Tokens", ["security"], {"status": "open"})
    (link,) = (one for one in note["references"] if one["path"] == "/metadata/links/0/to")
    assert (link["resolved"], link.get("pin")) == (True, None), "written before the other note, it leads there now"
    assert told["links"][0]["line"] == 6
    notes = [one["id"] for one in run("backlinks", "auth")["backlinks"] if one["type"] == "note"]
    assert notes == [note["id"]]
    assert [one["id"] for one in run("backlinks", "tokens")["backlinks"] if one["type"] == "note"] == [other["id"]]


def test_a_name_and_a_view_of_ones_own_hold_wherever_an_object_is_named(run: Run, copy: Path) -> None:
    run("name", "auth.py", "the-code", store=copy)
    assert run("show", "the-code", store=copy)["path"] == run("show", "auth.py", store=copy)["path"]
    assert run("backlinks", "the-code", store=copy)["backlinks"]
    before = run("show", "the-code", store=copy)
    run("view", "the-code", "path", store=copy)
    after = run("show", "the-code", store=copy)
    assert set(after["view"]) == {"path"} < set(before["view"])
    assert after["metadata_view_hash"] != before["metadata_view_hash"]
    assert after["content_hash"] == before["content_hash"]


def test_the_models_links_mean_the_newest_version_and_the_systems_own_a_pinned_one(library: Session) -> None:
    objects = library.objects
    (chat,) = [one for one in objects.find(Query(types=frozenset({"chat"}))) if one.metadata["turn_count"] == 3]
    for link in objects.select(chat, Selection(under="/additional", types=frozenset({"toolcall"}))):
        found = objects.resolve(link.reference)
        assert link.reference.pin is not None
        assert isinstance(found, Resolution)
        assert found.version.pin() == link.reference.pin
    (to,) = objects.select(objects.get("tokens"), Selection(under="/metadata/links"))
    assert to.reference.pin is None


def test_a_pinned_reference_still_means_the_text_as_it_was(library: Session) -> None:
    objects = library.objects
    calls = objects.find(Query(types=frozenset({"toolcall"})))
    write = next(
        one for one in calls if "auth.py" in str(one.metadata["args_display"]) and one.metadata["tool"] == "Write"
    )
    expanded = objects.expand(objects.select(write, Selection(under="/metadata/file_refs")), ["content"])
    assert [one.values for one in expanded] == [(("content", "DAY = 1\nHOUR = 2\n"),)]
    only_facts = objects.expand(objects.select(write, Selection(under="/metadata/file_refs")), ["metadata"])
    assert "HOUR" not in str(only_facts[0].values)


def test_a_model_follows_the_graph_also_where_it_goes_in_circles(library: Session) -> None:
    told = answer(library, "expand", Call({"id": "tokens", "steps": 5, "type": "note"})).text
    assert "1  note" in told
    assert "[The walk was cut" not in told
    chat = next(
        one for one in library.objects.find(Query(types=frozenset({"chat"}))) if one.metadata["turn_count"] == 3
    )
    told = answer(
        library, "expand", Call({"id": chat.id, "under": "/additional/turns.1.1", "fields": ["content"]})
    ).text
    assert told.count("(pinned, verified)") == 3
    assert "  content:\n3 passed\n" in told


def test_a_later_session_finds_a_note_and_what_it_names(library: Session) -> None:
    found = answer(library, "search", Call({"pattern": "live a day", "everything": True, "type": "note"}))
    (name,) = {match["id"] for match in found.details["matches"]}  # type: ignore[attr-defined]
    told = answer(library, "peek", Call({"id": name})).text
    assert told.startswith(TOKENS)
    assert "[[[auth]] is note " in told


def test_nothing_leaves_the_index_when_a_file_is_deleted(run: Run, copy: Path, job: Job) -> None:
    from pagein import archive

    folder = copy.parent / "work"
    shutil.copytree(job.folder, folder)
    with archive.open_archive(copy) as opened:
        files = archive.files_of(opened.objects, folder)
        files.touch("auth.py")
        (folder / "auth.py").unlink()
        files.look_again()
    gone = [one for one in run("objects", "--type", "file", "--deleted", store=copy)["objects"] if one["deleted"]]
    assert len(gone) == 1
    assert run("show", f"{gone[0]['id']}@1", store=copy)["content"] == Path(job.code).read_text()


def test_an_external_pointer_is_kept_and_travels(run: Run, tmp_path: Path) -> None:
    with_pointer = {"pointer": {"kind": "database", "address": "postgresql://db/rates", "key": [7, "eur"]}}
    here, there = tmp_path / "here.pagein", tmp_path / "there.pagein"
    store = wiring.open_for_upkeep(here, new=True)
    draft = Draft(
        id="01890a5d-ac96-774b-bcce-0000000000aa",
        type="pointer",
        content=None,
        metadata=with_pointer,
        nickname="rates",
        provenance=Provenance("postgresql://db/rates", "human"),
    )
    assert isinstance(store.write(Write("pointer", draft, 1_790_000_000.0)), Written)
    store.close()
    before = run("show", "rates", store=here)
    assert (before["content"], before["content_hash"]) == (None, None)
    assert before["metadata"] == with_pointer
    for command, store_ in (("export", here), ("import", there)):
        done = CliRunner().invoke(app, [command, str(tmp_path / "x.jsonl"), "--store", str(store_)])
        assert done.exit_code == 0, done.exception
    assert run("show", "rates", store=there) == before


def test_all_of_it_travels_and_is_proved(run: Run, tmp_path: Path, job: Job) -> None:
    there = tmp_path / "there.pagein"
    for command, store in (("export", job.store), ("import", there)):
        done = CliRunner().invoke(app, [command, str(tmp_path / "x.jsonl"), "--store", str(store)])
        assert done.exit_code == 0, done.exception
    for asked in (["sessions"], ["chat", "monday"], ["history", "auth.py"], ["show", "tokens"], ["backlinks", "auth"]):
        here, told = (json.dumps(run(*asked, store=store)) for store in (job.store, there))
        assert re.sub(r'"sequence": \d+', "", here) == re.sub(r'"sequence": \d+', "", told)
    assert run("check", store=there)["findings"] == []


def test_the_same_through_the_library(tmp_path: Path) -> None:
    clock = itertools.count(1_790_000_000)
    with pagein.open(tmp_path / "s.pagein", workspace=tmp_path) as engine:
        session = engine.session("wednesday", workspace=str(tmp_path))
        said = Message("user", (Text("Run the tests."),), next(clock))
        call = Message("assistant", (ToolCall("toolu_9", "Bash", '{"command": "make test"}'),), next(clock))
        result = Message("user", (ToolResult("toolu_9", "4 passed"),), next(clock))
        for message in (said, call, result, Message("assistant", (Text("All well."),), next(clock))):
            session.append(message)
        session.keep()
        objects = session.objects
        kinds = sorted(one.type for one in objects.find())
        assert kinds == ["chat", "session", "toolcall", "user"]
        assert objects.content(objects.get("toolu_9")) == "4 passed"
        (chat,) = objects.find(Query(types=frozenset({"chat"})))
        (link,) = objects.select(chat, Selection(types=frozenset({"toolcall"})))
        assert link.reference.pin == objects.get("toolu_9").pin()
        assert chat.at == 1_790_000_003
