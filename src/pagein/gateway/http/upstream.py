"""Upstream requests without added headers, and remedies for unreachable upstreams."""

from typing import Final

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientHttpProxyError,
    ClientProxyConnectionError,
    ClientRequest,
    ClientSSLError,
    ServerDisconnectedError,
)

from pagein.gateway.http.certificates import VARIABLE

_OWN_AUTHORITY: Final = f"if the network has a certificate authority of its own, name its file of certificates (PEM) in {VARIABLE} and start pagein serve again"


class AsSent(ClientRequest):
    """A request without an added content length if the client sent none."""

    GET_METHODS = ClientRequest.GET_METHODS | {"DELETE"}


def remedy(problem: BaseException) -> str:
    """Return advice about an upstream that did not answer."""
    return next((words for kind, words in _REMEDIES if isinstance(problem, kind)), _ELSE)


_REMEDIES: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (ClientConnectorCertificateError, f"its certificate is signed by nobody that is trusted here: {_OWN_AUTHORITY}"),
    (
        ClientHttpProxyError,
        "the proxy that HTTPS_PROXY or HTTP_PROXY names did not let it through; NO_PROXY makes exceptions",
    ),
    (
        ClientProxyConnectionError,
        "the proxy that HTTPS_PROXY or HTTP_PROXY names cannot be reached; NO_PROXY makes exceptions",
    ),
    (ClientSSLError, f"no secure connection could be made: is it https at all? {_OWN_AUTHORITY}"),
    (ClientConnectorDNSError, "its name is not known: check the network, or the address in --anthropic and --openai"),
    (
        ClientConnectorError,
        "nothing takes connections there: check the network, or the address in --anthropic and --openai",
    ),
    (TimeoutError, "it was silent for too long; PAGEIN_SILENCE says for how long it may be"),
    (ServerDisconnectedError, "it ended the connection before it answered; sending the request again may help"),
)
_ELSE: Final = "sending the request again may help; pagein doctor looks at the way there"
