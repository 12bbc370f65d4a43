"""The bill of the recorded session: usage computed from the text, never invented.

Assumptions, all stated in the header of the session:
- a token is 2.85 characters of text or of tool arguments as JSON (measured on Claude 4.x recordings);
- system prompt and tool schemas, which sessions do not record, are a floor of 18 000 tokens;
- the host appends only, marks the end of each request, and uses the five-minute lifetime: a request that starts
  within five minutes of the one before reads everything that one sent and writes the rest; a later one writes all.
"""

from dataclasses import dataclass

CHARACTERS_PER_TOKEN = 2.85
FLOOR_TOKENS = 18_000
LIFETIME_SECONDS = 300.0
_UNMARKED = 3  # tokens behind the last mark, as real recordings show them


@dataclass(slots=True)
class Ledger:
    """Follows one session. `add` whatever enters the context, `bill` each model call."""

    characters: int = 0
    previous_prompt: int = 0
    previous_start: float | None = None

    def add(self, *texts: str) -> None:
        """These texts are in the context from the next request on."""
        self.characters += sum(map(len, texts))

    def bill(self, start: float, output_characters: int) -> dict[str, int]:
        """Usage of the request that starts at `start` (seconds) and is answered with so many characters."""
        prompt = FLOOR_TOKENS + round(self.characters / CHARACTERS_PER_TOKEN)
        warm = self.previous_start is not None and start - self.previous_start < LIFETIME_SECONDS
        read = self.previous_prompt if warm else 0
        written = prompt - read - _UNMARKED
        self.previous_start, self.previous_prompt = start, prompt - _UNMARKED
        return {
            "input": _UNMARKED,
            "output": max(1, round(output_characters / CHARACTERS_PER_TOKEN)),
            "cache_read": read,
            "cache_write": written,
            "cache_write_5m": written,
            "cache_write_1h": 0,
        }
