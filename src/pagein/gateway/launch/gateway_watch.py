"""Keep a gateway running while an agent uses the gateway: after a crash, start a new one on the same port."""

import threading
from collections.abc import Callable
from typing import Final

from pagein.gateway.launch.gateway_search import FoundGateway, GatewayPlaces, GatewayWish, is_running, start_again

_LOOK: Final = 0.3
"""Seconds between two looks."""
_ATTEMPTS: Final = (0.0, 0.5, 2.0)


class GatewayWatch:
    """A thread that looks after a gateway until `end`.

    tell: called with a line for the user, at once when the gateway cannot be started again
    """

    def __init__(
        self, gateway: FoundGateway, wish: GatewayWish, places: GatewayPlaces, tell: Callable[[str], None]
    ) -> None:
        self._gateway = gateway
        self._held = [gateway]
        self._wish = wish
        self._places = places
        self._tell = tell
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_after, name="pagein-gateway-watch", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """Release the lease. The gateway ends after the last lease."""
        self._over.set()
        self._refuse()
        for one in self._held:
            one.lease.release()

    def _refuse(self) -> None:
        """Let connections be refused that no gateway will answer."""
        for one in self._held:
            if one.listener is not None:
                one.listener.close()

    def _look_after(self) -> None:
        while not self._over.wait(_LOOK):
            if is_running(self._gateway.address, self._places.folder):
                continue
            again = start_again(self._gateway, self._wish, self._places, _ATTEMPTS)
            if again is not None:
                self._gateway = again
                self._held.append(again)
            elif not is_running(self._gateway.address, self._places.folder):
                self._refuse()
                self._tell(
                    f"the gateway at {self._gateway.address} ended and does not start again ({self._places.log} says why); end the agent, "
                    "and start it without pagein run to go on"
                )
                return
