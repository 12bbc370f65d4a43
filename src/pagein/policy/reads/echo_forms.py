"""The forms of pagein's stubs and markers: what the echo guard looks for. Imports nothing, for callers that must be quick."""

import re
from typing import Final

_ID: Final = r"pg-[0-9a-f]{8}-[0-9a-f]{8}"
_QUOTE: Final = r"\\*[\"'\u2018\u2019\u201c\u201d]"
STUB: Final = re.compile(
    rf"\[(?:pagein|RLM externalized): ({_ID})(?= \|)"  # the first line of a stub, in any dialect
    rf"|Use (?:rlm_)?peek\({_QUOTE}({_ID}){_QUOTE}\) to view"  # its second
)
MARKER: Final = re.compile(r"\[(?:readcache:|Showing|Output truncated\.|End of|This goes on) [^\]\n]*\]")
may_echo: Final = re.compile(f"{STUB.pattern}|{MARKER.pattern}").search
"""Find anything of the form of a stub or marker in a text: a cheap first look."""
