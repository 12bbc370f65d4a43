"""Interface to a store's derived layers: made from its content alone, and made again at any time."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from pagein.model.layer_report import LayerReport
from pagein.ports.whole_stores import WholeStore

Progress: TypeAlias = Callable[[int, int], object]
"""Told after each transaction: the place that was reached, and the last place."""


class DerivedLayer(Protocol):
    """A layer over a store: the objects of sessions, the index of searches, or a layer of one's own.

    No answer depends on it. Without the layer, or where it is behind, whoever asks looks at what it is derived from, or brings it up
    first. Called from several threads, and by several processes on one store. Raises StoreError.
    """

    @property
    def name(self) -> str:
        """The name of the layer, unique in a store."""
        ...

    def catch_up(
        self, within: float | None = None, stop: Callable[[], bool] = ..., tell: Progress | None = None
    ) -> LayerReport:
        """Bring the layer up to the store, in short transactions. Cheap if there is nothing new.

        within: seconds after which to stop; None for no limit. stop: asked between transactions.
        """
        ...

    def behind(self) -> int:
        """Return the number of places that the layer has not followed yet; 0 for a layer that a store does not have."""
        ...

    def drop(self, store: WholeStore) -> int:
        """Drop the layer, and return how much was dropped; `catch_up` makes it again.

        store: the same store, opened for upkeep
        """
        ...
