"""A request on its way to the upstream: changed, as it came, or as it came with a copy of it that is measured."""

import io
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from aiohttp import StreamReader

from pagein.gateway.curation.guarded_curator import CuratedRequest, CurationDecision
from pagein.gateway.curation.session_hints import Hint
from pagein.gateway.http.headers import Headers
from pagein.gateway.http.routes import Route

_LONG: Final = 1 << 19


class BodyCopy:
    """Passes a body on piece by piece, and keeps the pieces. is_whole: whether all of it was kept; what is longer than `limit` is not."""

    def __init__(self, content: StreamReader, limit: int) -> None:
        self._content = content
        self._left = limit
        self.parts: list[bytes] = []
        self.is_whole = False

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        async for part in self._content.iter_any():
            self._left -= len(part)
            if self._left >= 0:
                self.parts.append(part)
            else:
                self.parts.clear()
            yield part
        self.is_whole = self._left >= 0


Body: TypeAlias = bytes | StreamReader | BodyCopy | None


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """A request as it will be sent. decision: None where it passes through as it came, for the reason `passed`. copy: what is
    measured of one that does.
    """

    route: Route
    headers: Headers
    data: Body
    hint: Hint | None = None
    decision: CurationDecision | None = None
    passed: str = ""
    at: float = 0.0
    began: float = 0.0
    added: float = 0.0
    copy: BodyCopy | None = None

    @property
    def tools(self) -> CuratedRequest | None:
        """The decision, where it offers tools of ours: their calls are not for the client."""
        return self.decision.curated if self.decision is not None and self.decision.curated.tools else None

    @property
    def warning(self) -> str:
        """What failed of ours, as the client is told it; "" for nothing."""
        return "" if self.decision is None or self.decision.kind is None else self.decision.kind


def sendable(data: Body) -> bytes | io.BytesIO | StreamReader | AsyncIterator[bytes] | None:
    """A body as the HTTP client likes it: long ones as files, of which it sends a piece at a time."""
    if isinstance(data, BodyCopy):
        return data.pieces()
    if isinstance(data, bytes):
        return io.BytesIO(data) if len(data) > _LONG else data or None
    return data
