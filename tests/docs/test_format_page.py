"""docs/reference/format.md, read by a stranger: a reader made from the page, with nothing of pagein in it."""

import base64
import hashlib
import hmac
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.lived_in_store import make_lived_in_store
from pagein.testing.memory_upkeep import MemoryUpkeep
from pagein.testing.upkeep_contract import export_all, import_all

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "format.md"


@dataclass
class Stranger:
    """Reads an export with the standard library alone, and complains by assertion."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    versions: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    sessions: dict[str, dict[str, Any]] = field(default_factory=dict)
    secret: bytes = b""
    types: set[str] = field(default_factory=set)

    def read(self, data: bytes) -> "Stranger":
        lines = data.split(b"\n")
        assert lines.pop() == b""
        *body, last = lines
        end = json.loads(last)
        assert json.loads(body[0]) == {"pagein": "export", "v": 1}
        assert end["type"] == "end"
        assert end["records"] == len(body) - 1
        assert end["sha256"] == hashlib.sha256(data[: -len(last) - 1]).hexdigest()
        self.types = {"end"}
        for line in body[1:]:
            record = json.loads(line)
            self.types.add(record["type"])
            getattr(self, record["type"])(record)
        for one in self.sessions.values():
            assert one["leaf"] is None or one["leaf"] in one["entries"]
        return self

    def blob(self, record: dict[str, Any]) -> None:
        content = record["text"].encode() if "text" in record else base64.b64decode(record["base64"])
        assert hashlib.sha256(content).hexdigest() == record["hash"]
        assert record["hash"] not in self.blobs
        self.blobs[record["hash"]] = content

    def version(self, record: dict[str, Any]) -> None:
        text = record["record"]
        assert hashlib.sha256(b"pagein object 1\n" + text.encode()).hexdigest() == record["object_hash"]
        fields = json.loads(text)
        canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        assert canonical == text
        assert fields["id"] == record["object"]
        assert fields["content"] is None or fields["content"] in self.blobs
        for name in fields["additional"].values():
            json.loads(self.blobs[name])
        history = self.versions.setdefault(record["object"], [])
        assert record["number"] == len(history) + 1
        assert set(record["writer"]) == {"kind", "reason", "session"}
        history.append(fields)

    def object(self, record: dict[str, Any]) -> None:
        assert len(self.blobs[record["content"]].decode("utf-8", "surrogatepass")) == record["chars"]
        _, name, tag = record["id"].split("-")
        if self.secret:
            assert hmac.new(self.secret, name.encode(), hashlib.sha256).hexdigest()[:8] == tag
        self.objects[record["id"]] = record

    def session(self, record: dict[str, Any]) -> None:
        self.sessions[record["name"]] = {"leaf": record["leaf"], "ended": record["ended"], "entries": {}}

    def entry(self, record: dict[str, Any]) -> None:
        entry = record["entry"]
        entries = list(self.sessions.values())[-1]["entries"]
        assert entry["v"] == 1
        assert entry.get("parent") is None or entry["parent"] in entries
        if entry["entry"] == "epoch_opened":
            assert {one["content"] for one in entry["paged"]} <= self.blobs.keys()
            assert {one["object_id"] for one in entry["paged"]} <= self.objects.keys()
        entries[entry["id"]] = entry

    def key(self, record: dict[str, Any]) -> None:
        self.secret = bytes.fromhex(record["key"])


def example() -> bytes:
    (found,) = re.findall(r"```jsonl\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return str(found).encode()


@pytest.mark.parametrize("seed", range(4))
def test_a_stranger_reads_and_proves_real_exports(tmp_path: Path, seed: int) -> None:
    lived = make_lived_in_store(tmp_path / "one.pagein", tmp_path / "work", seed, 90)
    store = SqliteUpkeep(lived.store)
    read = Stranger().read(b"".join(export_all(store)))
    assert {name: read.blobs[one["content"]].decode() for name, one in read.objects.items()} == lived.stubs
    assert set(read.sessions) == {one.name for one in store.sessions()}
    assert {name: len(history) for name, history in read.versions.items()} == {
        one.id: one.number for one in sorted(store.log(), key=lambda one: one.number)
    }
    store.close()


def test_a_stranger_reads_the_example_of_the_page_and_so_do_we() -> None:
    read = Stranger().read(example())
    assert read.blobs[read.versions["01900000-0000-7000-8000-000000000001"][-1]["content"]] == b"second\n"
    store = MemoryUpkeep()
    import_all(store, example().splitlines(keepends=True))
    assert b"".join(export_all(store)) == example()


def test_the_page_explains_every_type_of_record_and_every_field_of_the_example() -> None:
    page = PAGE.read_text(encoding="utf-8").replace(example().decode(), "")
    records = [json.loads(line) for line in example().splitlines()]
    assert {one.get("type", "header") for one in records} == {*Stranger().read(example()).types, "header"}
    names = {name for record in records for name in record if name != "type"}
    assert {name for name in names | {one["type"] for one in records[1:]} if f"`{name}`" not in page} == set()


def test_an_export_that_was_written_by_a_stranger_is_taken_in() -> None:
    """Other spacing, other order of keys, blobs in another order: what the page does not demand is not demanded."""
    content = b"said elsewhere"
    records: list[dict[str, object]] = [
        {"v": 1, "pagein": "export"},
        {"text": "never named", "type": "blob", "hash": hashlib.sha256(b"never named").hexdigest()},
        {"hash": hashlib.sha256(content).hexdigest(), "base64": base64.b64encode(content).decode(), "type": "blob"},
        {"type": "session", "name": "theirs", "leaf": "1", "ended": False},
        {"type": "entry", "entry": {"v": 1, "id": "1", "entry": "noted", "kind": "theirs", "data": "{}"}},
    ]
    lines = [json.dumps(record, indent=None).encode() + b"\n" for record in records]
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    lines.append(json.dumps({"sha256": digest, "records": len(lines) - 1, "type": "end"}).encode() + b"\n")
    store = MemoryUpkeep()
    import_all(store, lines)
    assert sorted(map(store.get, store.names())) == [b"never named", content]
    assert store.leaf("theirs") == "1"
