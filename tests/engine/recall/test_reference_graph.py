from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.engine.recall.reference_graph import ALL, Direction, Edge, Selection, expand, select, walk
from pagein.model.links import Link
from pagein.model.references import Reference
from pagein.model.versions import Draft, Version
from pagein.ports import ObjectStore
from pagein.store.memory.memory_store import MemoryStore
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.testing.object_store import a_file, object_number, put

pytestmark = pytest.mark.damages_store


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ObjectStore]:
    store: ObjectStore = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "one.pagein")
    yield store
    store.close()


def note(number: int, *to: Reference, content: str = "", **more: object) -> Draft:
    return Draft(id=object_number(number), type="note", content=content, metadata={"to": to, **more})


def reached(store: ObjectStore, start: Version, steps: int, direction: Direction = "out") -> list[tuple[int, int]]:
    found = walk(store, [start], steps=steps, direction=direction)
    return [(node.version.sequence, node.distance) for node in found.nodes]


@pytest.fixture
def chat(store: ObjectStore) -> Version:
    """A chat of two calls, of which the first one's output has a later version."""
    calls = [put(store, Draft(id=f"call-{number}", type="toolcall", content=f"out {number}")) for number in range(2)]
    put(store, Draft(id="call-0", type="toolcall", content="out 0", additional={"short_summary": "nothing much"}))
    turns = [
        {"steps": [{"toolcall": {"object": call.static()}}, {"note": Reference(object_number(7))}]} for call in calls
    ]
    return put(
        store,
        Draft(id=object_number(1), type="chat", additional={"turns": turns}, metadata={"session_ref": Reference("s")}),
    )


def test_all_tool_calls_of_a_chat_are_expanded_in_the_order_of_their_turns(store: ObjectStore, chat: Version) -> None:
    links = select(store, chat, Selection(under="/additional/turns", types=frozenset({"toolcall"})))
    assert [link.path for link in links] == [f"/additional/turns/{turn}/steps/0/toolcall/object" for turn in range(2)]
    found = expand(store, links)
    assert [one.values for one in found] == [(("content", "out 0"),), (("content", "out 1"),)]


def test_a_static_reference_is_expanded_to_the_version_that_it_pins(store: ObjectStore, chat: Version) -> None:
    (first, *_) = select(store, chat, Selection(static=True))
    (found,) = expand(store, [first], ["content", "short_summary"])
    assert found.version is not None
    assert found.version.number == 1
    assert found.values == (("content", "out 0"),)
    newest = Link("", Reference("call-0"), resolved=True)
    assert expand(store, [newest], ["short_summary"])[0].values == (("short_summary", "nothing much"),)


def test_only_metadata_is_expanded_where_only_that_is_asked_for(store: ObjectStore) -> None:
    target = put(store, a_file(2, "text", size=3))
    source = put(store, note(1, Reference(target.id), Reference(object_number(9))))
    found = expand(store, select(store, source), ["metadata", "size", "missing"])
    assert [one.why for one in found] == [None, "no such object"]
    assert found[0].values == (("metadata", target.metadata), ("size", 3))
    assert found[1].values == ()


def test_a_reference_is_expanded_to_the_part_that_it_targets(store: ObjectStore) -> None:
    draft = Draft(id=object_number(2), type="note", metadata={"size": 3}, additional={"short_summary": "brief"})
    put(store, draft)
    parts = (None, "content", "metadata", "size", "short_summary", "missing")
    source = put(store, note(1, *(Reference(draft.id, field=part) for part in parts)))
    found = [one.values for one in expand(store, select(store, source))]
    assert found[:2] == [(("content", None),), (("content", None),)]
    assert [dict(values).popitem()[1] for values in found[2:5]] == [{"size": 3}, 3, "brief"]
    assert found[5] == ()


