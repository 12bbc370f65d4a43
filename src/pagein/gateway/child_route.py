"""Route the calls of child models to the client's own upstream, with the headers of the client's current request.

Rules of this file
------------------
1. Children are asked only if the user set it (`children`), and never with a subscription's login.
2. The headers, and so the key, are held as long as the client's request is answered, and nowhere else.
"""

from contextlib import AbstractAsyncContextManager
from urllib.parse import quote

from aiohttp import ClientResponse, ClientSession
from multidict import CIMultiDict
from yarl import URL

from pagein.gateway.curation.child_asker import ChildAsker, ChildQuestions
from pagein.gateway.curation.guarded_curator import CuratedRequest
from pagein.gateway.curation.outgoing_request import OutgoingRequest, sendable
from pagein.gateway.http import headers as http_headers
from pagein.gateway.http.credentials import is_subscription
from pagein.gateway.http.headers import Headers
from pagein.gateway.http.proxies import Proxies
from pagein.gateway.settings import GatewaySettings
from pagein.gateway.stream.upstream_models import UpstreamModels
from pagein.providers.wire.formats import format_named


class ChildRoute:
    """Sends calls of children. asker: answers the model's questions; None for a gateway without children."""

    def __init__(
        self, asker: ChildAsker | None, http: ClientSession, settings: GatewaySettings, proxies: Proxies
    ) -> None:
        self._asker = asker if settings.children else None
        self._http = http
        self._settings = settings
        self._proxies = proxies

    def may_ask(self, given: Headers) -> bool:
        """Return whether the model of a request with these headers may ask children."""
        return self._asker is not None and not is_subscription(given)

    def questions(self, outgoing: OutgoingRequest, curated: CuratedRequest, address: str) -> ChildQuestions | None:
        """Return the answering function for questions in an answer; None if questions are not allowed.

        address: of the request at the upstream.
        """
        asker, api = self._asker, outgoing.route.api
        if asker is None or api is None or is_subscription(outgoing.headers):
            return None
        form = format_named(api)
        headers = http_headers.without(
            http_headers.continuation_headers(outgoing.headers), "accept", "content-encoding"
        )

        def send(body: bytes, model: str) -> AbstractAsyncContextManager[ClientResponse]:
            path = form.http.path.format(model=quote(model, safe=""))
            own = address if form.requests.model_field else self._settings.address(form.http.vendor, path)
            url = URL(own, encoded=True)
            return self._http.request(
                "POST",
                url,
                headers=CIMultiDict(headers),
                data=sendable(body),
                allow_redirects=False,
                skip_auto_headers=http_headers.NOT_ADDED,
                proxy=self._proxies.to(url),
            )

        models = UpstreamModels(send, api, curated.model)
        return ChildQuestions(asker.names, lambda call: asker.answer(curated, call, models))
