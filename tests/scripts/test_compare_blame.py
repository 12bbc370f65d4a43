"""The comparison of blame with git, on a small recorded session and on the recorded sessions beside the checkout."""

from pathlib import Path

import pytest
from scripts import compare_blame
from scripts.compare_blame import Comparison, compare, recorded_texts
from scripts.recorded_edits import RecordedTexts, TextState

from pagein.policy.blame.known_states import Author
from pagein.policy.blame.line_origins import line_origins

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
Step = tuple[str, int, str, str | None, str | None]
"""Session, turn, deed, text before, text after."""


def texts(*steps: Step) -> RecordedTexts:
    recorded = RecordedTexts()
    for at, (session, turn, deed, base, text) in enumerate(steps):
        author = Author("agent", session, turn)
        recorded.add(iter([TextState("src/a b.py", float(at), at, deed, author, base, text)]))
    return recorded


def test_both_name_the_same_turns(tmp_path: Path) -> None:
    recorded = texts(
        ("s1", 1, "edit", "a = 1\nb = 2\nc = 3\n", "a = 1\nb = 20\nc = 3\n"),
        ("s1", 2, "edit", "a = 1\nb = 20\nc = 3\n", "a = 1\nb = 20\nnew = 4\nc = 3\n"),
        ("s2", 1, "edit", "# mine\na = 1\nb = 20\nnew = 4\nc = 3\n", "# mine\na = 1\nb = 20\nnew = 4\n"),
    )
    found = compare(recorded, tmp_path)
    assert (found.edited, found.whole) == (1, 1)
    assert dict(found.lines) == {"plain": 4}
    assert dict(found.equal) == {"plain": 4}
    assert found.answers == {"unknown": 2, "agent": 2}


def test_a_wrong_answer_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare_blame, "line_origins", lambda states, now: line_origins(states[:1], now))
    recorded = texts(
        ("s1", 1, "write", None, "a = 1\nb = 2\n"),
        ("s1", 2, "edit", "a = 1\nb = 2\n", "a = 1\nb = 2\nc = 3\n"),
    )
    found = compare(recorded, tmp_path)
    assert (found.lines["plain"], found.equal["plain"]) == (3, 2)
    assert "git: ('s1', 2)" in found.examples[0]


def test_a_text_that_came_back_is_told_from_a_difference(tmp_path: Path) -> None:
    lines = [f"line number {number} of this text\n" for number in range(6)]
    whole, short = "".join(lines), "".join(lines[:2])
    recorded = texts(
        ("s1", 1, "write", None, whole),
        ("s2", 1, "edit", short, short + "more\n"),
        ("s3", 1, "edit", whole, whole + "end\n"),
    )
    found = compare(recorded, tmp_path)
    assert dict(found.lines) == {"plain": 3, "came back": 4}
    assert dict(found.equal) == {"plain": 3, "came back": 0}


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason="no recorded sessions beside the checkout")
def test_blame_agrees_with_git_on_recorded_sessions(tmp_path: Path) -> None:
    found = Comparison()
    for source, repositories in recorded_texts([CORPUS / "dev" / "pi-mono.tar.xz"], together=False).items():
        for number, recorded in enumerate(repositories):
            folder = tmp_path / f"{source}-{number}"
            folder.mkdir()
            found.add(compare(recorded, folder))
    assert found.lines["plain"] > 3000
    assert found.equal["plain"] >= 0.99 * found.lines["plain"]
