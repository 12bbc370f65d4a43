"""The witness and another reader, written apart from it, agree on what misleads: random markers in random histories."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.reads.careful_reader import Misled
from tests.policy.reads.file_histories import FILE, Script, answered, changed, fresh, part_of

from pagein.model.messages import Message, ToolResult
from pagein.model.names import ContentHash
from pagein.model.read_events import ClaimKind, ReadClaim
from pagein.policy.reads import markers

SEEDS = st.integers(0, 2**32)


@settings(deadline=None, max_examples=120)
@given(seed=SEEDS)
def test_any_marker_at_any_time_is_judged_as_another_reader_judges_it(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - a history, not a secret
    told = Script("\n".join(fresh(draw, draw.choice([6, 20, 60]))))
    texts = [told.text]
    for _ in range(30):
        match draw.choices(["read", "change", "shrink", "revert", "edit", "write"], [50, 12, 6, 8, 20, 3])[0]:
            case "read":
                total = told.text.count("\n") + 1
                told.reads(
                    draw.choice([None, draw.randrange(1, total + 1)]), draw.choice([None, draw.randrange(1, 30)])
                )
            case "change":
                told.changes(changed(draw, told.text))
            case "shrink":
                lines = told.text.split("\n")
                told.changes("\n".join(lines[: max(2, len(lines) - draw.randrange(1, 9))]))
            case "revert":
                told.changes(draw.choice(texts))
            case "edit" if (edit := part_of(draw, told.text)) is not None:
                told.edits(*edit)
            case "write":
                told.writes(changed(draw, told.text))
            case _:
                pass
        texts.append(told.text)
        if not told.reader.lost:  # of what it lost track of, that reader believes anything
            agree(told, *any_marker(draw, told.text))


def any_marker(draw: random.Random, text: str) -> tuple[ClaimKind, int, int, str]:
    """A marker that may be right or wrong, with the lines that it answers for."""
    total = text.count("\n") + 1
    first = draw.randrange(1, total + 1)
    last = min(total, first + draw.randrange(0, 12))
    match draw.randrange(4):
        case 0:
            return "unchanged", 1, total, markers.unchanged_marker(total)
        case 1:
            return "unchanged_range", first, last, markers.lines_unchanged_marker(first, last, total)
        case 2:
            return "unchanged_range", first, last, markers.inside_unchanged_marker(first, last)
        case _:
            start = max(1, first + draw.randrange(-4, 5))
            return "moved", first, last, markers.moved_marker(first, last, total, start)


def agree(told: Script, kind: ClaimKind, first: int, last: int, marker: str) -> None:
    reader, script = told.reader.copy(), told.script.forks()
    if marker in told.text:
        return
    try:
        answered(reader, marker, "", first, last - first + 1, told.text)
        is_misled = False
    except Misled:
        is_misled = True
    version = ContentHash.of(told.text.encode())
    script.claims["any"] = ReadClaim(FILE, version, told.text.count("\n") + 1, first, last, kind)
    script.messages.append(Message("tool", (ToolResult("any", marker),)))
    objects = any(one.call_id == "any" for one in script.objections())
    # the short text of an edit is no claim of ours: that reader knows it, and the witness does not
    has_edited = any(claim.kind == "authored" for claim in script.claims.values())
    assert objects == is_misled or (objects and has_edited), (marker, script.objections(), told.reader)
