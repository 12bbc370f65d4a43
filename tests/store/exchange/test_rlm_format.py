import json
import math
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagein.errors import BadInput, StoreError
from pagein.store.exchange.rlm_format import (
    RlmRecord,
    RlmSource,
    RlmWriter,
    append,
    load_store,
    session_folder,
    tokens_of,
)
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.lived_in_store import make_lived_in_store
from pagein.upkeep import check_store, export_rlm, import_from

TEXTS = st.text(st.characters(), max_size=30)
RECORDS = st.builds(
    RlmRecord,
    id=st.integers(0, 5).map(lambda number: f"rlm-obj-0000000{number}"),
    type=st.sampled_from(["conversation", "tool_output", "file", "artifact"]),
    description=TEXTS,
    created=st.integers(0, 2**42),
    tokens=st.integers(0, 10**6),
    source=st.builds(RlmSource, st.sampled_from(["externalized", "ingested", "child_result"]), TEXTS),
    content=TEXTS,
)


def record(number: int = 1, content: str = "content", **more: object) -> RlmRecord:
    made = RlmRecord(
        f"rlm-obj-0000000{number}",
        "tool_output",
        "Bash: content - 1 line",
        1_700_000_000_000 + number,
        tokens_of(content),
        RlmSource("externalized", f"toolResult:call-{number}"),
        content,
    )
    return replace(made, **more)  # type: ignore[arg-type]  # whatever a test wants


def sought(folder: Path) -> dict[str, str]:
    """Contents by id, found as the format means it: by the offsets of the index in the log."""
    log = (folder / "store.jsonl").read_bytes()
    objects = json.loads((folder / "index.json").read_bytes())["objects"]
    lines = {one["id"]: log[one["byteOffset"] : one["byteOffset"] + one["byteLength"]] for one in objects}
    return {name: json.loads(line)["content"] for name, line in lines.items()}


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(st.lists(RECORDS, max_size=4), max_size=3))
def test_records_come_back_and_the_index_finds_them(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[RlmRecord]]
) -> None:
    folder = tmp_path_factory.mktemp("rlm") / "session"
    newest: dict[str, RlmRecord] = {}
    for batch in batches:
        append(folder, batch)
        newest |= {one.id: one for one in batch}
    assert {one.id: one for one in load_store(folder).records} == newest
    if batches:
        index = json.loads((folder / "index.json").read_bytes())
        assert (index["version"], index["sessionId"]) == (1, "session")
        assert index["totalTokens"] == sum(one.tokens for one in newest.values())
        assert sought(folder) == {name: one.content for name, one in newest.items()}


def test_a_record_has_the_shape_of_the_specification(tmp_path: Path) -> None:
    append(tmp_path / "s", [record()])
    (line,) = (tmp_path / "s" / "store.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "id": "rlm-obj-00000001",
        "type": "tool_output",
        "description": "Bash: content - 1 line",
        "createdAt": 1_700_000_000_001,
        "tokenEstimate": 2,
        "source": {"kind": "externalized", "fingerprint": "toolResult:call-1"},
        "content": "content",
    }


@pytest.mark.parametrize(
    ("content", "tokens"), [("const x = 1;", 3), ("aaa", 1), ("", 0), ("\U0001f600" * 2, 1), ("\ud800", 1)]
)
def test_tokens_are_a_quarter_of_what_javascript_counts(content: str, tokens: int) -> None:
    assert tokens_of(content) == tokens
    assert tokens == math.ceil(len(content.encode("utf-16-le", "surrogatepass")) / 8)


@pytest.mark.parametrize("index", [None, b"", b"{torn", b'{"version":1,"objects":[]}', b"[]"])
def test_an_index_that_is_missing_or_wrong_is_made_anew_from_the_log(tmp_path: Path, index: bytes | None) -> None:
    folder = tmp_path / "s"
    append(folder, [record(1, "one ü"), record(2, "two")])
    path = folder / "index.json"
    right = path.read_bytes()
    if index is None:
        path.unlink()
    else:
        path.write_bytes(index)
    append(folder, [])
    assert path.read_bytes() == right
    append(folder, [record(3, "three")])
    assert sought(folder) == {"rlm-obj-00000001": "one ü", "rlm-obj-00000002": "two", "rlm-obj-00000003": "three"}


