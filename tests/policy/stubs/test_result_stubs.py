import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.conversations import TEXTS

from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, Origin
from pagein.policy.stubs.recall_ways import TOOLS
from pagein.policy.stubs.result_stubs import FIRST_LINE, LONGEST, description, stub

ID = ObjectId.of(ContentHash.of(b"body"), Origin("session", "call"), b"secret")


def test_a_stub_names_its_object_and_how_to_recall_it() -> None:
    text = stub(ID, "Read", 2340, description("\n  import os\nimport re\n"), TOOLS)
    assert text == (
        f"[pagein: {ID} | Read | 2,340 tokens | import os - 3 lines]\n"
        f'Use peek("{ID}") to view, or search to find specific content.'
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("one", "one - 1 line"),
        ("one\n", "one - 1 line"),
        ("\n\n \t\n  two words  \nmore", "two words - 5 lines"),
        ("", "0 lines"),
        ("\n\n", "2 lines"),
        ("x" * 500, "x" * FIRST_LINE + " - 1 line"),
        ("tab\there\r\nnext", "tab here - 2 lines"),
        ("bell\x07 \ud800 end", "bell end - 1 line"),
        ("line\n" * 12_000, "line - 12,000 lines"),
    ],
)
def test_a_description_is_the_first_line_and_the_count(text: str, said: str) -> None:
    assert description(text) == said


@given(st.text(st.characters(), max_size=400), TEXTS, st.integers(0, 10**9))
def test_a_stub_is_two_lines_of_bounded_length(text: str, tool: str, tokens: int) -> None:
    found = stub(ID, tool * 10, tokens, description(text), TOOLS)
    assert len(found) <= LONGEST
    assert found.count("\n") == 1
    assert re.match(rf"\[pagein: {ID} \| ", found)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\ud800-\udfff]", found)


def test_describing_a_line_of_megabytes_looks_at_its_beginning_only() -> None:
    assert len(description(" " * 50 + "x" * 5_000_000)) < 2 * FIRST_LINE


@pytest.mark.parametrize(
    ("text", "about"),
    [
        (
            "Chunk ID: 2a1733\nWall time: 0.0 seconds\nProcess exited with code 0\nOutput:\n3 passed\n",
            "3 passed - 5 lines",
        ),
        ("Script completed\nWall time 0.1 seconds\nOutput:\n\n3 passed\n", "3 passed - 5 lines"),
        ("Chunk ID: 2a1733\nProcess exited with code 0\nOutput:\n", "Chunk ID: 2a1733 - 3 lines"),
        ("Wall time: long\n" + "x" * 500 + "\nOutput:\nno stamp", "Wall time: long - 4 lines"),
    ],
)
def test_a_description_passes_over_what_codex_says_in_front_of_every_output(text: str, about: str) -> None:
    assert description(text) == about
