"""What the commands of all benches share: their options, what they say of a run, and how a part of it may fail."""

import argparse
import json
import platform
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import pika
from pika.exceptions import AMQPError

from bench.checkout import describe_commit
from bench.errors import Abandoned
from bench.measure import describe_machine
from bench.run_facts import name_run
from bench.tables import Section
from redrive.errors import RedriveError
from redrive_testbed.errors import Refused, TestbedError
from redrive_testbed.rabbitmq_release import TESTED, find_release
from redrive_testbed.say import say, step


class Help(argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter):
    """The description as it is written, and the default of every option."""


def open_parser(program: str, description: str | None) -> argparse.ArgumentParser:
    """Begin with the options that every bench has."""
    parser = argparse.ArgumentParser(prog=program, description=description, formatter_class=Help)
    parser.add_argument("--quick", action="store_true", help="tiny numbers on shared brokers: does the bench work?")
    parser.add_argument("--release", type=releases, default=list(TESTED), metavar="3.10,4")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep every figure of every round")
    page = parser.add_mutually_exclusive_group()
    page.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables between this page's markers")
    page.add_argument("--add-to", type=Path, metavar="FILE", help="the same, and keep the runs that stand there, below")
    parser.add_argument(
        "--from", dest="source", type=Path, nargs="+", default=[], metavar="FILE", help="read runs instead of measuring"
    )
    return parser


def parse_options(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None, quick: dict[str, object]
) -> argparse.Namespace:
    asked = parser.parse_args(arguments)
    if asked.quick:
        # What a person asked for by name still holds.
        parser.set_defaults(**quick)
        asked = parser.parse_args(arguments)
    return asked


class Run(Protocol):
    """What one command found."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    facts: dict[str, str]
    skipped: list[str]

    def lost(self) -> int:
        """Count what Redrive lost; what others lose is a finding, and told with the tables."""


R = TypeVar("R", bound=Run)


def report_runs(
    options: argparse.Namespace,
    section: Section,
    *,
    load: Callable[[Path], R],
    measure: Callable[[argparse.Namespace], R],
    render: Callable[[R], str],
    illustrate: Callable[[Sequence[R], Path], str] = lambda _runs, _page: "",
) -> int:
    """Measure, or read earlier runs; show what was found, and give the exit code.

    That is 1 if Redrive lost a message or something was not measured: who reads only this is to know.

    A page gets the picture that `illustrate` draws beside it, once, from all the runs together.
    """
    page = page_of(options)
    try:
        if page:
            section.require(page)  # now, not after hours
        runs = [load(path) for path in options.source] or [measure(options)]
    except (Refused, Abandoned) as reason:
        say(f"error: {reason}")
        return 2
    text = "\n".join(map(render, runs))
    print(text)
    if page:
        _write(page, section, runs, keep_others=bool(options.add_to), render=render, illustrate=illustrate)
    elif asked := options.markdown or options.add_to:
        say(f"a quick run leaves {asked} alone: its figures mean nothing")
    failures = list(tell_failures(runs))
    for failure in failures:
        say(failure)
    return 1 if failures else 0


def _write(
    page: Path,
    section: Section,
    runs: Sequence[R],
    *,
    keep_others: bool,
    render: Callable[[R], str],
    illustrate: Callable[[Sequence[R], Path], str],
) -> None:
    """Write the runs in the order in which they were named; above what is kept, the newest first, and none twice."""
    if keep_others:
        runs = sorted(runs, key=lambda run: run.facts.get("began", ""), reverse=True)
        there = [run for run in runs if section.has(page, f"### {name_run(run.facts)}")]
        for run in there:
            say(f"{page} has this run already: {name_run(run.facts)}")
        runs = [run for run in runs if run not in there]
    if not runs:
        return
    picture, text = illustrate(runs, page), "\n".join(map(render, runs))
    text = f"{picture}\n\n{text}" if picture else text
    if keep_others:
        section.add(page, text, picture=picture)
    else:
        section.replace(page, text)


def tell_failures(runs: Iterable[Run]) -> Iterator[str]:
    for run in runs:
        if lost := run.lost():
            yield f"error: Redrive lost {lost:,} message{'s' if lost > 1 else ''}"
        yield from (f"error: not measured: {reason}" for reason in run.skipped)


def page_of(options: argparse.Namespace) -> Path | None:
    """Give the page to write: none for a quick run, whoever asks for it, because figures of hours stand there."""
    page: Path | None = options.markdown or options.add_to
    return None if options.quick else page


def keep(run: Run, options: argparse.Namespace) -> None:
    """Save what there is: a run of hours must not end with nothing."""
    run.facts["ended"] = now()
    if options.json:
        options.json.write_text(json.dumps(asdict(run), indent=1) + "\n")


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def words(*allowed: str) -> Callable[[str], list[str]]:
    def parse_words(text: str) -> list[str]:
        found = text.split(",")
        if unknown := set(found) - set(allowed):
            raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))} is not one of {', '.join(allowed)}")
        return found

    return parse_words


def releases(text: str) -> list[str]:
    try:
        return [find_release(word).name for word in text.split(",")]
    except Refused as reason:
        raise argparse.ArgumentTypeError(str(reason)) from reason


def describe_run(module: str, options: argparse.Namespace) -> dict[str, str]:
    """Say what a reader needs to know of a run, and how to get such figures again."""
    commit = describe_commit()
    return {
        "command": _command(module, sys.argv[1:]),
        **({"commit": commit} if commit else {}),
        "began": now(),
        "parts": ", ".join(options.parts),
        "releases": ", ".join(options.release),
        **describe_machine(),
        "Python": platform.python_version(),
        "pika": pika.__version__,
    }


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


@contextmanager
def noting_failure(skipped: list[str], what: str) -> Iterator[None]:
    """Announce a part of the run; when it fails, note why and let the others go on."""
    try:
        with step(what):
            yield
    except (Abandoned, TestbedError, RedriveError, AMQPError, OSError) as error:
        skipped.append(f"{what}: {error or type(error).__name__}")
        say(skipped[-1])


def _command(module: str, arguments: Sequence[str]) -> str:
    """Leave out where this run put its figures."""
    outputs = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    outputs.add_argument("--json")
    outputs.add_argument("--markdown")
    outputs.add_argument("--add-to")
    _, others = outputs.parse_known_args(arguments)
    return shlex.join(["uv", "run", "python", "-m", module, *others])
