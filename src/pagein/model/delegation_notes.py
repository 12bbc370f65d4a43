"""Notes about delegated questions: the stored answers of child models."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

DelegationKind: TypeAlias = Literal["query", "batch", "extract"]
"""Which operation asked. The answer of an `extract` becomes an object of its own."""


@dataclass(frozen=True, slots=True)
class ChildResultNote:
    """A child model answered a delegated question, and its answer was stored without entering the window.

    object_id: id of the answer. call: id of the child's call. model: the model that answered.
    content: hash of the answer's bytes. title: the question, shortened.
    targets: the objects that the child was asked about. references: those of them that have versions, or will have.
    artifact: id of the object that keeps the answer of an `extract`. at: seconds since 1970.
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
