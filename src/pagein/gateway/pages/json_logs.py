"""Logs as JSON lines, without any body, header value or query."""

import json
import logging
import traceback
from typing import Final, TextIO

LOGGER: Final = "pagein.gateway"
_LONGEST: Final = 500


class JsonLines(logging.Formatter):
    """Formats a log record as a JSON object per line: `at`, `level`, `event`, and the given fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line for this record."""
        line: dict[str, object] = {
            "at": round(record.created, 3),
            "level": record.levelname.lower(),
            "event": record.getMessage()[:_LONGEST] if record.name == LOGGER else "http",
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            line.update(fields)
        if record.exc_info is not None and record.exc_info[0] is not None:
            # the message of a foreign exception may quote its input
            line["exception"] = record.exc_info[0].__name__
            frames = traceback.extract_tb(record.exc_info[2])
            line["where"] = f"{frames[-1].name}:{frames[-1].lineno}" if frames else ""
        return json.dumps(line, separators=(",", ":"), default=str)


def logger_to(stream: TextIO, level: int = logging.INFO) -> logging.Logger:
    """Return the gateway's logger, writing to this stream from now on."""
    made = logging.getLogger(LOGGER)
    made.propagate = False
    made.setLevel(level)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    made.handlers[:] = [handler]
    return made


def tell(logger: logging.Logger, event: str, level: int = logging.INFO, **fields: object) -> None:
    """Log an event with its fields."""
    if logger.isEnabledFor(level):
        logger.log(level, event, extra={"fields": fields})