DAMAGE = [
    b"\n{broken json\n",
    b"\n\n\n",
    b"[]\n",
    b'{"id":"x"}\n',
    b"\xff\xfe\n",
    b'{"id":1,"type":"file","content":"","source":{}}\n',
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_lines_that_cannot_be_understood_are_passed_over(tmp_path: Path, damage: bytes) -> None:
    folder = tmp_path / "s"
    append(folder, [record(1)])
    with (folder / "store.jsonl").open("ab") as file:
        file.write(damage)
    append(folder, [record(2)])
    found = load_store(folder)
    assert [one.id for one in found.records] == ["rlm-obj-00000001", "rlm-obj-00000002"]
    assert len(found.skipped) == bool(damage.strip())
    assert set(sought(folder)) == {"rlm-obj-00000001", "rlm-obj-00000002"}


def test_a_log_that_was_cut_at_any_byte_gives_all_whole_lines_and_takes_more(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    append(folder, [record(1, "ü" * 9), record(2, "zwei"), record(3)])
    log = (folder / "store.jsonl").read_bytes()
    ends = [place for place, byte in enumerate(log) if byte == ord("\n")]
    for cut in range(0, len(log), 5):
        (folder / "store.jsonl").write_bytes(log[:cut])
        whole = sum(end <= cut for end in ends)
        assert len(load_store(folder).records) == whole
        append(folder, [record(4, "four")])
        assert list(sought(folder).values())[-1] == "four"
        assert len(sought(folder)) == whole + 1


def test_a_record_is_written_again_only_after_a_change(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    append(folder, [record(1)])
    append(folder, [record(1)])
    assert (folder / "store.jsonl").read_text().count("\n") == 1
    append(folder, [record(1, "changed")])
    assert sought(folder) == {"rlm-obj-00000001": "changed"}


@pytest.mark.parametrize("name", ["/abs/path", "../up", "a/b", "", ".", "..", "a\\b", "a\nb", "x" * 300])
def test_a_session_is_named_and_never_a_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput):
        session_folder(tmp_path, name)


def test_files_are_for_the_user_alone(tmp_path: Path) -> None:
    append(tmp_path / "s", [record()])
    assert [stat.S_IMODE(path.stat().st_mode) for path in sorted((tmp_path / "s").iterdir())] == [0o600] * 2
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o700


def test_a_full_disk_loses_no_earlier_record(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    append(folder, [record(1)])
    before = (folder / "store.jsonl").read_bytes()
    code = f"""
        import resource, signal
        from pathlib import Path
        from dataclasses import replace
        from pagein.errors import StoreError
        from pagein.store.exchange.rlm_format import append, load_store
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        folder = Path({str(folder)!r})
        (one,) = load_store(folder).records
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        try:
            append(folder, [replace(one, id="big", content="x" * 200_000)])
        except StoreError as problem:
            print("StoreError", problem)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert done.stdout.startswith("StoreError")
    assert (folder / "store.jsonl").read_bytes() == before
    append(folder, [record(2)])
    assert len(sought(folder)) == 2


def test_a_log_that_cannot_be_read_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "s" / "store.jsonl").mkdir(parents=True)
    with pytest.raises(StoreError):
        load_store(tmp_path / "s")


def test_adding_costs_what_is_added(tmp_path: Path) -> None:
    """The known implementation rewrote the index each time; a thousand adds then cost a thousand times the store."""
    with RlmWriter(tmp_path / "s") as writer:
        for number in range(200):
            writer.add([replace(record(), id=f"id-{number}")])
            assert not (tmp_path / "s" / "index.json").exists()
    assert len(sought(tmp_path / "s")) == 200


def writes(folder: Path, number: int) -> None:
    with RlmWriter(folder) as writer:
        for place in range(20):
            writer.add([replace(record(), id=f"{number}-{place}", content="x" * 3000)])


def test_several_processes_lose_no_record(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=writes, args=(tmp_path / "s", number)) for number in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    found = load_store(tmp_path / "s")
    assert (len(found.records), found.skipped) == (60, ())
    assert len(sought(tmp_path / "s")) == 60


@pytest.mark.parametrize("lines", [1, 8, 20])
def test_a_writer_that_is_killed_leaves_whole_records(tmp_path: Path, lines: int) -> None:
    code = f"""
        from pathlib import Path
        from pagein.store.exchange.rlm_format import *
        for number in range(10_000):
            one = RlmRecord(f"id-{{number}}", "file", "", 1, 1, RlmSource("ingested", "a"), "x" * 50_000)
            append(Path({str(tmp_path)!r}) / "s", [one])
            print(number, flush=True)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - ours
        assert process.stdout is not None
        told = [int(process.stdout.readline()) for _ in range(lines)]
        os.kill(process.pid, signal.SIGKILL)
        told += [int(line) for line in process.stdout.read().split()]
    assert {f"id-{number}" for number in told} <= {one.id for one in load_store(tmp_path / "s").records}
    append(tmp_path / "s", [record()])
    assert set(sought(tmp_path / "s")) >= {f"id-{number}" for number in told} | {"rlm-obj-00000001"}


# --- from there to here and back ---------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / ".pi" / "rlm" / "their-session"
    records = [
        record(1, "first"),
        record(2, "text of a file", type="file", source=RlmSource("ingested", "/w/a.py")),
        record(3, "SECRET=1", type="file", source=RlmSource("ingested", "/w/.env")),
        record(4, "said \ud800", type="conversation", source=RlmSource("externalized", "user:1700000000000")),
    ]
    append(folder, records)
    return folder


def test_their_objects_become_objects_that_are_found_by_their_old_ids(tmp_path: Path, folder: Path) -> None:
    store = SqliteUpkeep(tmp_path / "one.pagein")
    done = import_from(store, str(folder))
    assert done.added == {"version": 3}
    assert done.counts == {"record": 4, "withheld": 1}
    found = store.current("rlm-obj-00000002")
    assert found is not None
    assert (found.type, found.metadata["path"], store.content(found)) == ("file", "/w/a.py", "text of a file")
    talk = store.current("rlm-obj-00000004")
    assert talk is not None
    assert store.content(talk) == "said \ud800"
    assert store.current("rlm-obj-00000003") is None
    assert import_from(store, str(folder / "store.jsonl")).added == {}
    append(folder, [record(1, "second", created=1_800_000_000_000)])
    assert import_from(store, str(folder)).added == {"version": 1}
    first = store.current("rlm-obj-00000001")
    assert first is not None
    assert (first.number, store.content(first)) == (2, "second")
    assert check_store(store).is_clean
    store.close()


def test_two_sessions_with_one_id_are_two_objects(tmp_path: Path, folder: Path) -> None:
    append(folder.with_name("other"), [record(1, "of another session")])
    store = SqliteUpkeep(tmp_path / "one.pagein")
    import_from(store, str(folder))
    assert import_from(store, str(folder.with_name("other"))).added == {"version": 1}
    assert import_from(store, str(folder.with_name("other"))).added == {}
    assert len({one.id for one in store.log()}) == 4
    store.close()


def test_evicted_results_are_readable_in_the_format_of_pi_rlm(tmp_path: Path) -> None:
    lived = make_lived_in_store(tmp_path / "one.pagein", tmp_path / "work", 2, 80)
    store = SqliteUpkeep(lived.store)
    made = [export_rlm(store, tmp_path / "rlm", name) for name in lived.names]
    found = {name: content for one in made for name, content in sought(one).items()}
    assert found == lived.stubs
    again = (made[0] / "store.jsonl").read_bytes()
    export_rlm(store, tmp_path / "rlm", lived.names[0])
    assert (made[0] / "store.jsonl").read_bytes() == again
    with pytest.raises(BadInput, match="no session 'nobody'"):
        export_rlm(store, tmp_path / "rlm", "nobody")
    store.close()
