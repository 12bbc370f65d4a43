"""Splice cache breakpoints into the bytes of a request. Everything except the breakpoints stays unchanged.

A block that gains or loses a breakpoint keeps its fields and their order; white space between them is lost, as with
replaced results.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from pagein.model.json_text import array_items, array_of, encode_json, object_fields, object_of
from pagein.providers.validity.turns import Wire
from pagein.providers.wire.breakpoint_edits import SYSTEM, TOOLS, Changes
from pagein.providers.wire.json_values import with_field
from pagein.providers.wire.request_body import WireRequest


def with_marks(request: WireRequest, changes: Changes) -> WireRequest:
    """Apply breakpoint changes to a request. Without changes, return the same request."""
    if changes.is_nothing:
        return request
    fields, items = dict(request.fields), list(request.items)
    if changes.automatic:
        fields.pop("cache_control", None)
    by_message = changes.by_message
    for place, marks in by_message.items():
        if place in (TOOLS, SYSTEM):
            name = "tools" if place == TOOLS else "system"
            fields[name] = _blocks(fields.get(name), marks, changes)
        else:
            items[place] = with_field(items[place], "content", partial(_blocks, marks=marks, changes=changes))
    marked = None if request.marked is None else {*request.marked, *(place for place in by_message if place >= 0)}
    return replace(request, fields=fields, items=tuple(items), changed=True, marked=marked)


def _blocks(content: bytes | None, marks: Mapping[int, Wire | None], changes: Changes) -> bytes:
    raw = (content or b"[]").strip()
    if raw[:1] == b'"':
        mark = encode_json(marks[0])
        return array_of([object_of({"type": encode_json(changes.text), "text": raw, changes.field: mark})])
    blocks = array_items(raw, "content")
    for place, mark_or_none in marks.items():
        blocks[place] = _block(blocks[place], mark_or_none, changes)
    return array_of(blocks)


def _block(block: bytes, mark: Wire | None, changes: Changes) -> bytes:
    fields = object_fields(block, "a block")
    fields.pop(changes.field, None)
    if changes.inner and fields.get("type", b"").strip() == b'"tool_result"':
        fields = {name: _without_inner(raw, changes) if name == "content" else raw for name, raw in fields.items()}
    return object_of(fields if mark is None else {**fields, changes.field: encode_json(mark)})


def _without_inner(content: bytes, changes: Changes) -> bytes:
    raw = content.strip()
    if raw[:1] != b"[":
        return content
    inner = array_items(raw, "content")
    bare = [_without(one, changes.field) if one.lstrip()[:1] == b"{" else one for one in inner]
    return array_of(bare) if bare != inner else content


def _without(block: bytes, name: str) -> bytes:
    fields = object_fields(block, "a block")
    if name not in fields:
        return block
    fields.pop(name)
    return object_of(fields)
