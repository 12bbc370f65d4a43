"""What a launcher does about a gateway that ended and cannot be started again."""

import socket
import time
from pathlib import Path

from pagein.gateway.launch.gateway_search import FoundGateway, GatewayPlaces, GatewayWish
from pagein.gateway.launch.gateway_watch import GatewayWatch
from pagein.gateway.launch.lease import lease_file, take


def test_the_user_is_told_and_connections_are_refused(tmp_path: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    places = GatewayPlaces(tmp_path / "gateways", tmp_path / "token", tmp_path / "run.jsonl")
    lease = take(lease_file(places.folder, port))
    assert lease is not None
    gateway = FoundGateway(f"http://127.0.0.1:{port}", lease, is_started=True, listener=listener)
    wish = GatewayWish(gateway.url, {}, None, str(tmp_path), "", ("--no-such-option",))
    told: list[str] = []
    watch = GatewayWatch(gateway, wish, places, told.append)
    watch.start()
    limit = time.monotonic() + 60
    while not told and time.monotonic() < limit:
        time.sleep(0.05)
    assert "start it without pagein run" in told[0]
    assert "no-such-option" in places.log.read_text()
    with socket.socket() as asking:
        assert asking.connect_ex(("127.0.0.1", port)) != 0
    watch.end()
