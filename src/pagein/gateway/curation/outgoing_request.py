"""A request on its way to the upstream: changed, unchanged, or unchanged with a copy for measuring."""

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
    """Forwards a body in pieces, and keeps a copy.

    is_whole: whether the copy is complete; a body longer than `limit` is not copied
    """

    def __init__(self, content: StreamReader, limit: int) -> None:
        self._content = content
        self._left = limit
        self.parts: list[bytes] = []
        self.is_whole = False

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives."""
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
    """A request to be sent.

    decision: None for passthrough, with the reason in `passed`
    copy: copy of a passthrough body for measuring
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
        """Return the decision if it offered recall tools: their calls must stay hidden from the client."""
        return self.decision.curated if self.decision is not None and self.decision.curated.tools else None

    @property
    def warning(self) -> str:
        """Return the failure kind for the client's warning header; "" for none."""
        return "" if self.decision is None or self.decision.kind is None else self.decision.kind


def sendable(data: Body) -> bytes | io.BytesIO | StreamReader | AsyncIterator[bytes] | None:
    """Return a body in a form suited to the HTTP client: long bodies as files, sent in pieces."""
    if isinstance(data, BodyCopy):
        return data.pieces()
    if isinstance(data, bytes):
        return io.BytesIO(data) if len(data) > _LONG else data or None
    return data
