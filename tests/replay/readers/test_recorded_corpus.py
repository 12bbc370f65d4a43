"""Real sessions in their host's own format, against the same sessions as others normalised them."""

import json
from pathlib import Path
from typing import Any

import pytest

from pagein.model.messages import HostEvent, Message, ToolCall, ToolResult, UnreadableLine
from pagein.replay.readers import Source, find, read_source

pytestmark = [pytest.mark.corpus, pytest.mark.slow]

NATIVE = {
    "claude-code__054bd433-cf13-416a-af41-48f036301c08.jsonl.gz": "context-evaluator",
    "claude-code__266b3f40-6f1d-491c-aeca-825cbb3fcbc5.jsonl.gz": "entireio-cli",
    "claude-code__85f99978-1851-42ee-9aac-0c9fe2e61b70.jsonl.gz": "entireio-cli",
    "claude-code__ba3fb03b-d148-40c0-b443-eb152fde44d5.jsonl.gz": "oh-my-posh",
    "codex__019f1de1-ca1d-7261-9e32-4d51380144e6.jsonl.gz": "agentv",
    "opencode__ses_3204ad9bdffeVbHlFKapQwYuiY.json.gz": "nimbus",
    "opencode__ses_335d34a5cffexpsV44hns3CzRq.json.gz": "nimbus",
    "pi__before-compaction.jsonl.gz": "pi-mono",
}


def _messages(entries: list[Any]) -> list[Message]:
    return [entry for entry in entries if isinstance(entry, Message)]


def _normalised(corpus: Path, name: str) -> Source:
    wanted = name.split("__")[1].split(".", maxsplit=1)[0]
    return next(
        source
        for source in find([corpus / "dev" / f"{NATIVE[name]}.tar.xz"])
        if isinstance(source, Source) and source.stem == wanted
    )


@pytest.mark.parametrize("name", sorted(NATIVE))
def test_a_native_session_reads_as_its_normalised_twin(corpus: Path, name: str) -> None:
    [native] = read_source(Source(name, corpus / "native" / name))
    [twin] = read_source(_normalised(corpus, name))
    ours, theirs = list(native.entries), list(twin.entries)
    assert (native.head.models, native.head.cwd, native.head.window) == (
        twin.head.models,
        twin.head.cwd,
        twin.head.window,
    )
    calls = [[entry.usage for entry in _messages(entries) if entry.role == "assistant"] for entries in (ours, theirs)]
    assert calls[0] == calls[1]
    results = [
        [(len(block.text), block.name, block.is_error) for block in _blocks(entries) if isinstance(block, ToolResult)]
        for entries in (ours, theirs)
    ]
    assert results[0] == results[1]
    asked = [
        [(block.name, json.loads(block.arguments)) for block in _blocks(entries) if isinstance(block, ToolCall)]
        for entries in (ours, theirs)
    ]
    assert asked[0] == asked[1]
    times = [[entry.at for entry in _messages(entries) if entry.role == "assistant"] for entries in (ours, theirs)]
    assert times[0] == times[1]
    events = [[(e.kind, e.at) for e in entries if isinstance(e, HostEvent)] for entries in (ours, theirs)]
    assert events[0] == events[1]


def _blocks(entries: list[Any]) -> list[Any]:
    return [block for entry in _messages(entries) for block in entry.blocks]


@pytest.mark.parametrize("name", sorted(NATIVE))
def test_accesses_are_derived_as_others_derived_them(corpus: Path, name: str) -> None:
    """All that edit, write or delete; and of the reads nearly all: a shell command can be read in more than one way."""
    [native] = read_source(Source(name, corpus / "native" / name))
    [twin] = read_source(_normalised(corpus, name))
    ours, theirs = (
        [block.accesses for block in _blocks(list(session.entries)) if isinstance(block, ToolCall)]
        for session in (native, twin)
    )
    changes = [[a for accesses in side for a in accesses if a.op != "read"] for side in (ours, theirs)]
    assert changes[0] == changes[1]
    differing = sum([a.path for a in one] != [a.path for a in other] for one, other in zip(ours, theirs, strict=True))
    assert differing <= 0.06 * len(ours)


def test_every_session_of_the_corpus_is_read_whole(corpus: Path) -> None:
    told = {row["id"]: row for row in map(json.loads, (corpus / "index.jsonl").read_text().splitlines())}
    seen: dict[str, tuple[int, ...]] = {}
    for source in find([corpus / "dev"]):
        assert isinstance(source, Source), source
        for session in read_source(source):
            entries = list(session.entries)
            assert not any(isinstance(entry, UnreadableLine) for entry in entries)
            calls = [entry for entry in _messages(entries) if entry.role == "assistant"]
            usages = [call.usage for call in calls if call.usage is not None]
            blocks = _blocks(entries)
            seen[session.head.id] = (
                len(calls),
                sum(isinstance(block, ToolCall) for block in blocks),
                sum(len(block.text) for block in blocks if isinstance(block, ToolResult)),
                sum(usage.prompt for usage in usages),
                sum(usage.output for usage in usages),
            )
    assert seen.keys() == told.keys()
    for name, row in told.items():
        known = 5 if row["usage"] else 3  # the index leaves usage out where only output was recorded
        assert seen[name][:known] == _told(row)[:known], name


def _told(row: dict[str, Any]) -> tuple[int, ...]:
    usage = row["usage"] or dict.fromkeys(("input", "cache_read", "cache_write", "output"), 0)
    prompt = usage["input"] + usage["cache_read"] + usage["cache_write"]
    return row["assistant_msgs"], row["tool_calls"], row["tool_result_chars"], prompt, usage["output"]
