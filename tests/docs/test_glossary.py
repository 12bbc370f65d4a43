"""The glossary stays small, and each word is explained once."""

import re
from pathlib import Path

MOST_WORDS = 60


def entries(root: Path) -> list[str]:
    return re.findall(
        r"^\*\*([^*]+)\*\*", (root / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE
    )


def test_the_glossary_has_at_most_sixty_words(root: Path) -> None:
    assert 0 < len(entries(root)) <= MOST_WORDS


def test_the_words_are_in_order_and_stand_once(root: Path) -> None:
    found = [entry.casefold() for entry in entries(root)]
    assert found == sorted(set(found))
