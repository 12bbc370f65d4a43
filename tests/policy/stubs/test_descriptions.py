"""What an object is, in a few words."""

from hypothesis import given
from hypothesis import strategies as st

from pagein.policy.stubs.descriptions import FIRST_WORDS, of_artifact, of_file, of_message, of_result


def test_each_kind_is_described_by_its_rule() -> None:
    assert of_result("bash", "\n\n  FAIL src/app.test.ts\nmore\n") == "bash: FAIL src/app.test.ts - 4 lines"
    assert of_result("", "one") == "one - 1 line"
    assert of_message("user", "Can you check\nthe race?") == "User: Can you check the race?"
    assert of_message("assistant", "yes") == "Assistant: yes"
    assert of_message("system", "be good") == "System: be good"
    assert of_file("src/auth.ts") == "src/auth.ts (full file)"
    assert of_file("src/auth.ts", (10, 20)) == "src/auth.ts (lines 10-20)"
    assert of_artifact("auth module\nAPI surface") == "Extracted: auth module API surface"


def test_of_a_long_path_the_end_is_kept() -> None:
    described = of_file("/".join(["folder"] * 40) + "/name.py")
    assert described.endswith("/name.py (full file)")
    assert described.startswith("...")


@given(st.text(st.characters(), max_size=400))
def test_a_description_is_one_short_line(text: str) -> None:
    for described in (of_result("Bash", text), of_message("user", text), of_file(text), of_artifact(text)):
        assert len(described.splitlines()) == 1
        assert len(described) <= FIRST_WORDS + 40


@given(st.text(st.characters(), min_size=1, max_size=300))
def test_a_message_begins_as_it_was_said(text: str) -> None:
    plain = "".join(character for character in text if character.isascii() and character.isprintable())
    assert of_message("user", plain) == f"User: {' '.join(plain.split())[:FIRST_WORDS].rstrip()}"
