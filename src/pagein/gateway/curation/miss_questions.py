"""Ask the provider why a request missed its cache, where the user allows it (setting `ask_cache_misses`).

Rules of this file
------------------
1. The question is a field of the body. No header changes, because caches depend on headers.
2. A request names the answer to the request before it on its branch, as the journal has it, also of another process.
3. A client that asks itself is left alone. So is an upstream that refused the question once, for good.
"""

import contextlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, TypeAlias

from aiohttp import ClientResponse

from pagein.engine.prepared_request import PreparedRequest
from pagein.gateway.curation.outgoing_request import Body, OutgoingRequest
from pagein.gateway.http.headers import value_of
from pagein.model.json_text import encode_json, object_fields
from pagein.providers.wire.formats import format_named

Send: TypeAlias = Callable[[Body], AbstractAsyncContextManager[ClientResponse]]

REFUSED: Final = (
    "The provider at {} refused to be asked why its cache was missed. The call went out again without the question, and "
    "pagein does not ask there any more. To ask again, remove the file {}."
)
_REFUSED: Final = 400
_NAME: Final = "no-cache-questions"


def default_refusals() -> Path:
    """Return the default path of the file with the upstreams that refused. Creates nothing."""
    # imported here so that `import pagein` stays cheap
    from platformdirs import user_data_path

    return user_data_path("pagein", appauthor=False) / _NAME


class MissQuestions:
    """The questions of a gateway. Used by one event loop.

    file: the upstreams that refused, a line each
    notice: told of a refusal
    is_on: whether the user allows questions
    """

    def __init__(self, file: Path, notice: Callable[[str], object], *, is_on: bool) -> None:
        self._file = file
        self._notice = notice
        self._is_on = is_on
        self._refused = _read_lines(file) if is_on else set()

    @asynccontextmanager
    async def ask(self, outgoing: OutgoingRequest, send: Send, upstream: str) -> AsyncIterator[ClientResponse]:
        """Send a request with the question, if it may have one, and once more without, if the upstream refuses that.

        upstream: where to
        """
        body = self._body_with_question(outgoing, upstream)
        async with AsyncExitStack() as stack:
            answer = await stack.enter_async_context(send(outgoing.data if body is None else body))
            if body is not None and answer.status == _REFUSED:
                # whatever was refused: the client must get the answer to its own request
                answer = await stack.enter_async_context(send(outgoing.data))
                if answer.status != _REFUSED:
                    self._note_refusal(upstream)
            yield answer

    def _body_with_question(self, outgoing: OutgoingRequest, upstream: str) -> bytes | None:
        prepared, body = _prepared(outgoing), outgoing.data
        if not self._is_on or upstream in self._refused or prepared is None or not isinstance(body, bytes):
            return None
        question = format_named(prepared.api).cache.miss_question
        if question is None or value_of(outgoing.headers, "content-encoding"):
            return None
        field, value = question((prepared.before.answer or None) if prepared.before is not None else None)
        if _has_field(body, field):
            return None
        return body.rstrip()[:-1] + b"," + encode_json(field) + b":" + encode_json(value) + b"}"

    def _note_refusal(self, upstream: str) -> None:
        """Ask this upstream no more, in later processes either if the file can be written."""
        self._refused.add(upstream)
        self._notice(REFUSED.format(upstream, self._file))
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(self._file, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600), "a") as opened:
                opened.write(upstream + "\n")


def _prepared(outgoing: OutgoingRequest) -> PreparedRequest | None:
    """Return the engine's request, if it was sent as decided."""
    prepared = None if outgoing.decision is None else outgoing.decision.curated.prepared
    return None if prepared is None or prepared.sent is None else prepared


def _has_field(body: bytes, field: str) -> bool:
    return encode_json(field) in body and field in object_fields(body, "request")


def _read_lines(file: Path) -> set[str]:
    try:
        return set(file.read_text(encoding="utf-8").split())
    except (OSError, ValueError):
        return set()