def test_references_are_selected_by_place_relation_kind_and_type(store: ObjectStore) -> None:
    target = put(store, a_file(2))
    references = {"a": Reference(target.id), "ab": target.static(relation="derived_from"), "b": Reference("nobody")}
    source = put(store, Draft(id=object_number(1), type="note", metadata=references))

    def places(selection: Selection) -> list[str]:
        return [link.path for link in select(store, source, selection)]

    assert places(ALL) == ["/metadata/a", "/metadata/ab", "/metadata/b"]
    assert places(Selection(under="/metadata/a")) == ["/metadata/a"]
    assert places(Selection(relations=frozenset({"derived_from"}))) == ["/metadata/ab"]
    assert places(Selection(static=False)) == ["/metadata/a", "/metadata/b"]
    assert places(Selection(types=frozenset({"file"}))) == ["/metadata/a", "/metadata/ab"]


def test_walks_go_round_a_circle_once(store: ObjectStore) -> None:
    made = [put(store, note(number, Reference(object_number((number + 1) % 3)))) for number in range(3)]
    assert reached(store, made[0], 10) == [(1, 0), (2, 1), (3, 2)]
    assert reached(store, made[0], 10, "in") == [(1, 0), (3, 1), (2, 2)]
    assert reached(store, made[0], 10, "both") == [(1, 0), (2, 1), (3, 1)]
    found = walk(store, made[:1], steps=10)
    assert [(edge.source, edge.target) for edge in found.edges] == [(1, 2), (2, 3), (3, 1)]
    assert found.complete


def test_walks_stop_at_their_bounds_and_say_so(store: ObjectStore) -> None:
    made = [put(store, note(number, Reference(object_number(number + 1)))) for number in range(4)]
    assert reached(store, made[0], 1) == [(1, 0), (2, 1)]
    assert not walk(store, made[:1], steps=1).complete
    assert not walk(store, made[:1], steps=9, most=2).complete
    whole = walk(store, made[:1], steps=3)
    assert whole.complete
    assert whole.edges[-1] == Edge(4, "/metadata/to/0", Reference(object_number(4)), None)


def test_walks_go_on_from_the_pinned_version(store: ObjectStore) -> None:
    left, right = put(store, note(8, content="left")), put(store, note(9, content="right"))
    old = put(store, note(2, Reference(left.id)))
    new = put(store, note(2, Reference(right.id)))
    pinned, floating = put(store, note(3, old.static())), put(store, note(4, Reference(old.id)))
    assert reached(store, pinned, 5) == [(pinned.sequence, 0), (old.sequence, 1), (left.sequence, 2)]
    assert reached(store, floating, 5) == [(floating.sequence, 0), (new.sequence, 1), (right.sequence, 2)]
    # backwards, a pinned reference leads from the version that it means, a floating one from the newest
    assert reached(store, old, 1, "in") == [(old.sequence, 0), (pinned.sequence, 1)]
    assert reached(store, new, 1, "in") == [(new.sequence, 0), (floating.sequence, 1)]


@given(st.lists(st.lists(st.integers(0, 6), max_size=4), min_size=1, max_size=7))
def test_a_walk_without_bounds_reaches_what_can_be_reached(graph: list[list[int]]) -> None:
    store = MemoryStore()
    for number, to in enumerate(graph):
        put(store, note(number, *(Reference(object_number(one)) for one in to)))
    reachable, waiting = {0}, [0]
    while waiting:
        for one in graph[waiting.pop()]:
            if one < len(graph) and one not in reachable:
                reachable.add(one)
                waiting.append(one)
    found = walk(store, store.log()[:1], steps=10)
    assert {node.version.sequence - 1 for node in found.nodes} == reachable
    assert len(found.edges) == sum(len(graph[number]) for number in reachable)
    assert found.complete


class Counting(MemoryStore):
    """A store that remembers whose content was loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[int] = []

    def content(self, version: Version) -> str | None:
        self.loaded.append(version.sequence)
        return super().content(version)


def test_what_several_references_share_is_loaded_once_and_walking_loads_nothing() -> None:
    store = Counting()
    target = put(store, a_file(2, "text"))
    source = put(store, note(1, Reference(target.id), target.static(), Reference(target.id)))
    assert len(walk(store, [source], steps=3, direction="both").nodes) == 2
    assert store.loaded == []
    assert [one.values for one in expand(store, select(store, source))] == [(("content", "text"),)] * 3
    assert store.loaded == [target.sequence]
