"""OpenAI Responses over HTTP."""

from typing import Final

from pagein.providers.wire.openai_shared import error_body, has_openai_headers
from pagein.providers.wire.wire_format import Endpoint, HttpForm

_ENDPOINTS: Final = {
    "/responses": Endpoint("responses"),
    "/responses/compact": Endpoint("compact", is_call=False),
}


def endpoint(path: str) -> Endpoint | None:
    """The meaning of a path; None for a path of others."""
    return _ENDPOINTS.get(path.removeprefix("/v1"))


FORM: Final = HttpForm("openai", endpoint, ("/responses",), has_openai_headers, error_body, "/v1/responses")
