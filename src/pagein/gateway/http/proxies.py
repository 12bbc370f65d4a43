"""Proxies from the environment. Unlike the HTTP client's own handling, no login is read from `.netrc`."""

import urllib.request

from yarl import URL


class Proxies:
    """The proxy environment at startup: `HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`."""

    def __init__(self) -> None:
        found = urllib.request.getproxies()
        self._proxies = {scheme: URL(found[scheme]) for scheme in ("http", "https") if found.get(scheme)}

    def to(self, address: URL) -> URL | None:
        """Return the proxy for this address, or None for a direct connection."""
        proxy = self._proxies.get(address.scheme)
        if proxy is None or address.host is None or urllib.request.proxy_bypass(address.host):
            return None
        return proxy
