"""One letter, as a person at night wants to see it: what happened, with what, and what its pod said."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

from rich.text import Text

from redrive.letters import Letter
from redrive.story import write_time
from redrive_cli.errors import CliError, Missing
from redrive_cli.letter_reach import Reached
from redrive_cli.letter_words import say_body, say_headers, say_properties, say_story, whole_json
from redrive_cli.terminal import Terminal
from redrive_cli.wording import clean

CONTAINER = "worker"
MOST_LINES = 200


def show_letter(letter: Letter, terminal: Terminal, reached: Reached | None) -> None:
    """Show all of it; with `reached`, also the lines of its pod's log that name it."""
    lines, trouble = _read_logs(letter, reached)
    if terminal.for_programs:
        terminal.show_data({**whole_json(letter), "log": lines})
        return
    terminal.title(f"Dead letter {letter.id or 'without an id'}")
    terminal.facts(say_story(letter, datetime.now(UTC)))
    _part(terminal, "Trace", (letter.trace or "").splitlines())
    _facts(terminal, "Headers", list(say_headers(letter.headers)))
    _facts(terminal, "Properties", list(say_properties(letter)))
    kind, body = say_body(letter.body)
    _part(terminal, f"Body ({kind})", body)
    _part(terminal, f"Log of {letter.pod}", [*lines, *([trouble] if trouble else [])])


def _read_logs(letter: Letter, reached: Reached | None) -> tuple[list[str], str]:
    """Read what the pod logged about the message, and what was in the way of it, if anything."""
    if reached is None or reached.cluster is None or not letter.pod or not letter.id:
        return [], ""
    first = letter.message.story.first_attempt_at
    since = "" if first is None else write_time(first)
    read = partial(reached.cluster.read_log, letter.pod, reached.consumer.namespace, container=CONTAINER, since=since)
    lines: list[str] = []
    with suppress(CliError):  # of a container that was never restarted, there is none
        lines += _about(letter.id, read(previous=True))
    try:
        lines += _about(letter.id, read())
    except Missing:
        return lines, "the pod is gone, and its log with it"
    except CliError as error:
        return lines, f"its log cannot be read: {error}"
    return lines[-MOST_LINES:], "" if lines else "it has no line with this id any more"


def _about(message_id: str, lines: Iterator[str]) -> Iterator[str]:
    return (line for line in lines if message_id in line)


def _facts(terminal: Terminal, title: str, facts: list[tuple[str, str]]) -> None:
    if facts:
        terminal.gap()
        terminal.title(title)
        terminal.table(("name", "value"), facts)


def _part(terminal: Terminal, title: str, lines: list[str]) -> None:
    if not lines:
        return
    terminal.gap()
    terminal.title(title)
    for line in lines:
        terminal.console.print(Text(f"  {clean(line)}"), soft_wrap=True)
