"""HTTP clients of SDKs whose model calls go through the engine: a client around the SDK's own.

The SDKs use `httpx`, or its successor `httpx2`, which has the same interface. The given client shows which library is in use,
so pagein depends on neither.
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
    UnfinishedAnswer,
    WholeAnswer,
)
from pagein.adapters.model_calls import SdkModelCalls, names_of_ours, sent_headers
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


def client_around(inner: Client, calls: SdkModelCalls) -> Client:
    """Return an HTTP client for model calls by way of the engine; it sends through `inner`.

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


class _Sender:
    """The common part of the transports: the sending client, and the engine's calls."""

    def __init__(self, library: Library, inner: Client, calls: SdkModelCalls) -> None:
        self._library = library
        self._inner = inner
        self._calls = calls
        # a login that reads the body makes a signature of it, and the body must not change behind it
        self._signs = bool(getattr(inner.auth, "requires_request_body", False))

    def _is_model_call(self, request: Request) -> bool:
        return not self._signs and self._calls.is_one(*_said_by(request))

    def _send(self, request: Request) -> Any:  # noqa: ANN401 -- a response, or one to wait for
        # logins and redirects are the outer client's: so a login never reaches the host of a redirect
        return self._inner.send(request, stream=True, auth=None, follow_redirects=False)

    def _curated(self, request: Request, call: CuratedCall) -> Request:
        return _request(self._library, request, call.body, again=False)


class _Transport(_Sender):
    """Sends requests by a client, model calls as the engine decides them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._inner.close()
        self._calls.close()

    def handle_request(self, request: Request) -> Response:
        """Return the response to a request, as a transport does."""
        if not self._is_model_call(request):
            return self._send(_without_ours(request))
        call = self._calls.begin(*_said_by(request), request.read())
        upstream = self._send(self._curated(request, call))
        answered = _answered(upstream)
        if answered.status != _OK:
            call.finish()
            return upstream
        answer = _SyncAnswer(self._library, self._send, request, upstream, call)
        if answered.is_stream:
            return _response(self._library, upstream, _sync_stream(self._library, answer))
        with _named_errors(self._library, request):
            whole = answer.whole(answered)
        return _whole_response(self._library, upstream, answer.upstream, whole)


class _Steps:
    """The steps of an answer, and the outcome of the last step."""

    def __init__(self, steps: Generator[Step, Any, WholeAnswer | None]) -> None:
        self._steps = steps
        self._given: object = None
        self._failed: Exception | None = None
        self._answer: WholeAnswer | None = None

    def next(self) -> Step | None:
        """Return the next step; None at the end."""
        given, failed, self._given, self._failed = self._given, self._failed, None, None
        try:
            return self._steps.send(given) if failed is None else self._steps.throw(failed)
        except StopIteration as end:
            self._answer = end.value
            return None

    def take(self, outcome: object) -> None:
        """Take what came of the step."""
        self._given = outcome

    def fail(self, problem: Exception) -> None:
        """Let the steps decide what a failed step means."""
        self._failed = problem

    def answer(self) -> WholeAnswer:
        """Return the answer that is no stream. Raises Unfinished before the last step."""
        if self._answer is None:
            raise UnfinishedAnswer("the steps of the answer did not end")
        return self._answer


class _AnswerParts:
    """What the answers share.

    upstream: the response that is read.
    """

    def __init__(
        self, library: Library, send: Callable[[Request], Any], request: Request, upstream: Response, call: CuratedCall
    ) -> None:
        self._library = library
        self._send = send  # of the transport, which therefore lives as long as its answers
        self._request = request
        self._call = call
        self._pieces: Any = None
        self._read(upstream)

    def _read(self, upstream: Response) -> AnswerStart:
        """Read from this response from now on."""
        self.upstream = upstream
        self._pieces = self._bytes_of(upstream)
        return _answered(upstream)

    def _bytes_of(self, upstream: Response) -> Any:  # noqa: ANN401 -- an iterator, or one for coroutines
        return upstream.iter_bytes()

    def _again(self, step: Send) -> Request:
        return _request(self._library, self._request, step.body, again=True)


class _SyncAnswer(_AnswerParts):
    """The steps of an answer, in order."""

    def stream(self) -> Iterator[bytes]:
        """Yield what the program gets of a stream."""
        yield from self._shown(_Steps(self._call.stream()))

    def whole(self, answered: AnswerStart) -> WholeAnswer:
        """Return an answer that is no stream."""
        steps = _Steps(self._call.whole(answered))
        try:
            for _ in self._shown(steps):
                pass
        finally:
            self.close()
        return steps.answer()

    def close(self) -> None:
        """End the answer, wherever it is."""
        try:
            self.upstream.close()
        finally:
            self._call.finish()

    def _shown(self, steps: _Steps) -> Iterator[bytes]:
        while (step := steps.next()) is not None:
            if isinstance(step, Show):
                yield step.data
                continue
            try:
                steps.take(self._made(step))
            except Exception as problem:  # noqa: BLE001 -- the steps decide what a broken answer means
                steps.fail(problem)

    def _made(self, step: NextPiece | Run | Send) -> object:
        if isinstance(step, Run):
            return step.work()
        if isinstance(step, NextPiece):
            return next(self._pieces, b"")
        self.upstream.close()
        return self._read(self._send(self._again(step)))


class _AsyncTransport(_Sender):
    """As `_Transport`, for coroutines: the engine works in threads."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._inner.aclose()
        await _in_thread(self._calls.close)

    async def handle_async_request(self, request: Request) -> Response:
        """Return the response to a request, as a transport does."""
        if not self._is_model_call(request):
            return await self._send(_without_ours(request))
        said, body = _said_by(request), await request.aread()
        call = await _in_thread(lambda: self._calls.begin(*said, body))
        upstream = await self._send(self._curated(request, call))
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


