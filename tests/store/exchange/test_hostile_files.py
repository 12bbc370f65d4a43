"""Hostile import files: an import refuses them with a reason, stores nothing, and spends little."""

import base64
import gzip
import hashlib
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagein.errors import BadInput
from pagein.model.identifiers import uuid7
from pagein.model.versions import Draft
from pagein.model.writes import Write
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.lived_in_store import make_lived_in_store
from pagein.testing.memory_upkeep import MemoryUpkeep
from pagein.testing.upkeep_contract import export_all, import_all
from pagein.upkeep import check_store

Record = dict[str, Any]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """The records of a real export, without its end."""
    folder = tmp_path_factory.mktemp("lived")
    lived = make_lived_in_store(folder / "one.pagein", folder / "work", 5, 40)
    store = SqliteUpkeep(lived.store)
    lines = export_all(store)
    store.close()
    return [json.loads(line) for line in lines[:-1]]


def file_of(records: list[Record]) -> list[bytes]:
    """The lines of a file with these records, and an end that vouches for them: whoever sends a file makes its sums too."""
    lines = [json.dumps(record).encode() + b"\n" for record in records]
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    return [*lines, json.dumps({"type": "end", "records": len(lines) - 1, "sha256": digest}).encode() + b"\n"]


def copied(records: list[Record]) -> list[Record]:
    made: list[Record] = json.loads(json.dumps(records))
    return made


def first(records: list[Record], kind: str) -> Record:
    return next(one for one in records if one.get("type") == kind)


def after(records: list[Record], kind: str, extra: Record) -> None:
    records.insert(records.index(first(records, kind)) + 1, extra)


def swap_versions(records: list[Record]) -> None:
    name = next(one["object"] for one in records if one.get("type") == "version" and one["number"] == 2)
    one, two = [at for at, record in enumerate(records) if record.get("object") == name][:2]
    records[one]["number"], records[two]["number"] = records[two]["number"], records[one]["number"]


REFUSED: dict[str, tuple[Callable[[list[Record]], object], str]] = {
    "tokens that no reader can hold": (lambda r: first(r, "object").update(tokens=10**40), "more than 64 bits"),
    "negative tokens": (lambda r: first(r, "object").update(tokens=-1), "tokens must be a whole number"),
    "tokens that are true": (lambda r: first(r, "object").update(tokens=True), "tokens must be a whole number"),
    "tokens in words": (lambda r: first(r, "object").update(tokens="12"), "tokens must be a whole number"),
    "half a token": (lambda r: first(r, "object").update(tokens=1.5), "tokens must be a whole number"),
    "a size that the content has not": (lambda r: first(r, "object").update(chars=7), "characters, and not 7"),
    "a negative number": (lambda r: first(r, "version").update(number=-1), "number must be a whole number from 1"),
    "a number that is true": (lambda r: first(r, "version").update(number=True), "number must be a whole number"),
    "a number that was left out": (lambda r: first(r, "version").update(number=2), "count up by one"),
    "numbers out of order": (swap_versions, "count up by one"),
    "the same version again": (lambda r: after(r, "version", first(r, "version")), "count up by one"),
    "the same blob again": (lambda r: after(r, "blob", first(r, "blob")), "written once"),
    "the same object again": (lambda r: after(r, "object", first(r, "object")), "written once"),
    "the same entry again": (lambda r: after(r, "entry", first(r, "entry")), "written once"),
    "the same session again": (lambda r: after(r, "session", first(r, "session")), "written once"),
    "the key again": (lambda r: after(r, "key", first(r, "key")), "once"),
    "the key late": (lambda r: r.append(r.pop(1)), "before everything else"),
    "a time beyond all numbers": (lambda r: first(r, "version").update(at=10**400), "more than 64 bits|thousands"),
    "a time that is true": (lambda r: first(r, "version").update(at=True), "at must be a number of seconds"),
    "a time that is none": (lambda r: first(r, "entry")["entry"].update(at=float("nan")), "no number"),
    "a number inside an entry": (lambda r: first(r, "entry")["entry"].update(tokens=1 << 70), "more than 64 bits"),
    "a format that is true": (lambda r: r[0].update(v=True), "whole number"),
    "a blob with two contents": (lambda r: first(r, "blob").update(base64=base64.b64encode(b"x").decode()), "either text or base64"),
    "an end in words": (lambda r: first(r, "session").update(ended="yes"), "true or false"),
    "a session without a name": (lambda r: first(r, "session").update(name=""), "a session has a name"),
    "a leaf that is no name": (lambda r: first(r, "session").update(leaf=7), "not a text"),
    "a writer that is no writer": (lambda r: first(r, "version").update(writer=[]), ""),
    "endless nesting": (lambda r: first(r, "entry")["entry"].update(more=json.loads("[" * 300 + "]" * 300)), "nested"),
}  # fmt: skip


