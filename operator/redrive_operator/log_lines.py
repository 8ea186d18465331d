"""The operator's log: one JSON object a line, on standard output. What kopf says is in it too, in the same form."""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime

LONGEST = 4000  # characters of one message or trace

# Of every request and every watch that ends as it should.
_CHATTY = ("kopf.activities", "kopf.objects", "urllib3", "aiohttp")

# Tells every connection that fails as an error with a trace; ours is told as a sentence, where it matters.
_NOISY = "pika"


class JsonLines(logging.Formatter):
    """Writes a record as one line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record)[:LONGEST],
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["trace"] = "".join(traceback.format_exception(*record.exc_info))[-LONGEST:]
        return json.dumps(line)  # in ASCII: neither a line separator nor half of a surrogate pair can break the log


def configure(level: str) -> None:
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _CHATTY:
        # A logger's own level counts, and not that of the root: it must be no lower than what was asked for.
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[level.upper()]))
    logging.getLogger(_NOISY).setLevel(logging.DEBUG if level == "debug" else logging.CRITICAL)


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # the arguments are not those that the text wants, or cannot say what they are
        return str(record.msg)
