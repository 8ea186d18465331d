"""The bindings that were made for a consumer, written into its status and read back from there.

They are read back to be removed one day, which works only with the very arguments that they were made with. So one that
cannot be written exactly, or was edited into something that no binding is, is left out whole.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from redrive.drift import OURS
from redrive.elements import ArgumentValue, Binding, freeze

MOST_BINDINGS = 200
MOST_ARGUMENTS = 33
_LONGEST_NAME = 255  # bytes, as AMQP counts
_LONGEST_ARGUMENT = 1024  # characters, as the API server counts
_INT64 = 2**63


def record_bindings(bindings: Iterable[Binding]) -> list[dict[str, Any]]:
    return [_record(binding) for binding in dict.fromkeys(bindings) if _can_be_recorded(binding)][:MOST_BINDINGS]


def restore_bindings(recorded: object, queue: str) -> tuple[Binding, ...]:
    """Read what `record_bindings` wrote for this queue, and nothing else."""
    entries = recorded if isinstance(recorded, list | tuple) else ()
    restored = (_restore(entry, queue) for entry in entries[:MOST_BINDINGS])
    return tuple(dict.fromkeys(binding for binding in restored if binding is not None))


def _record(binding: Binding) -> dict[str, Any]:
    arguments = {"arguments": dict(binding.arguments)} if binding.arguments else {}
    return {"exchange": binding.source, "routingKey": binding.routing_key, **arguments}


def _restore(entry: object, queue: str) -> Binding | None:
    if not isinstance(entry, Mapping):
        return None
    exchange, key, arguments = entry.get("exchange"), entry.get("routingKey", ""), entry.get("arguments", {})
    if not isinstance(exchange, str) or not isinstance(key, str) or not isinstance(arguments, Mapping):
        return None
    if not all(isinstance(name, str) for name in arguments):
        return None
    binding = Binding(exchange, queue, "queue", key, freeze(arguments))
    return binding if _can_be_recorded(binding) else None


def _can_be_recorded(binding: Binding) -> bool:
    return (
        binding.source != ""
        and not binding.source.startswith(OURS)
        and _is_name(binding.source)
        and _is_name(binding.routing_key)
        and len(binding.arguments) <= MOST_ARGUMENTS
        and all(_is_name(name) and _is_argument(value) for name, value in binding.arguments)
    )


def _is_name(text: str) -> bool:
    return _is_text(text) and len(text.encode()) <= _LONGEST_NAME


def _is_argument(value: ArgumentValue) -> bool:
    if isinstance(value, str):
        return _is_text(value) and len(value) <= _LONGEST_ARGUMENT
    return isinstance(value, int) and not isinstance(value, bool) and -_INT64 <= value < _INT64


def _is_text(text: str) -> bool:
    """Half of a surrogate pair is no character; JSON can hold it, AMQP cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
