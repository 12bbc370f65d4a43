"""HTTP clients of SDKs whose model calls go through the engine: a client around the SDK's own.

The SDKs use `httpx`, or its successor `httpx2`, which has the same interface. Which one is told by the client that is given, so
pagein depends on neither.
"""

import sys
import weakref
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Self, TypeAlias, TypeVar

from pagein.adapters.curated_call import (
    AnswerStart,
    CuratedCall,
    NextPiece,
    Run,
    Send,
    Show,
    Step,
    Unfinished,
    WholeAnswer,
)
from pagein.adapters.model_calls import ModelCalls, names_of_ours, sent_headers
from pagein.errors import BadInput

T = TypeVar("T")
Library: TypeAlias = Any
"""`httpx2` or `httpx`."""
Client: TypeAlias = Any
Request: TypeAlias = Any
Response: TypeAlias = Any
"""The library's own classes of these names, or their counterparts for coroutines."""
Stream: TypeAlias = Any

LIBRARIES: Final = ("httpx2", "httpx")
_OK: Final = 200
_OF_THE_BODY: Final = ("content-length", "content-encoding", "transfer-encoding")


def client_around(inner: Client, calls: ModelCalls) -> Client:
    """Return an HTTP client that sends model calls as the engine decides them, by way of `inner`.

    `calls` is closed with the client, or when nobody uses it any more, or at the program's end.

    Raises BadInput if `inner` is no client of httpx or httpx2.
    """
    library = library_of(inner)
    is_async = isinstance(inner, library.AsyncClient)
    transport = (_AsyncTransport if is_async else _Transport)(library, inner, calls)
    weakref.finalize(transport, calls.close)
    made: Client = (library.AsyncClient if is_async else library.Client)(
        transport=transport,
        auth=inner.auth,
        timeout=inner.timeout,
        base_url=inner.base_url,
        params=inner.params,
        follow_redirects=inner.follow_redirects,
        max_redirects=inner.max_redirects,
    )
    made.headers = inner.headers  # given to the constructor, they would be merged with the defaults
    made.cookies = inner.cookies
    return made


def library_of(client: object) -> Library:
    """Return the HTTP library of a client. Raises BadInput for another object."""
    for name in LIBRARIES:
        library: Library = sys.modules.get(name)
        if library is not None and isinstance(client, (library.Client, library.AsyncClient)):
            return library
    raise BadInput(f"an HTTP client is one of httpx or httpx2, not {type(client).__name__}")


class _Transport:
    """Sends requests by a client, model calls as the engine decides them."""

    def __init__(self, library: Library, inner: Client, calls: ModelCalls) -> None:
        self._library = library
        self._inner = inner
        self._calls = calls
        self._signs = _signs(inner)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._inner.close()
        self._calls.close()

    def handle_request(self, request: Request) -> Response:
        """Return the response to a request, as a transport does."""
        url, headers = str(request.url), request.headers.multi_items()
        if self._signs or not self._calls.is_one(request.method, url, headers):
            return self._send(_without_ours(request))
        call = self._calls.begin(request.method, url, headers, request.read())
        upstream = self._send(_request(self._library, request, call.body, again=False))
        answered = _answered(upstream)
        if answered.status != _OK:
            call.finish()
            return upstream
        answer = _Answer(self._library, self._send, request, upstream, call)
        if answered.is_stream:
            return _response(self._library, upstream, _sync_stream(self._library, answer))
        with _named_errors(self._library, request):
            whole = answer.whole(answered)
        return _whole_response(self._library, upstream, answer.upstream, whole)

    def _send(self, request: Request) -> Response:
        # logins and redirects are the outer client's: so a login never reaches the host of a redirect
        return self._inner.send(request, stream=True, auth=None, follow_redirects=False)