class _AsyncAnswer(_AnswerParts):
    """As `_SyncAnswer`, for coroutines."""

    def _bytes_of(self, upstream: Response) -> Any:  # noqa: ANN401 -- as above
        return upstream.aiter_bytes()

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield what the program gets of a stream."""
        async for piece in self._shown(_Steps(self._call.stream())):
            yield piece

    async def whole(self, answered: AnswerStart) -> WholeAnswer:
        """Return an answer that is no stream."""
        steps = _Steps(self._call.whole(answered))
        try:
            async for _ in self._shown(steps):
                pass
        finally:
            await self.close()
        return steps.answer()

    async def close(self) -> None:
        """End the answer, wherever it is. A cancelled program does not keep the engine from being told."""
        import anyio  # the HTTP libraries need it themselves

        with anyio.CancelScope(shield=True):
            try:
                await self.upstream.aclose()
            finally:
                await _in_thread(self._call.finish)

    async def _shown(self, steps: _Steps) -> AsyncIterator[bytes]:
        while (step := steps.next()) is not None:
            if isinstance(step, Show):
                yield step.data
                continue
            try:
                steps.take(await self._made(step))
            except Exception as problem:  # noqa: BLE001 -- the steps decide what a broken answer means
                steps.fail(problem)

    async def _made(self, step: NextPiece | Run | Send) -> object:
        if isinstance(step, Run):
            return await _in_thread(step.work)
        if isinstance(step, NextPiece):
            return await anext(self._pieces, b"")
        await self.upstream.aclose()
        return self._read(await self._send(self._again(step)))


def _said_by(request: Request) -> tuple[str, str, list[tuple[str, str]]]:
    """Return the method, the address and the headers of a request."""
    return request.method, str(request.url), request.headers.multi_items()


async def _in_thread(work: Callable[[], T]) -> T:
    import anyio.to_thread

    # a limit of its own: the common one may be used up by the program's own threads
    return await anyio.to_thread.run_sync(work, limiter=anyio.CapacityLimiter(1))


@contextmanager
def _named_errors(library: Library, request: Request) -> Iterator[None]:
    """Raise the library's error for an answer without an end, so that an SDK sees a broken connection."""
    try:
        yield
    except UnfinishedAnswer as problem:
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


def _sync_stream(library: Library, answer: _SyncAnswer) -> Stream:
    """Return a stream of the library's class, which exists at run time only."""
    methods = {"__iter__": lambda _: answer.stream(), "close": lambda _: answer.close()}
    return type("AnswerStream", (library.SyncByteStream,), methods)()


def _async_stream(library: Library, answer: _AsyncAnswer) -> Stream:
    """As `_sync_stream`, for coroutines."""
    methods = {"__aiter__": lambda _: answer.stream(), "aclose": lambda _: answer.close()}
    return type("AnswerStream", (library.AsyncByteStream,), methods)()