@pytest.mark.parametrize(("harm", "why"), REFUSED.values(), ids=REFUSED)
def test_a_line_against_the_format_is_refused_with_its_number(
    records: list[Record], harm: Callable[[list[Record]], object], why: str
) -> None:
    made = copied(records)
    harm(made)
    store = MemoryUpkeep()
    with pytest.raises(BadInput, match=rf"file.jsonl, line \d+: .*({why}).*nothing was imported"):
        import_all(store, file_of(made))
    assert list(store.names()) == []


NASTY: st.SearchStrategy[object] = st.sampled_from(
    [None, True, False, 0, 1, -1, 2**31, 2**53, 2**63, 10**40, -(10**40), 0.5, 1e308, "", "x", "0" * 64, "\ud800", "\0", "../../x", [], [[]], {}, {"$ref": {}}, "a" * 10_000, "{}"]
)  # fmt: skip


@st.composite
def hostile(draw: st.DrawFn, records: list[Record]) -> list[Record]:
    """A file by the grammar of the format, with some of its records changed, doubled, moved or taken away."""
    made = copied(records)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(made) - 1))
        match draw(st.sampled_from(["field", "field", "inner", "drop", "double", "move", "swap", "kind"])):
            case "field":
                made[at][draw(st.sampled_from(sorted(made[at])))] = draw(NASTY)
            case "inner":
                inner = [value for value in made[at].values() if isinstance(value, dict) and value]
                if inner:
                    inner[0][draw(st.sampled_from(sorted(inner[0])))] = draw(NASTY)
            case "drop" if len(made) > 2:
                del made[at]
            case "double":
                made.insert(draw(st.integers(0, len(made))), copied([made[at]])[0])
            case "move":
                made.insert(draw(st.integers(0, len(made) - 1)), made.pop(at))
            case "swap":
                other = draw(st.integers(0, len(made) - 1))
                made[at], made[other] = made[other], made[at]
            case "kind":
                made[at]["type"] = draw(
                    st.sampled_from(["blob", "version", "object", "session", "entry", "key", "x", 7])
                )
    return made


