"""Doubts about a bill, in plain words: differences in its recordings, and its assumptions."""

from collections.abc import Iterator

from pagein.model.bill import Bill, SessionBill
from pagein.ui.figures import count, plural, share

# Below this share of the calls, a provider's lost cache entries change no printed figure.
_TELLING = 0.05


def doubts(bill: Bill) -> str:
    """Return sentences about differences between recorded and counted calls, lost caches of the provider, and savings of
    other sessions that the figures rest on; "" without any.
    """
    return " ".join((*_miscount_words(bill), *_miss_words(bill), *reserve_words(bill)))


def reserve_words(bill: Bill) -> Iterator[str]:
    """Yield a sentence on the sessions whose figures rest on what earlier sessions of a store have saved."""
    found = sum("reserve" in one["flags"] for one in bill["per_session"])
    if found:
        yield (
            f"pagein's figures for {plural(found, 'session')} assume a store whose earlier sessions have saved enough "
            "by cache lifetimes; pagein replay --without reserve adds a row for a new store."
        )


def _flag(session: SessionBill, name: str) -> int:
    value = session["flags"].get(name)
    return value if isinstance(value, int) else 0


def _calls(session: SessionBill) -> int:
    return max((figures["calls"] for figures in session["policies"].values()), default=0)


def _miscount_words(bill: Bill) -> Iterator[str]:
    """Yield a sentence on the sessions whose own usage lines report other calls or tokens than counted."""
    found = [one for one in bill["per_session"] if _flag(one, "uncounted_calls") or _flag(one, "uncounted_tokens")]
    if not found:
        return
    worst = max(found, key=lambda one: (abs(_flag(one, "uncounted_calls")), abs(_flag(one, "uncounted_tokens"))))
    counted, told = _calls(worst), _calls(worst) + _flag(worst, "uncounted_calls")
    most = (
        f"{plural(told, 'call')} told and {count(counted)} counted"
        if told != counted
        else f"{count(abs(_flag(worst, 'uncounted_tokens')))} prompt tokens apart"
    )
    yield (
        f"The usage lines of {plural(len(found), 'session')} differ from the count here; "
        f"most in {worst['file']}: {most}."
    )


def _miss_words(bill: Bill) -> Iterator[str]:
    """Yield a sentence on the number of calls for which the provider read less than assumed in this bill."""
    missed = sum(_flag(one, "provider_missed") for one in bill["per_session"])
    calls = sum(map(_calls, bill["per_session"]))
    if missed < _TELLING * calls or not missed:
        return
    yield (
        f"In {count(missed)} of {plural(calls, 'call')} ({share(missed, calls)}) the recorded provider read far less from its cache "
        "than it held. Such misses are not repeated at these prices, so append costs less here than was paid."
    )
