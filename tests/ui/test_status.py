from pagein.ui.status import (
    AbsentCount,
    CostsStatus,
    CostStatus,
    GatewayStatus,
    MissStatus,
    RecallStatus,
    SessionStatus,
    Status,
    StoreStatus,
    status_lines,
    week_line,
)

_PASSED = SessionStatus(
    name="",
    model="",
    calls=2,
    epochs=0,
    recalls=0,
    cost=0.0,
    unbilled=0.0,
    saved=0.0,
    usd=None,
    saved_usd=None,
    last=1_795_000_000.0,
)
_GATEWAY = GatewayStatus(
    url="http://127.0.0.1:8790",
    problem="",
    version="1",
    since=1_795_000_000.0,
    mode="curating",
    storing="",
    memory="",
    sessions=[_PASSED],
)
_STORE = StoreStatus(
    where="s.pagein",
    problem="",
    bytes=None,
    index_bytes=None,
    sessions=0,
    ended=0,
    newest=None,
    leaving=0,
    leaves=None,
)


def test_calls_that_belong_to_no_session_are_told_as_such() -> None:
    line = next(
        one for one in status_lines(Status(gateway=_GATEWAY, store=_STORE), 10).splitlines() if "2 calls" in one
    )
    assert line.startswith("  (passed through, of no session)  2 calls, 0 epochs")


def test_a_gateway_that_stores_nothing_or_falls_behind_is_told() -> None:
    assert not {"storing", "memory"} & {
        line.split()[0] for line in status_lines(Status(gateway=_GATEWAY, store=_STORE), 9).splitlines()
    }
    gateway: GatewayStatus = {**_GATEWAY, "storing": "the disk is full", "memory": "the layer search is late"}
    lines = status_lines(Status(gateway=gateway, store=_STORE), 9).splitlines()
    assert lines[1:3] == ["storing   has stopped: the disk is full", "memory    the layer search is late"]


def test_the_index_of_searches_is_told_apart_from_the_store() -> None:
    store: StoreStatus = {**_STORE, "bytes": 3_200_000, "index_bytes": 900_000}
    assert "s.pagein, 3.2 MB and 0.9 MB of search index, 0 sessions" in status_lines(
        Status(gateway=_GATEWAY, store=store), 0
    )


def test_recalls_stand_below_the_store_only_if_asked_for() -> None:
    told = Status(gateway=_GATEWAY, store=_STORE)
    assert "recalls" not in status_lines(told, 0).splitlines()[-1]
    told["recalls"] = RecallStatus(
        calls=120,
        evicted=AbsentCount(absent=40, recalled=1, drawn=4),
        previewed=AbsentCount(absent=0, recalled=0, drawn=0),
        usd=0.0,
        recalled_usd=0.0,
        drawn_usd=0.0,
    )
    counts = [
        "recalls   in 120 calls; a replay charges as many as its stress model draws",
        "  40 evicted texts: 1 (2 %) recalled by the model, 4 (10 %) drawn",
        "  0 previewed outputs: 0 (-) recalled by the model, 0 (-) drawn",
    ]
    assert status_lines(told, 0).splitlines()[-3:] == counts
    told["recalls"] |= {"usd": 5.0, "recalled_usd": 0.025, "drawn_usd": 0.1}
    assert status_lines(told, 0).splitlines()[-4:] == [
        *counts,
        (
            "  the recalls cost about $0.0250 (0.5 % of $5.00), the drawn ones would cost $0.10 (2.0 %): with recalls as in this store, a "
            "replay's bill would be 1.5 % lower"
        ),
    ]


def test_the_bill_of_today_and_the_week_comes_first_and_names_who_lost_money() -> None:
    today = CostStatus(since=0.0, sessions=0, calls=0, usd=0.0, saved=0.0, unpriced=0, dearer={}, misses=[])
    misses = [
        MissStatus(cause="system", who="client", calls=2, tokens=120_000),
        MissStatus(cause="expired", who="nobody", calls=1, tokens=9_000),
    ]
    lost = {"fix-login": 0.75}
    week = CostStatus(since=0.0, sessions=2, calls=30, usd=4.5, saved=-0.5, unpriced=1, dearer=lost, misses=misses)
    told = Status(gateway=_GATEWAY, store=_STORE, costs=CostsStatus(today=today, week=week, unread=0))
    counted = "$4.50 at list prices for 30 calls in 2 sessions"
    doing = "pagein has cost $0.50 so far, by its own estimate; 1 call without a known price not counted"
    assert status_lines(told, 0).splitlines()[:6] == [
        "today     no calls in this store since midnight",
        f"7 days    {counted}; {doing}",
        "dearer    with pagein than without it: fix-login by $0.75",
        "misses    3 calls of the 7 days read 129,000 tokens less from the cache than was there; by cause:",
        "  system   by the client  2 calls  120,000 tokens",
        "  expired  by nobody      1 call   9,000 tokens",
    ]


def test_the_saving_of_the_last_week_is_one_line_and_an_empty_store_has_none() -> None:
    def told(usd: float, saved: float, calls: int = 30) -> str:
        one = CostStatus(since=0.0, sessions=2, calls=calls, usd=usd, saved=saved, unpriced=0, dearer={}, misses=[])
        return week_line(CostsStatus(today=one, week=one, unread=0))

    before = "last 7 days in this store: $4.50 for 30 calls; with the settings then in force they "
    assert told(4.5, 0.5) == before + "saved $0.50 of $5.00 (10 %), by pagein's own estimate"
    assert told(4.5, -0.5) == before + "have cost $0.50 more than without pagein, by pagein's own estimate"
    assert told(0.0, 0.0, calls=0) == ""


def test_sessions_of_a_gateway_are_told_in_dollars_where_their_model_has_a_price() -> None:
    priced: SessionStatus = {**_PASSED, "name": "fix", "cost": 9e4, "saved": -1e4, "usd": 0.5, "saved_usd": -0.25}
    free: SessionStatus = {**_PASSED, "name": "own", "cost": 9e4, "saved": 1e4}
    gateway: GatewayStatus = {**_GATEWAY, "sessions": [priced, free]}
    told = status_lines(Status(gateway=gateway, store=_STORE), 9)
    assert "$0.50, -$0.25 saved" in told
    assert "90.0k BIT, 10.0k saved" in told
    assert "-$0.25 of $0.25" in told
