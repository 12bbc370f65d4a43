"""OpenAI Chat Completions over HTTP."""

from typing import Final

from pagein.providers.wire.openai_shared import error_body, has_openai_headers
from pagein.providers.wire.wire_format import Endpoint, HttpForm


def endpoint(path: str) -> Endpoint | None:
    """The meaning of a path; None for a path of others."""
    return Endpoint("chat") if path.removeprefix("/v1") == "/chat/completions" else None


FORM: Final = HttpForm("openai", endpoint, ("/chat/",), has_openai_headers, error_body, "/v1/chat/completions")
