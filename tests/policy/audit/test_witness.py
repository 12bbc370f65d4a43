"""The witness must object: to each kind of false claim there is a request that it refuses."""

import random
from dataclasses import replace

import pytest

from pagein.model.messages import Message, ToolResult
from pagein.model.names import ContentHash
from pagein.model.read_events import ReadClaim
from pagein.model.spans import Spans
from pagein.policy.audit.witness import Objection, witness
from pagein.policy.reads.read_request import ReadingSettings
from pagein.testing.read_script import ReadScript


def lines(count: int, word: str = "line") -> str:
    return "\n".join(f"{word} {i} of the original text" for i in range(1, count + 1))


def story() -> ReadScript:
    """A session with an answer of every kind, each borne out."""
    script = ReadScript()
    for path in ("marker", "range", "diff", "moved", "slice", "partly"):
        script.changes(path, lines(300, path) + "\n")
        script.reads(path, 1, 150 if path == "partly" else None)
    script.reads("marker")
    script.reads("range", 10, 50)
    script.changes("diff", script.files["diff"].replace("diff 99 of", "diff 99 no longer of")).reads("diff")
    script.changes("moved", "new\n" * 3 + script.files["moved"]).reads("moved", 103, 50)
    script.changes("slice", script.files["slice"].replace("slice 99 of", "slice 99 no longer of")).reads(
        "slice", 50, 100
    )
    script.reads("partly", 100, 150)
    script.writes("written", lines(40, "mine")).reads("written")
    script.edits("marker", "marker 50 of the original text", "\n".join(f"mine {i}" for i in range(20))).reads("marker")
    return script


def said(script: ReadScript, call: str) -> str:
    return next(
        block.text
        for m in script.messages
        for block in m.blocks
        if isinstance(block, ToolResult) and block.call_id == call
    )


def call_of(script: ReadScript, kind: str) -> str:
    return [name for name, claim in script.claims.items() if claim.kind == kind][-1]


def with_text(script: ReadScript, call: str, text: str) -> list[Message]:
    def swapped(message: Message) -> Message:
        blocks = tuple(
            replace(block, text=text) if isinstance(block, ToolResult) and block.call_id == call else block
            for block in message.blocks
        )
        return replace(message, blocks=blocks)

    return [swapped(message) for message in script.messages]


KINDS = ["unchanged", "unchanged_range", "diff", "moved", "range_diff", "partly_known", "authored"]


def test_a_request_whose_claims_are_all_borne_out_has_no_objection() -> None:
    script = story()
    assert {claim.kind for claim in script.claims.values()} == {"text", *KINDS}
    assert script.objections() == ()


@pytest.mark.parametrize("path", ["marker", "range", "diff", "moved", "slice", "partly", "written"])
def test_whatever_rests_on_a_message_that_is_gone_is_objected_to(path: str) -> None:
    script = story()
    first = next(name for name, claim in script.claims.items() if claim.path == path)
    left = [
        replace(m, blocks=tuple(b for b in m.blocks if first not in {getattr(b, "call_id", ""), getattr(b, "id", "")}))
        for m in script.messages
    ]
    objections = script.objections(left)
    assert objections
    assert {script.claims[objection.call_id].path for objection in objections} == {path}


@pytest.mark.parametrize("kind", ["unchanged_range", "moved", "range_diff", "partly_known"])
def test_a_wrong_number_in_a_marker_is_objected_to(kind: str) -> None:
    script = story()
    call = call_of(script, kind)
    text = said(script, call)
    digits = [at for at, letter in enumerate(text.split("\n")[0]) if letter.isdigit()]
    for at in digits:
        other = "2" if text[at] == "1" else "1"
        assert script.objections(with_text(script, call, text[:at] + other + text[at + 1 :])), (text, at)


@pytest.mark.parametrize("kind", ["diff", "range_diff"])
def test_a_diff_that_says_something_else_is_objected_to(kind: str) -> None:
    script = story()
    call = call_of(script, kind)
    rows = said(script, call).split("\n")
    for k in range(3, len(rows) - 1):
        for spoilt in (rows[:k] + rows[k + 1 :], [*rows[:k], rows[k] + "!", *rows[k + 1 :]]):
            assert script.objections(with_text(script, call, "\n".join(spoilt))), rows[k]


def test_text_that_is_not_what_the_version_says_is_objected_to_with_its_line() -> None:
    script = ReadScript().changes("f", lines(30))
    script.reads("f", 5, 9)
    call = call_of(script, "text")
    text = said(script, call).replace("line 7 of", "line 7 oof")
    assert script.objections(with_text(script, call, text)) == (
        Objection(call, "what the request shows is not what the version says", 7),
    )


