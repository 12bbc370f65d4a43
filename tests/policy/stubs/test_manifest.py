"""The manifest: its exact texts, and that what was written stays written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.errors import BadSetting
from pagein.policy.stubs.manifest import BUDGET, NO_MANIFEST, Manifest, ManifestRow, tokens_of
from pagein.policy.stubs.recall_ways import SHELL, Way

ROWS = st.lists(
    st.builds(
        ManifestRow,
        st.from_regex(r"pg-[0-9a-f]{8}-[0-9a-f]{8}", fullmatch=True),
        st.sampled_from(["toolcall", "file", "chat"]),
        st.integers(0, 10**7),
        st.text(st.characters(), max_size=100),
    ),
    max_size=60,
)


def row(number: int, about: str = "npm test - 47 lines") -> ManifestRow:
    return ManifestRow(f"pg-{number:08x}-0000000f", "toolcall", 1000 + number, about)


def first_page(rows: list[ManifestRow], budget: int = BUDGET) -> str:
    _, page = NO_MANIFEST.at_edge(rows, budget=budget)
    assert page is not None
    return page.text


def lines_of(text: str) -> list[str]:
    """The rows of the table, without its head."""
    return [line for line in text.split("\n") if line.startswith("| ") and "Object ID" not in line]


def test_a_page_has_the_words_of_the_specification() -> None:
    assert first_page([row(1), row(2, "src/auth.py (full file)")]) == (
        "## RLM External Context\n"
        "\n"
        "You have access to externalized content via RLM tools. The following objects\n"
        "are in your external store:\n"
        "\n"
        "| Object ID | Type | Tokens | Description |\n"
        "|----|------|--------|-------------|\n"
        "| pg-00000002-0000000f | toolcall | 1,002 | src/auth.py (full file) |\n"
        "| pg-00000001-0000000f | toolcall | 1,001 | npm test - 47 lines |\n"
        "\n"
        "**Total:** 2 objects, 2,003 tokens externalized.\n"
        "Use search or peek to access this content."
    )


def test_a_page_says_how_the_model_recalls() -> None:
    rows = [row(n, "x" * 90) for n in range(60)]
    for way, search, peek in (
        (Way("rlm_peek", "rlm_search"), "rlm_search", "rlm_peek"),
        (SHELL, "`pagein search`", "`pagein peek`"),
    ):
        _, page = NO_MANIFEST.at_edge(rows, budget=500, way=way)
        assert page is not None
        assert page.text.endswith(f"\nUse {search} or {peek} to access this content.")
        assert f"| Use {search} or filters to narrow scope |" in page.text
        assert ("via commands." in page.text) == way.is_command


def test_what_does_not_fit_is_one_row() -> None:
    text = first_page([row(n, "x" * 90) for n in range(300)], budget=500)
    rows = lines_of(text)
    older = 300 - (len(rows) - 1)
    tokens = sum(1000 + n for n in range(older))
    assert rows[-1] == f"| **+{older} older** | objects | {tokens:,} | Use search or filters to narrow scope |"
    assert rows[0].startswith(f"| pg-{299:08x}-")


def test_one_row_stands_there_whatever_the_budget() -> None:
    rows = lines_of(first_page([row(1), row(2)], budget=1))
    assert rows[0].startswith("| pg-00000002-")
    assert rows[1].startswith("| **+1 older**")
    with pytest.raises(BadSetting):
        first_page([row(1)], budget=0)


def test_an_edge_at_which_nothing_left_has_no_page() -> None:
    assert NO_MANIFEST.at_edge([]) == (NO_MANIFEST, None)


def test_bars_and_newlines_do_not_break_the_table() -> None:
    [line] = lines_of(first_page([row(1, "a | b\nc\r\u2028d")]))
    assert line == "| pg-00000001-0000000f | toolcall | 1,001 | a \\| b c d |"


@given(ROWS, st.integers(1, 3000))
def test_a_page_stays_near_its_budget_and_counts_everything(rows: list[ManifestRow], budget: int) -> None:
    after, page = NO_MANIFEST.at_edge(rows, budget=budget)
    if page is None:
        assert not rows
        return
    assert page.tokens == tokens_of(page.text)
    shown = [line for line in lines_of(page.text) if "older**" not in line]
    assert shown
    # one row is shown whatever it takes; beyond that the rows keep to the budget
    if len(shown) > 1:
        assert sum(tokens_of(line + "\n") for line in shown) <= max(1, budget - 200)
    assert (after.objects, after.tokens) == (len(rows), sum(one.tokens for one in rows))
    assert f"**Total:** {len(rows):,} objects, {after.tokens:,} tokens externalized." in page.text


@given(st.lists(ROWS, max_size=5))
def test_what_was_written_never_changes_and_totals_run_on(edges: list[list[ManifestRow]]) -> None:
    """Append-only: a page depends on its own rows and on sums, so the same edges give the same pages, one behind the other."""
    written: list[str] = []
    standing, again = NO_MANIFEST, Manifest()
    for rows in edges:
        standing, page = standing.at_edge(rows)
        if page is not None:
            written.append(page.text)
    for rows in edges:
        before = again
        again, page = again.at_edge(rows)
        if page is None:
            assert again == before
        else:
            assert page.text == written.pop(0)
    assert standing == again
    assert standing.objects == sum(len(rows) for rows in edges)
    assert standing.pages == sum(1 for rows in edges if rows)


def test_a_later_page_lists_what_is_new_and_sums_up_all() -> None:
    first, _ = NO_MANIFEST.at_edge([row(1)])
    _, page = first.at_edge([row(2)])
    assert page is not None
    assert page.text.startswith("## RLM External Context (page 2, in addition to those before)\n")
    assert "pg-00000001" not in page.text
    assert "**Total:** 2 objects, 2,003 tokens externalized." in page.text
