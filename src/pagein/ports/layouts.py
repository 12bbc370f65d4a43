"""Interface to a layout: the order of a prompt's blocks, and their cache breakpoints."""

from typing import Protocol, TypeVar

from pagein.model.laid_prompts import LaidPrompt, LayoutFacts

StateT_contra = TypeVar("StateT_contra", contravariant=True)


class Layout(Protocol[StateT_contra]):
    """A layout of one kind of state: tiers, pools, or the plain conversation.

    Whoever renders, checks, marks and bills a prompt knows no layout by name.
    """

    @property
    def name(self) -> str:
        """The name of the layout, as settings and reports have it."""
        ...

    def lay_out(self, state: StateT_contra, facts: LayoutFacts) -> LaidPrompt:
        """Return the prompt of a request. Pure: the same state and facts give the same blocks.

        Every text of the contents that the state shows is in exactly one block. At most four blocks are marked, each with
        at least `facts.min_prefix` tokens up to its end.
        """
        ...