def test_a_marker_over_lines_that_were_cut_off_is_objected_to() -> None:
    script = ReadScript().changes("f", lines(2500))
    script.reads("f")
    seen = script.last.event.emitted
    assert seen is not None and not seen.holds(1, 2500)  # noqa: PT018 - for the type checker
    version = script.last.event.version
    script.claims["false"] = ReadClaim("f", version, 2500, 1, 2500, "unchanged", base=version)
    script.messages.append(Message("tool", (ToolResult("false", "[readcache: unchanged, 2500 lines]"),)))
    assert script.objections() == (
        Objection("false", f"line {seen.runs[0][1] + 1} was never shown", seen.runs[0][1] + 1),
    )


def test_unchanged_after_another_version_was_shown_is_objected_to() -> None:
    script = ReadScript().changes("f", lines(30, "old"))
    version = script.reads("f").event.version
    script.changes("f", lines(30, "new")).reads("f")
    script.claims["false"] = ReadClaim("f", version, 30, 1, 30, "unchanged", base=version)
    script.messages.append(Message("tool", (ToolResult("false", "[readcache: unchanged, 30 lines]"),)))
    assert [objection.call_id for objection in script.objections()] == ["false"]


def test_a_marker_for_a_file_that_grew_shorter_is_objected_to() -> None:
    script = ReadScript().changes("f", lines(30))
    script.reads("f")
    short = lines(20)
    version = ContentHash.of(short.encode())
    script.versions[version] = short.encode()
    script.claims["false"] = ReadClaim("f", version, 20, 1, 20, "unchanged", base=version)
    script.messages.append(Message("tool", (ToolResult("false", "[readcache: unchanged, 20 lines]"),)))
    assert script.objections()


def test_writing_that_is_not_in_the_call_is_objected_to() -> None:
    script = ReadScript().writes("f", lines(30))
    call = next(iter(script.claims))
    script.files["f"] = lines(30, "other")
    version = ContentHash.of(script.files["f"].encode())
    script.versions[version] = script.files["f"].encode()
    script.claims[call] = replace(script.claims[call], version=version)
    assert [objection.line for objection in script.objections()] == [1]


def test_what_rests_on_lost_bytes_is_objected_to_and_plain_text_is_not() -> None:
    script = ReadScript().changes("f", lines(30))
    script.reads("f")
    assert witness(script.messages, script.claims, lambda _: None) == ()
    script.reads("f")
    assert [o.why for o in witness(script.messages, script.claims, lambda _: None)] == [
        "the version is not in the store"
    ]
    assert witness(script.messages, script.claims, lambda _: b"other bytes")


def test_file_text_that_looks_like_a_marker_is_text() -> None:
    tricky = (
        lines(20) + "\n[readcache: unchanged in lines 1-9 of 99]\n[readcache: unchanged, 3 lines]\n" + lines(20, "more")
    )
    script = ReadScript().changes("f", tricky)
    script.reads("f", 1, 12)
    assert script.reads("f").event.mode == "partly_known"
    assert script.objections() == ()
    assert script.reads("f").event.mode == "unchanged"
    assert script.objections() == ()


def test_a_gutter_of_the_host_is_no_part_of_the_lines() -> None:
    content = "a\nb\nc"
    version = ContentHash.of(content.encode())
    claims = {
        "r": ReadClaim("f", version, 3, 1, 3, "text", Spans.of((1, 3)), gutter=r"\s*\d+(→|\t|\|)"),
        "m": ReadClaim("f", version, 3, 1, 3, "unchanged", base=version),
    }
    messages = [
        Message("tool", (ToolResult("r", "     1→a\n     2→b\n     3→c"),)),
        Message("tool", (ToolResult("m", "[readcache: unchanged, 3 lines]"),)),
    ]
    assert witness(messages, claims, {version: content.encode()}.get) == ()
    assert witness(messages, {**claims, "r": replace(claims["r"], gutter="")}, {version: content.encode()}.get)


@pytest.mark.parametrize("seed", range(40))
def test_a_random_spoiling_of_a_random_marker_is_noticed(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - a test, not a secret
    script = ReadScript(ReadingSettings(min_run=3)).changes("f", lines(200))
    for _ in range(12):
        rows = script.files["f"].split("\n")
        at = draw.randrange(len(rows))
        rows[at : at + draw.randrange(3)] = [f"new {draw.random()}" for _ in range(draw.randrange(3))]
        script.changes("f", "\n".join(rows))
        script.reads("f", draw.randrange(1, 100), draw.randrange(20, 100))
    marked = [name for name, claim in script.claims.items() if claim.kind not in ("text", "authored")]
    assert marked
    call = draw.choice(marked)
    claim = script.claims[call]
    other = script.versions[claim.version].replace(b"line", b"lime")
    script.versions[ContentHash.of(other)] = other
    script.claims[call] = replace(claim, version=ContentHash.of(other))
    if b"line" in script.versions[claim.version] and claim.kind != "partly_known":
        assert call in {objection.call_id for objection in script.objections()}
