"""Choose the request to send after a failure in pagein (law 7): pure, and never an exception.

Rules of this file
------------------
1. First choice: the last rendering with the client's new messages. Second: the client's request without invalid
   thinking. Third: the client's request as it came, which the agent would have sent without pagein.
2. A candidate is taken if the provider would refuse it for no rule that the client's request obeys.
3. A candidate that raises an error is skipped. The reasons are reported, the original failure first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, TypeAlias, TypeVar

from pagein.model.json_text import decode_json
from pagein.providers.wire import Violation, WireRequest, check_body
from pagein.providers.wire.breakpoint_edits import Wishes, changes
from pagein.providers.wire.spliced_breakpoints import with_marks

Used: TypeAlias = Literal["last", "cleaned", "original"]
T = TypeVar("T")

_MARK_RULES: Final = frozenset({"M14", "M15", "M16", "M17"})
_NO_MARKS_OF_THE_CLIENT: Final = Wishes(client="replaced")


@dataclass(frozen=True, slots=True)
class Fallback:
    """The request to send.

    used: which candidate it is.
    reasons: the failure, and why each better candidate was skipped.
    violations: rules for which the provider may refuse it; the client's own request breaks the same rules.
    """

    request: WireRequest
    used: Used
    reasons: tuple[str, ...]
    violations: tuple[Violation, ...] = ()


def fallback(
    failure: str, original: WireRequest, last: WireRequest | None = None, cleaned: WireRequest | None = None
) -> Fallback:
    """Return the request to send after a failure.

    failure: the reason, for the report.
    original: the client's request.
    last: the last rendering of its branch with the client's new messages; None if unavailable.
    cleaned: the client's request without invalid thinking; None if unavailable.
    """

    def check(request: WireRequest) -> list[Violation]:
        body = request.body()
        return check_body(_values(request), request.api, size=len(body))

    def render() -> WireRequest | None:
        if last is None or not _breaks_marks(check(last)):
            return last
        return with_marks(last, changes(_values(last), last.api, _NO_MARKS_OF_THE_CLIENT))

    candidates: list[tuple[Used, Callable[[], WireRequest | None]]] = [
        ("last", render),
        ("cleaned", lambda: cleaned),
    ]
    reasons = [failure]
    own, problem = _guard_step(partial(check, original))
    if problem:
        reasons.append(f"the original could not be checked: {problem}")
    allowed = {one.rule for one in own or ()}
    for used, build in candidates:
        made, problem = _guard_step(build)
        if made is None:
            if problem:
                reasons.append(f"{_NAMES[used]}: {problem}")
            continue
        broken, problem = _guard_step(partial(check, made))
        worse = sorted({one.rule for one in broken or ()} - allowed)
        if broken is not None and not worse:
            return Fallback(made, used, tuple(reasons), tuple(broken))
        reasons.append(f"{_NAMES[used]}: {problem or 'it would be refused by ' + ', '.join(worse)}")
    return Fallback(original, "original", tuple(reasons), tuple(own or ()))


_NAMES: Final[Mapping[Used, str]] = {
    "last": "the last rendering with the client's news was not sent",
    "cleaned": "the original without stale thinking was not sent",
    "original": "the original",
}


def _guard_step(step: Callable[[], T]) -> tuple[T | None, str]:
    """Run a step. Returns the result, or None with the reason of a failure."""
    try:
        return step(), ""
    except Exception as problem:  # noqa: BLE001 -- law 7: a failure of pagein must not reach the agent
        return None, f"{type(problem).__name__}: {problem}"


def _breaks_marks(violations: list[Violation]) -> bool:
    return not _MARK_RULES.isdisjoint(one.rule for one in violations)


def _values(request: WireRequest) -> Mapping[str, Any]:
    value = decode_json(request.body())
    return value if isinstance(value, dict) else {}
