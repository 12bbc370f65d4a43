"""The tool `expand`: the targets of a stored object's references, and the objects that refer to it."""

import json
from collections.abc import Sequence
from typing import Final, get_args

from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.recall.reference_graph import Direction, Expansion, Selection, Walk
from pagein.engine.recall.stored_objects import StoredObjects
from pagein.engine.session import Session
from pagein.errors import CallerError, HostError, StoreError
from pagein.model.links import Resolution
from pagein.model.read_caps import ReadCaps
from pagein.model.values import Value, canonical
from pagein.policy.reads.baseline import byte_length
from pagein.policy.stubs.object_lines import object_line, target_line
from pagein.tools.calls import ArgumentReader, Call, Offer, refusal_result, schema
from pagein.tools.shown_links import link_lines

_LINKS: Final = 50
_VALUE: Final = 2_000
_FARTHEST: Final = 5
_MOST: Final = 200
_DIRECTIONS: Final = get_args(Direction)


def _expand(session: Session, call: Call) -> ReadResult:
    given = ArgumentReader("expand", call.arguments)
    name = given.text("id").strip(" \t\r\n\"'`")  # models may add quotes
    steps, skip, fields = given.whole("steps", 1), max(given.whole("skip", 0), 0), given.texts("fields")
    under, relation, type_ = (given.text(one) if given.has(one) else "" for one in ("under", "relation", "type"))
    direction = given.text("direction") if given.has("direction") else "out"
    problem = given.problem()
    if problem is not None:
        return problem
    meant = next((one for one in _DIRECTIONS if one == direction), None)
    if meant is None or not 1 <= steps <= _FARTHEST:
        return refusal_result(f"direction is one of {', '.join(_DIRECTIONS)}, and steps is from 1 to {_FARTHEST}.")
    selection = Selection(under=under, relations=_one(relation), types=_one(type_))
    try:
        objects = session.objects
        version = objects.get(name)
        if meant == "out" and steps == 1:
            links = objects.select(version, selection)
            shown = objects.expand(links[skip : skip + _LINKS], fields or ("metadata",))
            lines = _expansion_lines(objects, shown, fields, session.recalls.bounds.caps)
            more = skip + _LINKS if len(links) > skip + _LINKS else None
        else:
            found = objects.walk([version], steps=steps, direction=meant, selection=selection, most=_MOST)
            lines, more = _walk_lines(found), None
    except (CallerError, HostError, StoreError) as why:
        return refusal_result(str(why))
    head = object_line(version)
    if more is not None:
        lines.append(f"[Use skip={more} to continue.]")
    return ReadResult(
        "\n".join([head, *(lines or ["No references."])]), {"id": version.id, "version": version.number, "next": more}
    )


def _one(name: str) -> frozenset[str]:
    return frozenset([name] if name else [])


def _expansion_lines(
    objects: StoredObjects, found: Sequence[Expansion], fields: Sequence[str] | None, caps: ReadCaps
) -> list[str]:
    lines: list[str] = []
    room = caps.bytes // 2
    for one in found:
        target = objects.resolve(one.link.reference)
        lines.append(f"{one.link.path} -> {target_line(target)}")
        for name, value in one.values if fields is not None else ():
            text = _value_text(value)
            cut = text[: min(_VALUE, room)]
            room -= byte_length(cut)
            lines.append(f"  {name}:\n{cut}")
            if len(cut) < len(text):
                lines.append(f"  [{len(text) - len(cut)} more characters]")
            if isinstance(target, Resolution):
                named = f"{target.version.id}@{target.version.number}"
                lines += [f"  {line}" for line in link_lines(objects, named, cut)]
    return lines


def _value_text(value: Value) -> str:
    if isinstance(value, str):
        return value
    return "null" if value is None else json.dumps(json.loads(canonical(value)), ensure_ascii=False, indent=1)


def _walk_lines(found: Walk) -> list[str]:
    names = {node.version.sequence: f"{node.version.id}@{node.version.number}" for node in found.nodes}
    lines = [f"{node.distance}  {object_line(node.version)}" for node in found.nodes if node.distance]
    for edge in found.edges:
        target = names.get(edge.target, "") if edge.target is not None else ""
        if edge.source in names and (target or edge.target is None):
            how = "pinned" if edge.reference.pin is not None else "newest"
            lines.append(
                f"{names[edge.source]}{edge.path} -> {target or f'{edge.reference.target}: not found'} ({how})"
            )
    if not found.complete:
        lines.append(f"[The walk was cut: it follows at most {_MOST} objects, and as many steps as asked for.]")
    return lines


EXPAND: Final = Offer(
    "expand",
    "Follow the references of a stored object: what its links name, which calls and files a chat refers to, and with direction in "
    "what refers to it. A reference to a version that was pinned leads to that very version, verified.",
    schema(
        ("id",),
        id={"type": "string", "description": "The object's id or name, with @3 for version 3."},
        direction={
            "type": "string",
            "enum": list(_DIRECTIONS),
            "description": "out: what it refers to. in: what refers to it.",
            "default": "out",
        },
        steps={
            "type": "number",
            "description": f"How many references to follow in a row, up to {_FARTHEST}.",
            "default": 1,
        },
        fields={
            "type": "array",
            "items": {"type": "string"},
            "description": "Fields to show of each object: content, metadata, args, ...; without it what each object is.",
        },
        under={
            "type": "string",
            "description": "Only references at this place, such as /additional/turns.3.1 or /metadata/links.",
        },
        relation={
            "type": "string",
            "description": "Only references of this relation: link, read, write, edit, delete.",
        },
        type={"type": "string", "description": "Only references to objects of this kind: toolcall, file, note, chat."},
        skip={"type": "number", "description": "How many references to pass over, to go on with an earlier call."},
    ),
    _expand,
    legacy="rlm_expand",
)
