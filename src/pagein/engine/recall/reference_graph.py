"""Select, expand and walk references between objects. Deterministic, and safe against cycles.

A static reference leads to its pinned version, for loading and for walking on.
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
    """A filter for the references of a version. Default values select everything.

    under: JSON pointer at or above the reference's place.
    relations: names of relations; empty for any.
    static: True for static, False for dynamic references; None for both.
    types: types of the referenced object; empty for any. An unresolved reference has no type.
    """

    under: str = ""
    relations: frozenset[str] = frozenset()
    static: bool | None = None
    types: frozenset[str] = frozenset()


ALL: Final = Selection()


@dataclass(frozen=True, slots=True)
class Expansion:
    """A reference with the content behind it.

    link: the reference.
    version: the referenced version; None if unresolved.
    why: the reason of a failed resolution; None otherwise.
    values: the requested fields that the version has, in request order. Every version has `content`, which may be null;
        `metadata` is `Fields`.
    """

    link: Link
    version: Version | None
    why: Missing | None
    values: tuple[tuple[str, Value], ...] = ()


def select(store: ObjectStore, version: Version, selection: Selection = ALL) -> tuple[Link, ...]:
    """Return the selected references in a version, in order of their places. Loads no content."""
    links = (link for link in store.references(version) if _is_meant(link, selection))
    if not selection.types:
        return tuple(links)
    return tuple(link for link in links if _type(store, link.reference) in selection.types)


def expand(store: ObjectStore, links: Iterable[Link], fields: Sequence[str] | None = None) -> tuple[Expansion, ...]:
    """Load the content behind references, in their order. Shared content is loaded once.

    fields: `content`, `metadata`, names of metadata or additional fields; None for the target field of each reference,
        or its content.
    """
    loaded: dict[tuple[int, str], tuple[tuple[str, Value], ...]] = {}
    return tuple(_expand_link(store, link, fields, loaded) for link in links)


Direction: TypeAlias = Literal["out", "in", "both"]


@dataclass(frozen=True, slots=True)
class Node:
    """A reached version.

    distance: steps from the start of the walk.
    """

    version: Version
    distance: int


@dataclass(frozen=True, slots=True)
class Edge:
    """A followed reference.

    source, target: sequences of versions; target is None if unresolved.
    path: place of the reference in the source.
    """

    source: int
    path: str
    reference: Reference
    target: int | None


@dataclass(frozen=True, slots=True)
class Walk:
    """The result of a walk.

    nodes: each reached version once, nearest first.
    edges: references between the nodes.
    complete: True if no limit cut the walk.
    """

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
    """Follow references breadth first, up to `steps` steps and `most` versions. Loads no content.

    Backwards (`in`), a walk goes from an object to the newest versions that refer to the object dynamically or to this
    very version.
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
    """Return a part of a version; empty for an unknown field."""
    if name == CONTENT:
        return ((name, store.content(version)),)
    if name == METADATA:
        return ((name, version.metadata),)
    if name in version.additional:
        return ((name, store.additional(version, name)),)
    return ((name, version.metadata[name]),) if name in version.metadata else ()
