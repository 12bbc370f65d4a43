"""A request as callers of the library give it: fields of plain values, among them what an SDK gave them, as JSON.

Rules of this file
------------------
1. Callers put a reply's own objects into the next request, as the SDKs let them. They become what the SDK would send of them.
2. Whatever may be iterated is a list there, too. It is taken once; the request that is sent holds the list.
3. What no request can hold is a BadInput that says where it stands.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from pagein.errors import BadInput
from pagein.model.codec import encode_json

Request: TypeAlias = Mapping[str, Any] | bytes
"""A provider's request: its fields, or its body."""

_NOT_SENT: Final = frozenset({"NotGiven", "Omit"})  # what both SDKs take for a field that is not there
_TAKES: Final = "give the fields of the provider's request as a dict, or its body as bytes"


def body_of(request: Request) -> bytes:
    """The body that the SDK would send for this request. Raises BadInput for what cannot be one."""
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
    """There is no JSON for this."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value


def _plain(value: object) -> object:
    """A value as what it is sent as."""
    if isinstance(value, type):
        raise _NoValueError(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        kept_back = getattr(value, "__api_exclude__", None)
        return dump(mode="json", exclude_unset=True, by_alias=True, exclude=kept_back)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable) and not hasattr(value, "read"):  # a file is iterable, and no list of messages
        return list(value)
    raise _NoValueError(value)


def _place(value: object, sought: object) -> str | None:
    """Where something stands among plain values, None where it does not."""
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
