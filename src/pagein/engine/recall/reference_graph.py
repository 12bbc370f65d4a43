"""Structural operations over references: select, expand, walk (memory-system 8, 9). Deterministic, and safe against cycles.

Wherever a reference is static, its pinned version is what is loaded, and what is walked on from.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pagein.model.links import Link, Missing, Resolution
from pagein.model.references import Reference
from pagein.model.values import Value
from pagein.model.versions import Version
from pagein.ports import ObjectStore

CONTENT: Final = "content"
METADATA: Final = "metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which references of a version are meant. What is left out does not matter.

    under: JSON pointer that their place is at or below. relations: any of these. static: only static (True) or dynamic ones.
    types: only to objects of these types, as far as they are there; an unresolved reference has none.
    """

    under: str = ""
    relations: frozenset[str] = frozenset()
    static: bool | None = None
    types: frozenset[str] = frozenset()


ALL: Final = Selection()


@dataclass(frozen=True, slots=True)
class Expansion:
    """A reference with what it stands for.

    version: None where it does not resolve; `why` says why. values: the fields asked for that the version has, in that order. The
    content is there for every version, None where it is null; metadata are `Fields`.
    """

    link: Link
    version: Version | None
    why: Missing | None
    values: tuple[tuple[str, Value], ...] = ()


def select(store: ObjectStore, version: Version, selection: Selection = ALL) -> tuple[Link, ...]:
    """The references in a version that are meant, in the order of their places. Loads no content."""
    links = (link for link in store.references(version) if _is_meant(link, selection))
    if not selection.types:
        return tuple(links)
    return tuple(link for link in links if _type(store, link.reference) in selection.types)


def expand(store: ObjectStore, links: Iterable[Link], fields: Sequence[str] | None = None) -> tuple[Expansion, ...]:
    """What references stand for, in their order.

    fields: `content`, `metadata`, names of metadata or additional fields; None for the part that each reference itself targets, its
    content where it targets none. What several references share is loaded once.
    """
    loaded: dict[tuple[int, str], tuple[tuple[str, Value], ...]] = {}
    return tuple(_expand_link(store, link, fields, loaded) for link in links)


Direction: TypeAlias = Literal["out", "in", "both"]


@dataclass(frozen=True, slots=True)
class Node:
    """A version that was reached. distance: in how many steps from where the walk began."""

    version: Version
    distance: int


@dataclass(frozen=True, slots=True)
class Edge:
    """A reference that was passed. source, target: sequences of versions; target is None where the reference does not resolve."""

    source: int
    path: str
    reference: Reference
    target: int | None


@dataclass(frozen=True, slots=True)
class Walk:
    """What a walk found: nodes nearest first, each once, and the edges between them. complete: nothing was cut off by its bounds."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    complete: bool


def walk(
    store: ObjectStore,
    start: Iterable[Version],
    *,
    steps: int,
    direction: Direction = "out",
    selection: Selection = ALL,
    most: int = 1_000,
) -> Walk:
    """Go along references breadth first: at most so many steps, and to at most so many versions. Loads no content.

    Backwards (`in`) it goes from an object to the newest versions that refer to it: dynamically, or to this very version.
    """
    nodes: dict[int, Node] = {version.sequence: Node(version, 0) for version in start}
    edges: dict[tuple[int, str], Edge] = {}
    waiting = deque(nodes.values())
    complete = True
    while waiting:
        node = waiting.popleft()
        for edge, other in _ways(store, node.version, direction, selection):
            if other is not None and other.sequence not in nodes:
                if node.distance >= steps or len(nodes) >= most:
                    complete = False
                    continue
                nodes[other.sequence] = Node(other, node.distance + 1)
                waiting.append(nodes[other.sequence])
            edges.setdefault((edge.source, edge.path), edge)
    return Walk(tuple(nodes.values()), tuple(edges.values()), complete)


def _ways(
    store: ObjectStore, version: Version, direction: Direction, selection: Selection
) -> Iterator[tuple[Edge, Version | None]]:
    if direction != "in":
        for link in select(store, version, selection):
            found = store.resolve(link.reference)
            target = found.version if isinstance(found, Resolution) else None
            sequence = None if target is None else target.sequence
            yield Edge(version.sequence, link.path, link.reference, sequence), target
    if direction != "out":
        yield from _ways_back(store, version, selection)


def _ways_back(store: ObjectStore, version: Version, selection: Selection) -> Iterator[tuple[Edge, Version | None]]:
    for back in store.backlinks(version.id):
        found = store.resolve(back.reference)
        if not isinstance(found, Resolution) or found.version.sequence != version.sequence:
            continue
        wanted_type = not selection.types or back.source.type in selection.types
        if wanted_type and _is_meant(Link(back.path, back.reference, resolved=True), selection):
            yield Edge(back.source.sequence, back.path, back.reference, version.sequence), back.source


def _is_meant(link: Link, selection: Selection) -> bool:
    under = selection.under
    return (
        (link.path == under or link.path.startswith(f"{under}/"))
        and (not selection.relations or link.reference.relation in selection.relations)
        and selection.static in (None, link.reference.pin is not None)
    )


def _type(store: ObjectStore, reference: Reference) -> str | None:
    found = store.resolve(reference)
    return found.version.type if isinstance(found, Resolution) else None


def _expand_link(
    store: ObjectStore,
    link: Link,
    fields: Sequence[str] | None,
    loaded: dict[tuple[int, str], tuple[tuple[str, Value], ...]],
) -> Expansion:
    found = store.resolve(link.reference)
    if not isinstance(found, Resolution):
        return Expansion(link, None, found.why)
    version = found.version
    wanted = (link.reference.field or CONTENT,) if fields is None else fields
    for name in wanted:
        if (version.sequence, name) not in loaded:
            loaded[version.sequence, name] = _part(store, version, name)
    values = tuple(pair for name in wanted for pair in loaded[version.sequence, name])
    return Expansion(link, version, None, values)


def _part(store: ObjectStore, version: Version, name: str) -> tuple[tuple[str, Value], ...]:
    """One part of a version, or nothing where it has no such field."""
    if name == CONTENT:
        return ((name, store.content(version)),)
    if name == METADATA:
        return ((name, version.metadata),)
    if name in version.additional:
        return ((name, store.additional(version, name)),)
    return ((name, version.metadata[name]),) if name in version.metadata else ()