class _Answer:
    """The steps of an answer, made one after the other."""

    def __init__(
        self, library: Library, send: Callable[[Request], Any], request: Request, upstream: Response, call: CuratedCall
    ) -> None:
        self._library = library
        self._send = send  # of the transport, which therefore lives as long as its answers
        self._request = request
        self._call = call
        self.upstream = upstream
        self._pieces: Iterator[bytes] = upstream.iter_bytes()

    def stream(self) -> Iterator[bytes]:
        """Yield what the program gets of a stream."""
        yield from self._shown(self._call.stream())

    def whole(self, answered: AnswerStart) -> WholeAnswer:
        """Return an answer that is no stream."""
        steps = self._call.whole(answered)
        made: list[WholeAnswer] = []

        def ending() -> Generator[Step, Any, None]:
            made.append((yield from steps))

        try:
            for _ in self._shown(ending()):
                pass
        finally:
            self.close()
        return made[0]

    def close(self) -> None:
        """End the answer, wherever it is."""
        try:
            self.upstream.close()
        finally:
            self._call.finish()

    def _shown(self, steps: Generator[Step, Any, None]) -> Iterator[bytes]:
        given: Any = None
        failed: Exception | None = None
        while True:
            try:
                step = steps.send(given) if failed is None else steps.throw(failed)
            except StopIteration:
                return
            given, failed = None, None
            if isinstance(step, Show):
                yield step.data
                continue
            try:
                given = self._made(step)
            except Exception as problem:  # noqa: BLE001 -- the steps decide what a broken answer means
                failed = problem

    def _made(self, step: NextPiece | Run | Send) -> object:
        if isinstance(step, Run):
            return step.work()
        if isinstance(step, NextPiece):
            return next(self._pieces, b"")
        self.upstream.close()
        again = _request(self._library, self._request, step.body, again=True)
        self.upstream = self._send(again)
        self._pieces = self.upstream.iter_bytes()
        return _answered(self.upstream)


class _AsyncTransport:
    """As `_Transport`, for coroutines: the engine works in threads."""

    def __init__(self, library: Library, inner: Client, calls: ModelCalls) -> None:
        self._library = library
        self._inner = inner
        self._calls = calls
        self._signs = _signs(inner)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._inner.aclose()
        await _in_thread(self._calls.close)

    async def handle_async_request(self, request: Request) -> Response:
        """Return the response to a request, as a transport does."""
        url, headers = str(request.url), request.headers.multi_items()
        if self._signs or not self._calls.is_one(request.method, url, headers):
            return await self._send(_without_ours(request))
        body = await request.aread()
        call = await _in_thread(lambda: self._calls.begin(request.method, url, headers, body))
        upstream = await self._send(_request(self._library, request, call.body, again=False))
        answered = _answered(upstream)
        if answered.status != _OK:
            await _in_thread(call.finish)
            return upstream
        answer = _AsyncAnswer(self._library, self._send, request, upstream, call)
        if answered.is_stream:
            return _response(self._library, upstream, _async_stream(self._library, answer))
        with _named_errors(self._library, request):
            whole = await answer.whole(answered)
        return _whole_response(self._library, upstream, answer.upstream, whole)

    async def _send(self, request: Request) -> Response:
        return await self._inner.send(request, stream=True, auth=None, follow_redirects=False)


