"""The vendors of the wire formats. This is the one list of them.

A row gives a vendor its setting, its command-line options and its place in the output of commands. The command line
reads this module at its start, so it imports nothing heavy.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor.

    name: the name of its setting, which is the address of its upstream, and of its option.
    title: its name for people.
    address: the vendor's own address.
    formats: its wire formats: each with the option that chooses it for the simulated provider, and its name for people.
    telemetry: its name in OpenTelemetry's conventions.
    client: what a client is told to use an upstream; `{url}` stands for the address of the upstream.
    """

    name: str
    title: str
    address: str
    formats: tuple[tuple[str, str], ...]
    client: str
    telemetry: str


ANTHROPIC: Final = Vendor(
    "anthropic",
    "Anthropic",
    "https://api.anthropic.com",
    (("anthropic", "Anthropic Messages"),),
    "ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY=any",
    "anthropic",
)
OPENAI: Final = Vendor(
    "openai",
    "OpenAI",
    "https://api.openai.com",
    (("openai-chat", "OpenAI Chat Completions"), ("openai-responses", "OpenAI Responses")),
    "base URL {url}/v1, any key",
    "openai",
)
GOOGLE: Final = Vendor(
    "google",
    "Gemini",
    "https://generativelanguage.googleapis.com",
    (("gemini", "Gemini"),),
    "GOOGLE_GEMINI_BASE_URL={url} GEMINI_API_KEY=any",
    "gcp.gemini",
)

VENDORS: Final = (ANTHROPIC, OPENAI, GOOGLE)

FORMATS: Final[Mapping[str, str]] = dict(form for one in VENDORS for form in one.formats)
"""The wire formats of all vendors by option, as in `Vendor.formats`."""
