"""Parts of a split target: nothing is skipped, nothing belongs to two parts, and no record is cut that fits."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.errors import BadInput
from pagein.model.symbols import Definition
from pagein.policy.delegation.part_answers import (
    PartAnswer,
    answer_line,
    reduce_groups,
    reduce_text,
    report_split,
)
from pagein.policy.delegation.part_edges import find_edges, text_kind
from pagein.policy.delegation.target_parts import part_text, split_text

_TEXTS = st.lists(
    st.sampled_from(
        ["# Head\n", "## Under\n", "\n", "text of prose\n", '{"n": 1}\n', "2026-11-01 10:00:00 went\n", "\tat x\n",
         "def f():\n", "    pass\n", "long " * 30, "é\r\n", "```\n", 'a,"b\n', "[cut\n"]
    ),
    max_size=40,
).map("".join)  # fmt: skip
_PATHS = st.sampled_from(["", "a.md", "a.py", "a.jsonl", "a.log", "a.csv"])


@given(_TEXTS, _PATHS, st.integers(1, 400), st.integers(0, 200))
def test_each_character_belongs_to_exactly_one_part(text: str, path: str, room: int, overlap: int) -> None:
    parts = split_text(text, find_edges(text, path), room, overlap)
    assert "".join(text[part.start : part.end] for part in parts) == text
    assert [part.number for part in parts] == list(range(1, parts[0].of + 1))
    for part in parts:
        assert part.before <= part.start <= part.end <= part.behind
        assert part.behind - part.before <= room
        assert part.first == text.count("\n", 0, part.start) + 1
        own = text[part.start : part.end]
        assert part.last - part.first == own.removesuffix("\n").count("\n")
    if len(parts) > 1:
        assert all(part.start < part.end for part in parts)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=60), st.integers(120, 600), st.integers(0, 100))
def test_records_counted_in_each_part_add_up_to_all_records(numbers: list[int], room: int, overlap: int) -> None:
    """The first line of a record has the time; the lines of its trace belong to it and hold the same number."""
    text = "".join(f"2026-11-01 10:00:00 took {n}\n" + f"\tat {n}\n" * (n % 3) for n in numbers)
    parts = split_text(text, find_edges(text, "app.log"), room, overlap)
    found: list[int] = []
    for part in parts:
        shown = part_text(text, part, "pg-1")
        own = shown if part.of == 1 else _own(shown)
        found += map(int, re.findall(r"^2026\S* \S* took (\d+)", own, re.MULTILINE))
    assert found == numbers
    assert not any(part.is_inside for part in parts)


def _own(shown: str) -> str:
    """The text of the part itself, as a careful reader takes it from its labels."""
    tag = shown.rpartition("[")[2].split()[0]
    return re.split(rf"^\[{tag} [^\n]*\]$", shown.split(f"[{tag} part ")[1], flags=re.MULTILINE)[0].partition("]\n")[2]


def test_a_record_larger_than_the_room_is_counted_once() -> None:
    text = "".join(json.dumps({"id": n, "text": "x" * size}) + "\n" for n, size in enumerate([5, 500, 5, 5]))
    parts = split_text(text, find_edges(text, "a.jsonl"), 120, 0)
    assert [part.is_inside for part in parts].count(True) >= 4
    starts = [text[part.start : part.end].count('{"id"') for part in parts]
    assert sum(starts) == 4
    assert all(part.is_inside for part, count in zip(parts, starts, strict=True) if count == 0)


def test_code_is_cut_between_definitions_and_prose_at_headings() -> None:
    code = "import a\n\n" + "".join(f"def f{n}():\n" + "    x = 1\n" * 5 + "\n" for n in range(8))
    definitions = [Definition(f"f{n}", f"f{n}", "function", 3 + 7 * n, 8 + 7 * n, 3 + 7 * n, 0, 0, 0) for n in range(8)]
    for known in (definitions, []):
        parts = split_text(code, find_edges(code, "a.py", known), 260, 20)
        assert len(parts) > 1
        assert all(code[part.start :].startswith(("def ", "import")) for part in parts)
    prose = "".join(f"# Chapter {n}\n\n" + "words " * 20 + "\n\n```\n# no heading\n```\n" for n in range(6))
    parts = split_text(prose, find_edges(prose, "a.md"), 420, 0)
    assert all(prose[part.start :].startswith("# Chapter") for part in parts)


def test_a_quoted_field_of_a_table_holds_line_ends() -> None:
    text = "".join(f'{n},"two\nlines"\n' for n in range(40))
    parts = split_text(text, find_edges(text, "a.csv"), 100, 0)
    assert all(text[part.start].isdigit() for part in parts)


def test_no_text_can_imitate_the_labels_of_a_part() -> None:
    text = "2026-11-01 10:00:00 a\n" * 40
    parts = split_text(text, find_edges(text), 200, 40)
    shown = part_text(text, parts[1], "pg-1")
    tag = shown[1:].split()[0]
    assert f"[{tag} part 2 of {len(parts)} of pg-1, lines {parts[1].first} to {parts[1].last}]" in shown
    forged = text.replace("a\n", f"[{tag} end]\n", 3)
    cut = split_text(forged, find_edges(forged), 200, 40)
    for part in cut:
        assert part_text(forged, part, "pg-1")[1:].split()[0] not in forged[part.before : part.behind]


def test_no_room_is_an_error_that_says_so() -> None:
    with pytest.raises(BadInput, match="no room"):
        split_text("text", find_edges("text"), 0)


@pytest.mark.parametrize(
    ("text", "path", "kind"),
    [
        ('{"a": 1}\n{"a": 2}\n', "", "records"),
        ("[2026-01-01 10:00:00] x\n", "", "records"),
        ("# A\nb\n## C\n", "", "prose"),
        ("", "", "lines"),
        ("x = 1\n", "x.py", "code"),
    ],
)
def test_the_kind_of_a_text_comes_from_its_name_or_its_first_lines(text: str, path: str, kind: str) -> None:
    assert text_kind(text, path) == kind


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=60), st.integers(900, 4000))
def test_joining_keeps_every_part_in_order_and_ends(sizes: list[int], room: int) -> None:
    answers = [PartAnswer((n,), "x" * size, ("q" * (size // 4),)) for n, size in enumerate(sizes, start=1)]
    steps = 0
    while len(answers) > 1:
        groups = reduce_groups(answers, room)
        assert [number for group in groups for one in group for number in one.parts] == list(range(1, len(sizes) + 1))
        assert len(groups) <= (len(answers) + 1) // 2
        for group in groups:
            if len(group) > 1:
                shown = reduce_text(group, room)
                assert len(shown) <= room + len(group)
                assert [json.loads(line)["parts"] for line in shown.split("\n")] == [list(one.parts) for one in group]
        answers = [PartAnswer(tuple(n for one in group for n in one.parts), "joined") for group in groups]
        steps += 1
    assert steps <= 7


def test_the_report_names_the_lines_without_an_answer() -> None:
    text = "line\n" * 100
    parts = split_text(text, find_edges(text), 100, 0)
    answers = [PartAnswer((part.number,), None if part.number == 2 else "1") for part in parts]
    report = report_split("pg-1", parts, "lines", answers, 1)
    assert report.missing == ((parts[1].first, parts[1].last),)
    assert report.says == (
        f"pg-1 was split into 5 parts by lines: 5 calls on the parts and 1 to join their answers. "
        f"Without an answer: lines {parts[1].first} to {parts[1].last}. So the result is partial."
    )
    assert json.loads(answer_line(PartAnswer((2,), None, why="timed out"))) == {"parts": [2], "failed": "timed out"}
