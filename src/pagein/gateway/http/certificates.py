"""Trusted certificates for upstream connections."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

VARIABLE: Final = "NODE_EXTRA_CA_CERTS"
"""Variable of Claude Code and other Node clients: a file of certificates (PEM) trusted in addition to the machine's own."""


@dataclass(frozen=True, slots=True)
class Trust:
    """Trusted certificates.

    context: verifies upstreams
    problem: why named certificates are not trusted, "" if they are
    """

    context: ssl.SSLContext
    problem: str = ""


def trust(environment: Mapping[str, str]) -> Trust:
    """Return the machine's certificates with the certificates named in the environment.

    As in Node, an unreadable file is reported and left out.
    """
    context = ssl.create_default_context()
    named = environment.get(VARIABLE, "")
    if not named:
        return Trust(context)
    try:
        context.load_verify_locations(named)
    except (OSError, ValueError) as problem:  # ssl.SSLError is an OSError
        why = getattr(problem, "strerror", None) or problem
        return Trust(
            context,
            f"{VARIABLE}: {named} holds no certificates that can be read ({why}); only the machine's own are trusted",
        )
    # Python 3.13 requires every field of the standard from a company's own authority; Node does not.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return Trust(context)
