"""Objects and writes for tests of stores."""

# ruff: noqa: S101 -- for tests that ship

import itertools
from collections.abc import Mapping

from pagein.model.identifiers import uuid7
from pagein.model.versions import Draft, Version
from pagein.model.writes import Outcome, Write, WriteRefusal, Written
from pagein.ports import ObjectStore

HARD_TEXTS = (
    None,
    "",
    "plain\n",
    "\ufefffirst\r\nsecond\rthird\n\n",
    "zero \0 byte, lone \ud800 and \udfff halves, \U0001f600, \\u0041, back\\slash",
    "line\n" * 20_000,
)
HARD_FIELDS: Mapping[str, object] = {
    "text": "zero \0 lone \ud800 \\ \" / ~ '",
    "numbers": [0, -1, 2**62, 1.5, -0.0, 1e300, True, False, None],
    "$ref": {"id": "not a reference"},
    "$$": {"$": {"$ref": []}},
    "a/b~c": {"": [[], {}]},
    "naïve": "ü",
}


_REQUESTS = itertools.count()


def object_number(number: int) -> str:
    """Return an id for tests, the same for the same number."""
    return uuid7(1_700_000_000_000 + number, number.to_bytes(10, "big"))


def a_file(number: int, content: str | None = "text", *, path: str | None = None, **more: object) -> Draft:
    """Return a file for tests. more: fields of its metadata."""
    metadata = {"path": f"/folder/{number}.txt" if path is None else path, "file_type": "text", **more}
    return Draft(id=object_number(number), type="file", content=content, metadata=metadata)


def send(store: ObjectStore, draft: Draft, *, at: float = 1.0, expected: int | None = None) -> Outcome:
    """Write with a request id of its own."""
    return store.write(Write(f"request {next(_REQUESTS)}", draft, at, expected))


def put(store: ObjectStore, draft: Draft, *, at: float = 1.0) -> Version:
    """Write, and assert success."""
    outcome = send(store, draft, at=at)
    assert isinstance(outcome, Written)
    return outcome.version


def refusal_reason(outcome: Outcome) -> str:
    """Return the reason for a refused write."""
    assert isinstance(outcome, WriteRefusal)
    return outcome.why
