"""Encode a library caller's request as JSON: plain values, and objects of an SDK among them.

Rules of this file
------------------
1. Callers put a reply's own objects into the next request, as the SDKs allow. They become the JSON that the SDK would
   send.
2. Any iterable becomes a list, as in the SDKs. It is read once; the sent request holds the list.
3. A value that no request can hold raises BadInput with its place.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from pagein.errors import BadInput
from pagein.model.json_text import encode_json

Request: TypeAlias = Mapping[str, Any] | bytes
"""A provider's request: its fields, or its body."""

_NOT_SENT: Final = frozenset({"NotGiven", "Omit"})  # types that both SDKs use for an absent field
_TAKES: Final = "give the fields of the provider's request as a dict, or its body as bytes"


def body_of(request: Request) -> bytes:
    """Return the SDK's body for a request. Raises BadInput for any other value."""
    if isinstance(request, bytes | bytearray | memoryview):
        return bytes(request)
    if not isinstance(request, Mapping):
        raise BadInput(f"a request cannot be a {type(request).__name__}: {_TAKES}")
    fields = {str(name): value for name, value in request.items() if type(value).__name__ not in _NOT_SENT}
    try:
        return encode_json(fields, _plain)
    except _NoValueError as problem:
        where, kind = (_place(fields, problem.value) or "").removeprefix("."), type(problem.value).__name__
        raise BadInput(
            f"{where or 'the request'} is a {kind}, which a request cannot hold; what is for the client and not for the provider "
            "(timeout, headers) goes to the client's own call"
        ) from None
    except (TypeError, ValueError, RecursionError) as problem:
        raise BadInput(f"the request cannot be written as JSON: {problem}") from problem


class _NoValueError(Exception):
    """A value without a JSON form."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value


def _plain(value: object) -> object:
    """Convert a value to plain JSON values."""
    if isinstance(value, type):
        raise _NoValueError(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        kept_back = getattr(value, "__api_exclude__", None)
        return dump(mode="json", exclude_unset=True, by_alias=True, exclude=kept_back)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable) and not hasattr(value, "read"):  # a file is iterable but not a list of messages
        return list(value)
    raise _NoValueError(value)


def _place(value: object, sought: object) -> str | None:
    """Return the path of a value among plain values.

    None if the value is not there.
    """
    if value is sought:
        return ""
    inner: Iterable[tuple[object, object]] = ()
    if isinstance(value, Mapping):
        inner = ((f".{name}", one) for name, one in value.items())
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        inner = ((f"[{place}]", one) for place, one in enumerate(value))
    for step, one in inner:
        found = _place(one, sought)
        if found is not None:
            return f"{step}{found}"
    return None
