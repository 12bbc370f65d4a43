"""The proxies that the environment asks for. Unlike the HTTP client's own reading of it, no login is taken from `.netrc`."""

import urllib.request

from yarl import URL


class Proxies:
    """As the environment was at the start: `HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`."""

    def __init__(self) -> None:
        found = urllib.request.getproxies()
        self._proxies = {scheme: URL(found[scheme]) for scheme in ("http", "https") if found.get(scheme)}

    def to(self, address: URL) -> URL | None:
        """The proxy for this address, None for none."""
        proxy = self._proxies.get(address.scheme)
        if proxy is None or address.host is None or urllib.request.proxy_bypass(address.host):
            return None
        return proxy
