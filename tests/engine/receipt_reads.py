"""A read of a file, as a host would answer it, for a model that proves by receipts what it sees."""

from collections.abc import Callable, Iterable, Mapping

from pagein.engine.log.standing_receipts import StandingReceipt
from pagein.engine.receipts import ReceiptedRead, ReceiptedReads


def read(
    reads: ReceiptedReads,
    path: str,
    *,
    offset: int | None = None,
    limit: int | None = None,
    known: Iterable[str] = (),
    bypass: bool = False,
    standing: Callable[[], Mapping[str, StandingReceipt]] | None = None,
) -> ReceiptedRead:
    session = reads._session
    return reads.answer(
        lambda bypass: session.read(path, offset, limit, bypass_cache=bypass),
        about=path,
        known=known,
        bypass=bypass,
        standing=standing,
    )
