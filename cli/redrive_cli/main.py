"""The command line: `redrive COMMAND`. Each family of commands is a file of its own, and is only mounted here.

Whatever goes wrong is one sentence on standard error and an exit code: 2 where something must be changed first, else 1.
A traceback would be our own fault.
"""

import os
import shlex
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

try:
    import typer
except ModuleNotFoundError:
    sys.exit("error: the command line is not installed: `pip install 'redrive[cli]'`")

from redrive.errors import RedriveError
from redrive_cli.capacity import capacity
from redrive_cli.dead import app as dead
from redrive_cli.dev import dev
from redrive_cli.doctor import doctor
from redrive_cli.errors import CliError, exit_code
from redrive_cli.explain import explain
from redrive_cli.flat_options import flattened
from redrive_cli.orphans import app as orphans
from redrive_cli.pausing import pause, resume
from redrive_cli.plain_help import Commands
from redrive_cli.publish import publish
from redrive_cli.status import status
from redrive_cli.terminal import note
from redrive_cli.top import top

# Tracebacks that show the values of variables would show passwords.
app = Commands(
    name="redrive",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"redrive {version('redrive')}")
        raise typer.Exit


@app.callback()
def redrive(
    _version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Show the version.")
    ] = False,
) -> None:
    """RabbitMQ consumers that retry: run them here, look at what they do, put back what they parked."""


for command in (explain, status, top, capacity, pause, resume, doctor, dev):
    app.command()(command)
app.command()(flattened(publish))
app.add_typer(dead, name="dead")
app.add_typer(orphans, name="orphans")


def find_name(program: str) -> str:
    """Say what was typed to get here, for the help: kubectl runs its plugins under a name of its own."""
    return "kubectl redrive" if Path(program).name.startswith("kubectl-") else "redrive"


def complete_for_kubectl() -> None:
    """Answer kubectl, which asks a plugin's companion what could stand in the place of the last of these words."""
    words = sys.argv[1:]
    bash = {"COMP_WORDS": shlex.join(["redrive", *words]), "COMP_CWORD": str(len(words))}
    os.environ.update({"_REDRIVE_COMPLETE": "complete_bash", **bash})
    try:
        app(prog_name="redrive")
    finally:
        print(":4")  # to kubectl: and no names of files


def main() -> None:
    # A character that the terminal does not have is no reason to end.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        app(prog_name=find_name(sys.argv[0]))
    except (CliError, RedriveError) as error:
        note(f"error: {error}")  # which may name what a stranger has written
        sys.exit(exit_code(error))
    except BrokenPipeError:  # whoever read it has gone; the interpreter would complain when it flushes at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