class _AsyncAnswer:
    """As `_Answer`, for coroutines."""

    def __init__(
        self, library: Library, send: Callable[[Request], Any], request: Request, upstream: Response, call: CuratedCall
    ) -> None:
        self._library = library
        self._send = send  # of the transport, which therefore lives as long as its answers
        self._request = request
        self._call = call
        self.upstream = upstream
        self._pieces: AsyncIterator[bytes] = upstream.aiter_bytes()

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield what the program gets of a stream."""
        async for piece in self._shown(self._call.stream()):
            yield piece

    async def whole(self, answered: AnswerStart) -> WholeAnswer:
        """Return an answer that is no stream."""
        steps = self._call.whole(answered)
        made: list[WholeAnswer] = []

        def ending() -> Generator[Step, Any, None]:
            made.append((yield from steps))

        try:
            async for _ in self._shown(ending()):
                pass
        finally:
            await self.close()
        return made[0]

    async def close(self) -> None:
        """End the answer, wherever it is. A cancelled program does not keep the engine from being told."""
        import anyio  # the HTTP libraries need it themselves

        with anyio.CancelScope(shield=True):
            try:
                await self.upstream.aclose()
            finally:
                await _in_thread(self._call.finish)

    async def _shown(self, steps: Generator[Step, Any, None]) -> AsyncIterator[bytes]:
        given: Any = None
        failed: Exception | None = None
        while True:
            try:
                step = steps.send(given) if failed is None else steps.throw(failed)
            except StopIteration:
                return
            given, failed = None, None
            if isinstance(step, Show):
                yield step.data
                continue
            try:
                given = await self._made(step)
            except Exception as problem:  # noqa: BLE001 -- the steps decide what a broken answer means
                failed = problem

    async def _made(self, step: NextPiece | Run | Send) -> object:
        if isinstance(step, Run):
            return await _in_thread(step.work)
        if isinstance(step, NextPiece):
            return await anext(self._pieces, b"")
        await self.upstream.aclose()
        again = _request(self._library, self._request, step.body, again=True)
        self.upstream = await self._send(again)
        self._pieces = self.upstream.aiter_bytes()
        return _answered(self.upstream)


def _signs(inner: Client) -> bool:
    """Return whether a client's login reads the body: it is then a signature of the body, which must not change behind it."""
    return bool(getattr(inner.auth, "requires_request_body", False))


async def _in_thread(work: Callable[[], T]) -> T:
    import anyio.to_thread

    # a limit of its own: the common one may be used up by the program's own threads
    return await anyio.to_thread.run_sync(work, limiter=anyio.CapacityLimiter(1))


@contextmanager
def _named_errors(library: Library, request: Request) -> Iterator[None]:
    """Raise the library's error for an answer that never ended, so that an SDK treats it as one that broke off."""
    try:
        yield
    except Unfinished as problem:
        raise library.RemoteProtocolError(str(problem), request=request) from problem


def _without_ours(request: Request) -> Request:
    for name in names_of_ours(request.headers.multi_items()):
        request.headers.pop(name, None)
    return request


def _request(library: Library, request: Request, body: bytes, *, again: bool) -> Request:
    headers = sent_headers(request.headers.multi_items(), again=again)
    return library.Request(request.method, request.url, headers=headers, content=body, extensions=request.extensions)


def _answered(upstream: Response) -> AnswerStart:
    return AnswerStart(upstream.status_code, upstream.headers.get("content-type", ""))


def _headers(upstream: Response) -> list[tuple[str, str]]:
    return [(name, value) for name, value in upstream.headers.multi_items() if name.lower() not in _OF_THE_BODY]


def _response(library: Library, upstream: Response, stream: Stream) -> Response:
    extensions: Mapping[str, Any] = upstream.extensions
    return library.Response(upstream.status_code, headers=_headers(upstream), stream=stream, extensions=extensions)


def _whole_response(library: Library, first: Response, last: Response, whole: WholeAnswer) -> Response:
    told = last if whole.is_later else first
    headers = [*_headers(told), ("Content-Length", str(len(whole.body)))]
    # a stream, because the client closes one, and so measures the time of the call
    stream = library.ByteStream(whole.body)
    return library.Response(told.status_code, headers=headers, stream=stream, extensions=dict(told.extensions))


def _sync_stream(library: Library, answer: _Answer) -> Stream:
    """Return a stream of the library's class, which exists at run time only."""
    methods = {"__iter__": lambda _: answer.stream(), "close": lambda _: answer.close()}
    return type("AnswerStream", (library.SyncByteStream,), methods)()


def _async_stream(library: Library, answer: _AsyncAnswer) -> Stream:
    """As `_sync_stream`, for coroutines."""
    methods = {"__aiter__": lambda _: answer.stream(), "aclose": lambda _: answer.close()}
    return type("AnswerStream", (library.AsyncByteStream,), methods)()
