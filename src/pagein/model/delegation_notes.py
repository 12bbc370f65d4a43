"""Notes about delegated questions: the stored answers of child models."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

DelegationKind: TypeAlias = Literal["query", "batch", "extract"]
"""Which operation asked. The answer of an `extract` becomes an object of its own."""


@dataclass(frozen=True, slots=True)
class QuoteNote:
    """A quote of a child, with its place in a target.

    quote: shortened. object_id: "" if no target contains the quote. version: from 1; None for an object without versions.
    first, last: lines in the whole object, from 1. exact: False if the object has other white space.
    """

    quote: str
    object_id: str = ""
    version: int | None = None
    first: int = 0
    last: int = 0
    exact: bool = True

    @property
    def place(self) -> str:
        """The place in words: `pg-1@2, lines 3 to 4`, or that the quote was not found."""
        if not self.object_id:
            return "not found in the target"
        name = self.object_id if self.version is None else f"{self.object_id}@{self.version}"
        lines = f"line {self.first}" if self.first == self.last else f"lines {self.first} to {self.last}"
        return f"{name}, {lines}" + ("" if self.exact else ", with other white space")

    @property
    def says(self) -> str:
        """The quote and its place, as one line of a list."""
        return f"{self.quote} ({self.place})"


@dataclass(frozen=True, slots=True)
class ChildResultNote:
    """A child model answered a delegated question, and its answer was stored without entering the window.

    object_id: id of the answer. call: id of the child's call. model: the model that answered.
    content: hash of the answer's bytes. title: the question, shortened.
    targets: the objects that the child was asked about. references: those of them that have versions, or will have.
    artifact: id of the object that keeps the answer of an `extract`. at: seconds since 1970.
    confidence: what the child says of its answer. evidence: its quotes, looked up in the targets.
    """

    object_id: str
    call: str
    kind: DelegationKind
    content: str
    tokens: int
    chars: int
    title: str = ""
    model: str = ""
    targets: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    artifact: str = ""
    at: float = 0.0
    confidence: str = ""
    evidence: tuple[QuoteNote, ...] = ()
