from hypothesis import given
from hypothesis import strategies as st

from pagein.providers.cache_simulator import Chains
from pagein.replay.prompt.prompt_window import PromptWindow

Block = tuple[str, float]
blocks = st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(1, 5000)), min_size=1, max_size=30)


def _fresh(chains: Chains, content: list[Block]) -> PromptWindow:
    window = PromptWindow(chains)
    window.begin(((key,), "results", tokens) for key, tokens in content)
    return window


@given(blocks, st.data())
def test_a_window_edited_in_place_equals_one_built_anew(content: list[Block], data: st.DataObject) -> None:
    chains = Chains()
    window = _fresh(chains, content)
    for _ in range(3):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = ("stub", data.draw(st.floats(1, 50)))
        window.replace({at + 1: (("stub",), "stubs", content[at][1])})
        content.append(("new", 7.0))
        window.append(("new",), "results", 7.0)
    again = _fresh(chains, content)
    assert window.chain == again.chain
    assert window.size - again.size < 1e-6
    assert abs(sum(window.by_part.values()) - window.size) < 1e-6


@given(blocks, st.data())
def test_correcting_a_size_keeps_the_identity_of_the_prefix(content: list[Block], data: st.DataObject) -> None:
    window = _fresh(Chains(), content)
    chain, size = list(window.chain), window.size
    at = data.draw(st.integers(1, len(content)))
    window.shrink(at, 0.5)
    assert window.chain == chain
    assert abs(size - (content[at - 1][1] - 0.5) - window.size) < 1e-6


def test_the_prefix_before_a_block_ends_where_the_block_begins() -> None:
    window = _fresh(Chains(), [("a", 10.0), ("b", 20.0), ("c", 5.0)])
    assert [window.before(position) for position in (1, 2, 3)] == [0.0, 10.0, 30.0]
