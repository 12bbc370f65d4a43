"""What a file is, in a few words."""

from hypothesis import given
from hypothesis import strategies as st

from pagein.policy.stubs.descriptions import FIRST_WORDS, of_file


def test_a_file_is_described_by_its_path_and_lines() -> None:
    assert of_file("src/auth.ts") == "src/auth.ts (full file)"
    assert of_file("src/auth.ts", (10, 20)) == "src/auth.ts (lines 10-20)"


def test_of_a_long_path_the_end_is_kept() -> None:
    described = of_file("/".join(["folder"] * 40) + "/name.py")
    assert described.endswith("/name.py (full file)")
    assert described.startswith("...")


@given(st.text(st.characters(), max_size=400))
def test_a_description_is_one_short_line(text: str) -> None:
    described = of_file(text)
    assert len(described.splitlines()) == 1
    assert len(described) <= FIRST_WORDS + 40
