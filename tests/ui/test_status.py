from pagein.ui.status import GatewayStatus, SessionStatus, Status, StoreStatus, status_lines

_PASSED = SessionStatus(
    name="", model="", calls=2, epochs=0, recalls=0, cost=0.0, unbilled=0.0, saved=0.0, last=1_795_000_000.0
)
_GATEWAY = GatewayStatus(
    url="http://127.0.0.1:8790", problem="", version="1", since=1_795_000_000.0, mode="curating", sessions=[_PASSED]
)
_STORE = StoreStatus(where="s.pagein", problem="", bytes=None, sessions=0, ended=0, newest=None)


def test_calls_that_belong_to_no_session_are_told_as_such() -> None:
    line = next(
        one for one in status_lines(Status(gateway=_GATEWAY, store=_STORE), 10).splitlines() if "2 calls" in one
    )
    assert line.startswith("  (passed through, of no session)  2 calls, 0 epochs")
