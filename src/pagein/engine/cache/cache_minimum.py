"""Compare a prompt with the smallest one that the provider's cache stores, where storing costs more than sending.

A prompt below that minimum is paid at the plain price. If pagein's tools lift it over the minimum, it is written to the
cache, at up to twice the price, which the client's own prompt is not (law 5).
"""

import re
from collections.abc import Iterable
from typing import Final

from pagein.engine.cache.cache_inputs import RequestTrail
from pagein.engine.intake.message_chain import Transcript
from pagein.providers.prices.price_lookup import newest_prices
from pagein.providers.wire.formats import SYSTEM_FIELDS
from pagein.providers.wire.request_body import Envelope

_USUAL: Final = 2.85
"""Bytes of a token in the prompts of Claude models, as recorded."""
_MOST: Final = 4.0
"""Bytes of a token at most, in a first prompt as a whole: English prose has about 4, code and JSON fewer."""
_MARGIN: Final = 1.15
"""How many more bytes a token of the news may have than a token of the prompt before it."""
_WRAPPER: Final = 100
"""Bytes of a message at most for its role and a breakpoint, which are hardly a token."""
_ENCODED: Final = re.compile(rb'"(?:base64|signature|encrypted_content)"|"data:')


def is_below(model: str, trail: RequestTrail) -> bool:
    """Return whether the last request of a branch was too small to be cached, by the provider's count."""
    paid = newest_prices(model) if model else None
    if paid is None or trail.is_open or trail.answered is None:
        return False
    usage = trail.answered.usage
    return usage.read + usage.written == 0 < usage.prompt < paid.cache.min_prefix


def is_surely_stored(envelope: Envelope, script: Transcript, trail: RequestTrail, known: int, model: str) -> bool:
    """Return whether the cache can store the client's prompt, or storing it costs no more than sending it.

    The provider's count of the last request is exact; the bytes since then are counted low.

    trail: the requests before on the branch. known: number of messages that the last request had.
    """
    paid = newest_prices(model) if model else None
    if paid is None or paid.write_5m <= 1.0:
        return True
    behind = script.units[known].first if known < len(script.units) else len(script.raws)
    front = (bytes(envelope.fields[name]) for name in ("tools", *SYSTEM_FIELDS) if name in envelope.fields)
    before, told = _size((*front, *script.raws[:behind])), 0
    if known and trail.answered is not None and not trail.is_open:
        told = trail.answered.usage.prompt
    news = _size(script.raws[behind:], _WRAPPER)
    tokens = told + news / max(_USUAL, _MARGIN * before / told) if told else (before + news) / _MOST
    return tokens >= paid.cache.min_prefix


def _size(raws: Iterable[bytes], wrapper: int = 0) -> int:
    """Return the bytes of parts of a prompt without those with an image or sealed text, whose bytes tell no tokens.

    wrapper: bytes of each part to leave out.
    """
    return sum(max(0, len(raw) - wrapper) for raw in raws if not _ENCODED.search(raw))
