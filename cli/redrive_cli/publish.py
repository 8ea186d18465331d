"""`redrive publish`: messages into a consumer's work queue, confirmed, from the command line or from a file."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from redrive.errors import NotFound
from redrive.letters.codec import Stored
from redrive.letters.putting_in import as_message
from redrive.properties import LONGEST_SHORT, Properties
from redrive_cli.errors import Misuse
from redrive_cli.letter_files import STANDARD, read_file
from redrive_cli.letter_options import Whose, sort_words
from redrive_cli.letter_reach import reach
from redrive_cli.putting import put_all
from redrive_cli.terminal import note


@dataclass(frozen=True, slots=True)
class What:
    """What is published: one of these."""

    body: Annotated[
        str | None,
        typer.Argument(metavar="BODY", show_default=False, help="The body of one message; - is standard input."),
    ] = None
    body_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The body of one message, byte for byte; - is standard input.")
    ] = None
    lines: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A message for each line, which is its body; - is stdin.")
    ] = None
    ndjson: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A message for each line, with headers and properties, as `dead export` writes them; - is stdin.",
        ),
    ] = None
    header: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A header, as text; may be given several times.")
    ] = None
    content_type: Annotated[str | None, typer.Option(metavar="TYPE", help="Its content type.")] = None
    message_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", show_default="made up", help="The message id of one message.")
    ] = None


def publish(whose: Whose, what: What) -> None:
    """Publish messages straight into the work queue of a consumer; each is there for good when this ends.

    Example: redrive publish orders '{"order": 5}' --header tenant=acme
    """
    whose, body = sort_words(whose, what.body)
    what = replace(what, body=body)
    _check(what)
    messages = _read(what)
    with reach(whose, purpose="publish") as reached:
        if reached.amqp.count_ready(reached.home) is None:
            raise NotFound(f"there is no queue {reached.home!r}")
        went = "messages were published"
        done = put_all(reached, reached.home, messages, as_message, doing="publishing", total=None, went=went)
    note(f"{done:,} {'message' if done == 1 else 'messages'} published to {reached.home}")


def _check(what: What) -> None:
    given = [way for way in (what.body, what.body_file, what.lines, what.ndjson) if way is not None]
    if len(given) != 1:
        raise Misuse("say what to publish with one of BODY, --body-file, --lines and --ndjson")
    if what.message_id is not None and (what.lines or what.ndjson):
        raise Misuse("--id is for one message: in --ndjson each line may have its own")
    _check_length("--id", what.message_id or "")
    if what.ndjson and (what.header or what.content_type):
        raise Misuse("--header and --content-type are for plain bodies: in --ndjson each line has its own")
    _check_length("--content-type", what.content_type or "")


def _check_length(flag: str, text: str) -> None:
    try:
        length = len(text.encode())
    except UnicodeEncodeError as error:  # bytes that were typed come as half characters
        raise Misuse(f"{flag} is no text in UTF-8, which AMQP cannot carry") from error
    if length > LONGEST_SHORT:
        raise Misuse(f"{flag} is longer than {LONGEST_SHORT} bytes, which AMQP cannot carry")


def _read(what: What) -> Iterable[Stored]:
    if what.ndjson is not None:
        return read_file(what.ndjson)
    properties = Properties(what.content_type, headers=_headers(what), message_id=what.message_id)
    if what.lines is not None:
        return _each_line(what.lines, properties)
    return [Stored(1, "", "", properties, _one_body(what))]


def _headers(what: What) -> dict[str, object]:
    headers: dict[str, object] = {}
    for header in what.header or ():
        name, equals, value = header.partition("=")
        if not name or not equals:
            raise Misuse(f"--header {header!r} is no header: write NAME=VALUE")
        _check_length("--header", name)
        headers[name] = value
    return headers


def _one_body(what: What) -> bytes:
    if what.body is not None and what.body != str(STANDARD):
        return what.body.encode(errors="surrogateescape")
    path = what.body_file or STANDARD
    if path == STANDARD:
        return sys.stdin.buffer.read()
    try:
        return path.read_bytes()
    except OSError as error:
        raise Misuse(f"{path} cannot be read ({error.strerror}): name the file with the body") from error


def _each_line(path: Path, properties: Properties) -> Iterator[Stored]:
    try:
        file = sys.stdin.buffer if path == STANDARD else path.open("rb")
    except OSError as error:
        raise Misuse(f"{path} cannot be read ({error.strerror}): name the file with the bodies") from error
    with file:
        for number, line in enumerate(file, 1):
            body = line.removesuffix(b"\n").removesuffix(b"\r")
            if body:
                yield Stored(number, "", "", properties, body)