@settings(deadline=None, max_examples=120, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_hostile_file_is_imported_whole_or_refused(records: list[Record], data: st.DataObject) -> None:
    store = MemoryUpkeep()
    try:
        import_all(store, file_of(data.draw(hostile(records))))
    except BadInput as problem:
        assert "nothing was imported" in str(problem)  # noqa: PT017 - either way something is held
        assert (list(store.names()), list(store.sessions()), store.log()) == ([], [], ())
        return
    # stubs and answers are claims of the sessions themselves, which a check holds them to
    kinds = {one.kind for one in check_store(store).findings}
    assert kinds <= {"stub", "answer", "thinking", "turns", "session"}
    export_all(store)


@pytest.mark.parametrize("seed", range(40))
def test_bytes_that_changed_on_the_way_are_refused_in_words(records: list[Record], seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - a test's dice
    lines = file_of(copied(records))
    at = dice.randrange(len(lines))
    line = bytearray(lines[at])
    line[dice.randrange(len(line))] ^= 1 << dice.randrange(8)
    lines[at] = bytes(line)
    with pytest.raises(BadInput, match="nothing was imported"):
        import_all(MemoryUpkeep(), b"".join(lines).splitlines(keepends=True))


HEAD = b'{"pagein":"export","v":1}\n'
BOMBS = {
    "one endless line": (b'{"type":"blob","text":"', bytes(1 << 20), 600),
    "a long line of nothing but lists": (b'{"type":"entry","entry":[', b"[]," * (1 << 18), 60),
    "lines without end": (b"", b'{"type":"key","key":""}\n' * (1 << 16), 500),
}


@pytest.mark.slow
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_before_it_goes_off(tmp_path: Path, bomb: str) -> None:
    """3 MB once took 3.2 GB."""
    packed = tmp_path / "bomb.jsonl.gz"
    begin, again, times = BOMBS[bomb]
    with gzip.open(packed, "wb", compresslevel=6) as file:
        file.write(HEAD + begin)
        for _ in range(times):
            file.write(again)
    assert packed.stat().st_size < 4 << 20
    code = f"""
import sys
sys.argv = ["pagein", "import", {str(packed)!r}, "--store", {str(tmp_path / "one.pagein")!r}]
from pagein.cli.cli import main
try:
    main()
finally:
    with open("/proc/self/status") as file:
        print(next(line.split()[1] for line in file if line.startswith("VmHWM")), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert done.returncode == 2
    assert "nothing was imported" in done.stderr
    assert "Traceback" not in done.stderr
    assert int(done.stderr.splitlines()[-1]) < 400 << 10
    assert not (tmp_path / "one.pagein").exists()


def test_versions_of_files_that_must_not_be_stored_are_left_out(tmp_path: Path) -> None:
    """Law 9 holds for what comes from elsewhere, too; what another file has as well is kept."""
    there = MemoryUpkeep()
    for number, (path, text) in enumerate(
        [("a.py", "x = 1\n"), ("deploy/.env.local", "KEY=hush\n"), ("b.py", "shared\n"), (".env", "shared\n")]
    ):
        draft = Draft(id=uuid7(number, bytes(10)), type="file", content=text, metadata={"path": f"/src/{path}"})
        there.write(Write(f"w{number}", draft, 1.0))
    # an export leaves them out, so the file is made by somebody else
    records: list[Record] = [{"pagein": "export", "v": 1}]
    written: set[str] = set()
    for version in sorted(there.log(), key=lambda one: -one.sequence):
        content = there.content(version) or ""
        assert version.content_hash is not None
        if version.content_hash.hex not in written:
            written.add(version.content_hash.hex)
            records.append({"type": "blob", "hash": version.content_hash.hex, "text": content})
        writer = {"kind": "client", "reason": "manual", "session": None}
        records.append(
            {"type": "version", "object": version.id, "number": 1, "at": 1.0, "writer": writer, "object_hash": version.object_hash.hex, "record": version.record}
        )  # fmt: skip
    store = SqliteUpkeep(tmp_path / "one.pagein")
    done = import_all(store, file_of(records))
    assert (done.withheld, done.added["version"]) == (2, 2)
    assert {store.content(version) for version in store.log()} == {"x = 1\n", "shared\n"}
    assert sorted(store.get(name) for name in store.names()) == [b"shared\n", b"x = 1\n"]
    store.close()
    assert b"hush" not in (tmp_path / "one.pagein").read_bytes()


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "x", "--next", "v99999999999999999999.0"),
        ("search", "x", "--next", "v1.99999999999999999999"),
        ("search", "x", "--next", "v1." + "9" * 5000),
        ("search", "x", "--each", "9" * 30),
        ("search", "x", "--limit", "9" * 30),
        ("search", "x", "--timeout", "1e400"),
        ("search", "x", "--timeout", "nan"),
        ("search", "x", "--since", "9" * 400),
        ("search", "x", "--until", "-" + "9" * 30),
        ("objects", "--before", "9" * 30),
        ("objects", "--since", "99999999999d"),
        ("show", "note-1", "--version", "9" * 30),
        ("show", "note-1", "--at", "9" * 400),
        ("show", "note-1", "--lines", f"1-{'9' * 30}"),
        ("show", "note-1", "--lines", f"{'9' * 5000}-{'9' * 5000}"),
        ("gc", "--quota", "9" * 400),
        ("gc", "--quota", "9" * 30 + "T"),
        ("gc", "--older-than", "9" * 400 + "d"),
        ("gc", "--idle", "9" * 5000 + "w"),
        ("history", "note-1"),
    ],
)
def test_no_number_or_cursor_ends_in_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    from pagein.cli.cli import main

    lived = make_lived_in_store(tmp_path / "one.pagein", tmp_path / "work", 5, 30)
    monkeypatch.setattr(sys, "argv", ["pagein", *arguments, "--store", str(lived.store)])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code in (0, 1, 2, None)
    told = capsys.readouterr().err
    assert "Traceback" not in told
    assert "unexpected" not in told.lower()
    assert "a bug" not in told.lower()
