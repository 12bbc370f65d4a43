"""Whatever is cut off or overwritten in a recording costs that, and nothing else."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagein.errors import BadInput
from pagein.model.messages import Message, ToolCall, ToolResult, UnreadableLine
from pagein.replay.readers import Source, read_source

MOST_BLOCKS_OF_A_LINE = 6
_MAGIC = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ")
FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "sessions"
FILES = (
    "normalised.jsonl",
    "pi-v1.jsonl",
    "pi-v3.jsonl",
    "claude-code.jsonl",
    "codex.jsonl",
    "codex-bare.jsonl",
    "anthropic-requests.jsonl",
    "openai-chat.jsonl",
    "openai-responses.jsonl",
    "mixed.jsonl",
)
BYTES = {name: (FOLDER / name).read_bytes() for name in FILES}
LINES = {name: content.splitlines(keepends=True) for name, content in BYTES.items()}


def _entries(content: bytes) -> list[Any]:
    return [entry for session in read_source(Source("cut.jsonl", content=content)) for entry in session.entries]


def _entries_or_nothing(content: bytes) -> list[Any]:
    try:
        return _entries(content)
    except BadInput as error:
        assert str(error).startswith("cut.jsonl")  # noqa: PT017
        return []


def _is_garbage(raw: bytes) -> bool:
    return bool(raw.strip()) and b"\n" not in raw and b"\0" not in raw and not raw.startswith(_MAGIC)


def _blocks(entries: list[Any]) -> Counter[Any]:
    return Counter(block for entry in entries if isinstance(entry, Message) for block in entry.blocks)


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_file_cut_at_any_byte_loses_at_most_the_torn_line(name: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(BYTES[name])))
    cut = BYTES[name][:place]
    whole = cut[: cut.rfind(b"\n") + 1]
    torn, complete = _entries_or_nothing(cut), _entries_or_nothing(whole)
    assert sum(isinstance(entry, UnreadableLine) for entry in torn) <= 1 + sum(
        isinstance(e, UnreadableLine) for e in complete
    )
    assert not _blocks(complete) - _blocks(torn)


@pytest.mark.parametrize("name", ["normalised.jsonl", "pi-v1.jsonl", "pi-v3.jsonl", "claude-code.jsonl", "codex.jsonl"])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_line_of_garbage_costs_only_that_line(name: str, data: st.DataObject) -> None:
    lines = LINES[name]
    place = data.draw(st.integers(0, len(lines) - 1))
    garbage = data.draw(st.binary(max_size=40).filter(_is_garbage))
    overwritten = [*lines[:place], garbage + b"\n", *lines[place + 1 :]]
    entries = _entries(b"".join(overwritten))
    known = Counter(
        block.json if hasattr(block, "json") else str(block) for block in _blocks(_entries(BYTES[name])).elements()
    )
    lost = known - Counter(
        block.json if hasattr(block, "json") else str(block) for block in _blocks(entries).elements()
    )
    assert sum(lost.values()) <= MOST_BLOCKS_OF_A_LINE
    assert sum(isinstance(entry, UnreadableLine) for entry in entries) == 1


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_any_bytes_anywhere_raise_nothing_but_bad_input(name: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(BYTES[name])))
    noise = data.draw(st.binary(max_size=30))
    _entries_or_nothing(BYTES[name][:place] + noise + BYTES[name][place + len(noise) :])


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "id", "role", "text"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def _spoil(row: Any, data: st.DataObject) -> None:  # noqa: ANN401 - any JSON there is
    """Put anything in the place of any field, however deep."""
    while True:
        key = data.draw(st.sampled_from(sorted(row) if isinstance(row, dict) else range(len(row))))
        inner = row[key]
        if not (isinstance(inner, dict | list) and inner and data.draw(st.integers(0, 3))):
            break
        row = inner
    row[key] = data.draw(_JSON)


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_field_of_any_other_type_raises_nothing_but_bad_input(name: str, data: st.DataObject) -> None:
    lines = [json.loads(line) for line in LINES[name]]
    _spoil(data.draw(st.sampled_from(lines)), data)
    _entries_or_nothing(b"".join(json.dumps(line).encode() + b"\n" for line in lines))


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_a_field_of_any_other_type_in_a_document_raises_nothing_but_bad_input(data: st.DataObject) -> None:
    document = json.loads((FOLDER / "opencode-export.json").read_bytes())
    _spoil(document, data)
    _entries_or_nothing(json.dumps(document, indent=data.draw(st.sampled_from([None, 1]))).encode())


def test_half_surrogates_and_bytes_that_are_no_text_become_replacement_characters() -> None:
    line = b'{"type":"message","timestamp":"2026-03-02T09:00:00Z","message":{"role":"user","content":"a\\ud83d b\xff \\ud83d\\ude00"}}\n'
    [entry] = _entries(b'{"type":"session","version":3,"id":"s","timestamp":"2026-03-02T09:00:00Z"}\n' + line)
    assert entry.blocks[0].text == "a\ufffd b\ufffd \U0001f600"


def test_every_result_answers_a_call_in_every_fixture() -> None:
    for name, content in BYTES.items():
        if name == "mixed.jsonl":
            continue
        entries = _entries(content)
        blocks = [block for entry in entries if isinstance(entry, Message) for block in entry.blocks]
        asked = {block.id for block in blocks if isinstance(block, ToolCall)}
        assert {block.call_id for block in blocks if isinstance(block, ToolResult)} <= asked, name
