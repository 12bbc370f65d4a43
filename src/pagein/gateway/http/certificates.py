"""Whose certificates are trusted on the way to an upstream."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

VARIABLE: Final = "NODE_EXTRA_CA_CERTS"
"""As Claude Code and other clients on Node have it: a file of certificates (PEM) that are trusted beside the machine's own."""


@dataclass(frozen=True, slots=True)
class Trust:
    """context: by which upstreams are known. problem: why certificates that were named are not among those trusted, "" where they are."""

    context: ssl.SSLContext
    problem: str = ""


def trust(environment: Mapping[str, str]) -> Trust:
    """The machine's certificates and those that the environment names. As on Node, a file that cannot be read is told of and left out."""
    context = ssl.create_default_context()
    named = environment.get(VARIABLE, "")
    if not named:
        return Trust(context)
    try:
        context.load_verify_locations(named)
    except (OSError, ValueError) as problem:  # errors of TLS are errors of the operating system here
        why = getattr(problem, "strerror", None) or problem
        return Trust(
            context,
            f"{VARIABLE}: {named} holds no certificates that can be read ({why}); only the machine's own are trusted",
        )
    # Node does not ask a company's own authority for every field of the standard, as Python 3.13 does.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return Trust(context)
