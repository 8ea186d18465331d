"""One letter in the person's editor: its body, changed by hand, goes back in place of the old one.

Nothing is held while the editor is open, which may be all night: the letter is looked for again afterwards, and goes
back only if it is still the one that was edited.
"""

import json
import os
import shlex
import subprocess
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from redrive.letters import Letter, Order, look, read_letter
from redrive.letters.going_back import Left, Sending, sender
from redrive_cli.errors import CliError, Misuse
from redrive_cli.letter_reach import Reached


def edit_one(reached: Reached, order: Order) -> Order:
    """Have the only letter that fits edited, and order that it goes back so."""
    letter = _find_one(reached, order)
    body = edit_body(letter.body)
    send = sender(order.home, most_redrives=order.most_redrives)

    def send_changed(found: Letter, frame_max: int) -> Sending | Left:
        sending = send(found, frame_max)
        return sending if isinstance(sending, Left) else (*sending[:2], body, sending[3])

    def is_it(found: Letter) -> bool:
        return found.id == letter.id and found.body == letter.body and order.choose(found)

    return replace(order, choose=is_it, send=send_changed)


def edit_body(body: bytes) -> bytes:
    """Have a body edited, JSON in a readable form; Misuse when it was JSON and is none any more.

    One that is left as it was is refused: who closes an editor without saving wants nothing done.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise Misuse("its body is binary, and no editor is for that: use `dead export`, and `publish`") from error
    shown, is_json = _prettify(text)
    edited = _run_editor(shown, ".json" if is_json else ".txt")
    if edited == shown:
        raise CliError("the body is unchanged: nothing was put back; without --edit it goes back as it is")
    if is_json:
        try:
            json.loads(edited)
        except ValueError as error:
            raise Misuse(f"what was saved is no JSON any more ({error}): nothing was put back") from error
    return edited.encode()


def _find_one(reached: Reached, order: Order) -> Letter:
    fitting: list[Letter] = []
    with look(reached.amqp, reached.dead, reading=reached.reading) as looked:
        for window in looked.windows():
            now = datetime.now(UTC)
            letters = (read_letter(delivery, now=now) for delivery in window)
            fitting += [letter for letter in letters if order.choose(letter)]
            if len(fitting) > 1:
                raise Misuse("--edit is for one letter, and more than one fits: choose it with --id")
    if not fitting:
        raise CliError(f"none of the {looked.total:,} dead letters of {reached.whose} fits what was asked for")
    return fitting[0]


def _prettify(text: str) -> tuple[str, bool]:
    """Say how a body is shown, and whether it is JSON. That is made readable only where nothing in it changes."""
    try:
        pretty = json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
        same = _read_exactly(pretty.encode(errors="replace")) == _read_exactly(text)
    except (ValueError, RecursionError):
        return text, False
    return pretty if same else text, True


def _read_exactly(text: str | bytes) -> object:
    """Read JSON with every digit of its numbers, and with names that are there twice."""
    return json.loads(text, parse_float=Decimal, object_pairs_hook=tuple)


def _run_editor(text: str, suffix: str) -> str:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="redrive-") as folder:
        path = Path(folder, f"body{suffix}")
        path.write_bytes(text.encode())
        try:
            done = subprocess.run([*shlex.split(editor), str(path)], check=False)
        except (OSError, ValueError) as error:
            raise Misuse(f"the editor {editor!r} cannot be started: set EDITOR to one that can") from error
        if done.returncode:
            raise CliError(f"the editor ended with {done.returncode}: nothing was put back")
        try:
            return path.read_bytes().decode()
        except (OSError, UnicodeDecodeError) as error:
            raise Misuse("what the editor left is no text: nothing was put back") from error
