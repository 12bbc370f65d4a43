"""Taking texts out of the real stores, whatever they have lived through."""

import json
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Literal

import pytest
from tests.engine.log.test_withheld_requests import EAGER, WORK, Step, body

from pagein import archive, erasure, wiring
from pagein.engine.engine import Engine
from pagein.errors import StoreError
from pagein.model.entries import Entry, EpochEntry, MessageEntry, PagedOut
from pagein.model.messages import Message, ToolCall
from pagein.policy.privacy.erasure import SAYS_SO, forms_of
from pagein.ports import ForgettingStore
from pagein.store.search.sqlite_index import SUFFIX
from pagein.store.upkeep.postgres_upkeep import PostgresUpkeep
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.blob_store import an_object
from pagein.testing.lived_in_store import make_lived_in_store
from pagein.upkeep import check_store

_SCHEMAS = count()
SAID = 'the "dove" lands\nat nine'
TOLD = Step("Bash", {"command": "cat plan.txt"}, "plan\n" * 200 + f"{SAID}\n" + "plan\n" * 200)


@pytest.fixture
def kept(postgres: str) -> Iterator[PostgresUpkeep]:
    store = PostgresUpkeep(postgres, f"forgetting_{next(_SCHEMAS)}")
    yield store
    store.close()


def holds(store: ForgettingStore, text: str) -> list[str]:
    forms = [form.encode("utf-8", "surrogatepass") for form in forms_of(text)]
    return [where for where, data in erasure._contents(store) if any(form in data for form in forms)]


def went_on(store: ForgettingStore, log: Path) -> None:
    """A session with a text that is forgotten in the middle of it."""
    engine = Engine(blobs=store, journals=store, counter=wiring.default_counter(), settings=EAGER, workspace="w")
    steps = [WORK, TOLD, WORK, WORK, WORK, WORK, WORK]

    def asked(until: int) -> str | None:
        return engine.prepare(body(steps[:until], "anthropic"), "anthropic", at=10.0 * until, hint="one").failure

    assert [asked(until) for until in range(5)] == [None] * 5
    assert holds(store, SAID)
    done = erasure.forget_texts(store, (SAID,), None, log)
    assert [one for one in done.left if not one.startswith("PostgreSQL")] == []
    assert [asked(until) for until in range(4, 8)] == [None] * 4
    assert holds(store, SAID) == []
    with pytest.raises(StoreError, match="ordered to be forgotten"):
        store.put(SAID.encode())
    assert check_store(store).is_clean


def test_a_text_is_taken_out_of_postgres(kept: PostgresUpkeep, tmp_path: Path) -> None:
    went_on(kept, tmp_path / "log")


def test_a_text_is_taken_out_of_sqlite(tmp_path: Path) -> None:
    with closing(SqliteUpkeep(tmp_path / "one.pagein")) as store:
        went_on(store, tmp_path / "log")


@pytest.mark.parametrize("part", ["arguments", "text"])
@pytest.mark.parametrize("is_session", [True, False], ids=["with its session", "by its id"])
def test_what_stands_for_an_erased_text_of_a_call_or_a_user_says_so(
    tmp_path: Path, part: Literal["arguments", "text"], *, is_session: bool
) -> None:
    text = json.dumps({"content": SAID * 40})
    with closing(SqliteUpkeep(tmp_path / "one.pagein")) as store:
        evicted = an_object(store, text.encode())
        stub = json.dumps({"content": f"[evicted: {evicted.id}]"})
        paged = PagedOut("call-1", str(evicted.id), evicted.content, 9, evicted.chars, stub, 0, 0, part=part)
        call = MessageEntry(Message("assistant", (ToolCall("call-1", "Write", text),)))
        store.put_objects([(evicted, text.encode())])
        store.append("session", [Entry("1", None, call), Entry("2", "1", EpochEntry(1, 0, (paged,)))])
        assert check_store(store).findings == []
        if is_session:
            erasure.forget_session(store, "session", None, tmp_path / "log")
        else:
            erasure.forget_texts(store, erasure.texts_of(store, str(evicted.id)), None, tmp_path / "log")
        assert holds(store, SAID) == []
        assert check_store(store).findings == []
        (body,) = (entry.body for entry in store.entries("session") if isinstance(entry, Entry) and entry.id == "2")
        assert isinstance(body, EpochEntry)
        assert SAYS_SO in body.paged[0].stub
        assert part == "text" or isinstance(json.loads(body.paged[0].stub), dict)


def test_every_text_of_a_used_store_can_be_forgotten(tmp_path: Path) -> None:
    """Words of its files, notes and outputs, one after another: the store is sound after each."""
    lived = make_lived_in_store(tmp_path / "one.pagein", tmp_path / "work", 3, 60)
    with closing(SqliteUpkeep(lived.store)) as store:
        texts = {text for name in store.names() if len(text := store.get(name).decode("utf-8", "replace")) > 40}
        for text in sorted(texts)[:: max(1, len(texts) // 4)]:
            part = text[3:40].strip()
            assert holds(store, part)
            erasure.forget_texts(store, (part,), lived.store, tmp_path / "log")
            assert holds(store, part) == []
            assert check_store(store).findings == []


def test_an_index_forgets_and_is_built_anew(tmp_path: Path) -> None:
    lived = make_lived_in_store(tmp_path / "one.pagein", tmp_path / "work", 1, 40)
    with closing(SqliteUpkeep(lived.store)) as store:
        with archive.archive_of(store) as kept:
            assert kept.index.catch_up().behind == 0
        index = lived.store.with_name(lived.store.name + SUFFIX)
        before = index.stat().st_size
        done = erasure.forget_texts(store, ("nobody ever said this",), lived.store, tmp_path / "log")
        assert done.left == []
        assert index.stat().st_size <= before
        with archive.archive_of(store) as kept:
            assert kept.index.catch_up().behind == 0
