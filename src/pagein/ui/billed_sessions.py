"""The sessions of a bill for a person: first words, project, time, and the prices of the bill."""

from collections import Counter
from datetime import UTC, datetime

from pagein.model.bill import Bill, SessionBill
from pagein.ui.columns import cost_ratio
from pagein.ui.figures import ABSENT, count, plural, short

# A difference below one part in two thousand is printed as 0.0 %.
NOISE = 0.0005
_PROJECT = 24
# The number of price tables named.
_PRICES_SHOWN = 4


def name_of(session: SessionBill) -> str:
    """Return a person's name for a session: the user's first words, else the id or the file."""
    return session["title"] or session["id"] or session["file"]


def project_of(session: SessionBill) -> str:
    """Return the last part of a session's folder; without a folder, the source."""
    folder = (session["project"] or "").replace("\\", "/").rstrip("/").rpartition("/")[2]
    return short(folder or session["source"], _PROJECT)


def began_words(session: SessionBill) -> str:
    """Return when a session began, in this machine's time zone: 2026-10-07 14:05."""
    if session["began"] is None:
        return ABSENT
    try:
        return datetime.fromtimestamp(session["began"], UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):
        return ABSENT


def prices_words(bill: Bill) -> str:
    """Return the price tables of a bill, in words."""
    if bill["prices"] != "own":
        return short(bill["prices"])
    names = Counter(one["prices"] for one in bill["per_session"])
    some = ", ".join(f"{name} ({plural(number, 'session')})" for name, number in names.most_common(_PRICES_SHOWN))
    more = f", and {count(len(names) - _PRICES_SHOWN)} more" if len(names) > _PRICES_SHOWN else ""
    unknown = sum("unknown_model" in one["flags"] for one in bill["per_session"])
    note = f"; {plural(unknown, 'session')} of a model without known prices among them" if unknown else ""
    return f"each session by its own model: {some}{more}{note}"


def losers(bill: Bill, policy: str) -> list[SessionBill]:
    """Return the sessions that cost more under a policy than under the baseline, the greatest loss first."""
    base = bill["baseline"]
    both = [one for one in bill["per_session"] if base in one["policies"] and policy in one["policies"]]
    dearer = [one for one in both if (cost_ratio(one["policies"][policy], one["policies"][base]) or 0) > 1 + NOISE]
    return sorted(dearer, key=lambda one: one["policies"][base]["cost"] - one["policies"][policy]["cost"])
