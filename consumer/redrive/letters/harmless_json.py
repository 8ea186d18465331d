"""JSON that steers no terminal, whatever strangers wrote: pure, and read back as the same.

JSON escapes only the control characters below a space. Those above, by which some terminals can be told to do things,
and those that turn the direction of a text, are written as escapes here too. They stand in texts only.
"""

import json
import re
from typing import Any

# Control characters above ASCII's, and those that turn the direction of what follows; for a class of characters.
STEERING = "\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069"

_STEERING = re.compile(f"[{STEERING}]")


def dump_json(data: object, **layout: Any) -> str:  # noqa: ANN401 - what `json.dumps` takes
    return escape(json.dumps(data, ensure_ascii=False, **layout))


def escape(text: str) -> str:
    """Write these characters as JSON does, and YAML within double quotes."""
    return _STEERING.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def steers(text: str) -> bool:
    return _STEERING.search(text) is not None
