"""Clients of the providers' SDKs whose model calls go through the engine."""

from typing import Any, Final, TypeVar
from weakref import WeakSet

from pagein.adapters.bounded_curator import BUDGET
from pagein.adapters.http_clients import Client, client_around, library_of
from pagein.adapters.model_calls import SdkModelCalls
from pagein.engine.engine import Engine
from pagein.errors import BadInput
from pagein.wiring import open as open_engine

ClientT = TypeVar("ClientT")

PATIENCE: Final = 0.4 * BUDGET
"""Seconds to wait for a busy store: a fallback request must find its time within the budget."""
_made: Final[WeakSet[Any]] = WeakSet()
"""HTTP clients that go through an engine already."""


def wrap(client: ClientT, *, session: str | None = None, engine: Engine | None = None, recall: bool = True) -> ClientT:
    """Return a copy of a client that sends model calls through pagein.

        client = pagein.wrap(anthropic.Anthropic(), session="fix-login")

    client: a client of the SDKs `anthropic` or `openai`, or an HTTP client of `httpx` or `httpx2` for anything that takes
        one. Synchronous and asynchronous clients alike.
    session: name of the session; None to tell conversations apart by their first message.
    engine: None for the store of the current folder, which then closes with the client, or when
        nobody uses the client any more, or at the program's end.
    recall: whether the model is offered the recall tools. Their calls are answered inside the answer, so the program never
        sees one.

    Retries, time limits and keys stay with the given client. A failure of pagein never fails a call. Raises BadInput for
    another kind of client, and the errors of `pagein.open`.
    """
    inner = _http_client(client)
    if inner in _made:
        raise BadInput("this client goes through pagein already; wrap the client that it was made from")
    made = engine if engine is not None else open_engine(patience=PATIENCE)
    around = client_around(inner, SdkModelCalls(made, session, recall=recall, is_owner=engine is None))
    _made.add(around)
    if inner is client:
        return around  # type: ignore[no-any-return]
    with_options: Any = client.with_options  # type: ignore[attr-defined]
    return with_options(http_client=around)  # type: ignore[no-any-return]


def _http_client(client: object) -> Client:
    """Return the HTTP client of an SDK's client; a plain HTTP client returns itself. Raises BadInput."""
    inner = getattr(client, "_client", client) if hasattr(client, "with_options") else client
    try:
        library_of(inner)
    except BadInput as problem:
        raise BadInput(
            f"wrap takes a client of the SDKs anthropic or openai, or one of httpx or httpx2, not {type(client).__name__}"
        ) from problem
    return inner
