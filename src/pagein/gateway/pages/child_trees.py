"""The call trees of delegated questions on the page: running and ended operations, and the order to cancel.

An operation is shown with its calls as a tree: the call of a child's own question stands below the child that asked it.
"""

from collections.abc import Iterator
from typing import Final, TypedDict

from aiohttp import web

from pagein.delegation.call_tree import CallNode, CallTree, OperationView
from pagein.gateway.http.access import Handler
from pagein.gateway.pages.dashboard import answer_json, order_in

_LONGEST_ORDER: Final = 1_000
_CALLS: Final = 40
"""Calls of an operation that are shown: the running ones first, then the newest."""
_TARGETS: Final = 3
_LONGEST_QUESTION: Final = 300


class ChildCallView(TypedDict):
    """A call of a child.

    level: 0 for the first children, 1 for a child that one of them asked. more: targets that are not named.
    seconds: duration; None while it runs. usd: None for a model without a price.
    """

    call: str
    level: int
    targets: list[str]
    more: int
    model: str
    status: str
    doing: str
    seconds: float | None
    usd: float | None
    tokens: int


class OperationTree(TypedDict):
    """An operation with its calls.

    running: whether it still runs. estimated, actual: cost in words. hidden: calls that are not shown.
    """

    id: str
    kind: str
    question: str
    running: bool
    total: int
    done: int
    failed: int
    estimated: str
    actual: str
    calls: list[ChildCallView]
    hidden: int


def trees(tree: CallTree) -> Handler:
    """Return the handler for the call trees: running operations, oldest first, then ended operations, newest first."""

    async def answer(_: web.Request) -> web.Response:
        running = [_tree(one, running=True) for one in tree.operations()]
        ended = [_tree(one, running=False) for one in reversed(tree.ended())]
        return answer_json({"operations": [*running, *ended]})

    return answer


def cancel(tree: CallTree) -> Handler:
    """Return the handler that cancels an operation, `{"operation": ID}`. Without an id, every operation is cancelled."""

    async def answer(request: web.Request) -> web.Response:
        asked = await order_in(request, _LONGEST_ORDER)
        if not isinstance(asked, dict):
            return asked
        name = asked.get("operation")
        count = tree.cancel_all() if name is None else int(tree.cancel(str(name)))
        return answer_json({"cancelled": count})

    return answer


def _tree(one: OperationView, *, running: bool) -> OperationTree:
    chosen = _chosen(one.calls)
    ordered = list(_ordered(one, None, 0, chosen))
    return OperationTree(
        id=one.operation_id,
        kind=one.kind,
        question=one.question[:_LONGEST_QUESTION],
        running=running,
        total=one.total,
        done=one.done,
        failed=one.failed,
        estimated=one.estimated.says,
        actual=one.actual.says,
        calls=ordered,
        hidden=len(one.calls) - len(ordered),
    )


def _chosen(calls: tuple[CallNode, ...]) -> set[str]:
    """Return the ids of the shown calls and of their parents."""
    newest = sorted(calls, key=lambda call: (call.status == "running", call.began))[-_CALLS:]
    above = {call.call_id: call.parent for call in calls}
    found = {call.call_id for call in newest}
    return found | {parent for one in found if (parent := above.get(one)) is not None}


def _ordered(one: OperationView, parent: str | None, level: int, chosen: set[str]) -> Iterator[ChildCallView]:
    below = sorted(one.below(parent), key=lambda call: (call.status != "running", -call.began))
    for call in below:
        if call.call_id not in chosen:
            continue
        yield ChildCallView(
            call=call.call_id,
            level=level,
            targets=list(call.targets[:_TARGETS]),
            more=max(0, len(call.targets) - _TARGETS),
            model=call.model,
            status=call.status,
            doing=call.doing,
            seconds=call.seconds,
            usd=call.cost.usd,
            tokens=call.cost.tokens,
        )
        yield from _ordered(one, call.call_id, level + 1, chosen)
