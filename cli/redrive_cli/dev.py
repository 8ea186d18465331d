"""`redrive dev`: a consumer on a laptop, with no cluster, but with the parser, the queues and the worker of a cluster.

Two things may only be done here in this order: the folder with the credentials is made first and removed last, and the
broker is there before the workers and goes after them.
"""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from redrive.config import WorkerConfig, write_config
from redrive.errors import AccessRefused, BrokerError, NotFound, Unreachable
from redrive.spec import Consumer
from redrive_cli.broker_flags import BROKER_VARIABLE, MANAGEMENT_VARIABLE, BrokerAddress, read_flags, write_secret
from redrive_cli.crew import Crew, Launch
from redrive_cli.errors import CliError, Misuse
from redrive_cli.introduction import say_facts, say_title
from redrive_cli.leashed import put_on_leash
from redrive_cli.manifests import Manifest, read_manifest
from redrive_cli.preparing import Prepared, prepare
from redrive_cli.screen import JsonLines, LiveScreen, Output, Screen
from redrive_cli.stopping import INTERRUPTED
from redrive_cli.throwaway import ThrowAway, throw_away
from redrive_cli.wording import say_tally

# Of a worker whose `redrive dev` was killed; the second time that it is told, it ends at once.
ABANDONED_SECONDS = 10.0
# What a worker needs besides the time of its handler.
DRAIN_MARGIN_SECONDS = 15.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for."""

    file: Path
    broker: str | None
    management: str | None
    workers: int
    folder: Path
    output: Output


@dataclass(frozen=True, slots=True)
class Place:
    """Where a consumer runs: its broker, which may be ours."""

    address: BrokerAddress
    own: ThrowAway | None = None

    def trouble(self) -> str | None:
        return "the throw-away RabbitMQ has ended" if self.own is not None and self.own.ended else None


def dev(
    file: Annotated[
        Path,
        typer.Option("--file", "-f", help="The manifest, YAML or JSON, with one RetryingConsumer in it; - is stdin."),
    ],
    broker: Annotated[
        str | None,
        typer.Option(
            envvar=BROKER_VARIABLE,
            show_default=False,
            metavar="URL",
            help="The broker: amqp://user:password@host/vhost, or amqps://. It replaces the manifest's Secret, "
            "and a vhost in it the manifest's. Others see it in `ps`: a password is safer in the variable.",
        ),
    ] = None,
    management: Annotated[
        str | None,
        typer.Option(
            envvar=MANAGEMENT_VARIABLE,
            show_default=False,
            metavar="URL",
            help="Its management API: http://host:15672, or https://; asked as the user of --broker, unless it names "
            "one. Without it dead letters are kept for ever, and only a queue that Redrive made can be used.",
        ),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", "-w", min=1, max=64, help="How many worker processes.")] = 1,
    chdir: Annotated[
        Path | None,
        typer.Option(
            "--chdir",
            "-C",
            show_default="here",
            metavar="FOLDER",
            help="Where the workers run. Handlers are imported from there, then from the folder of the manifest.",
        ),
    ] = None,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="text for people; json passes on the workers' own log lines.")
    ] = Output.TEXT,
) -> None:
    """Run a RetryingConsumer here, without a cluster.

    Its queues are made as the operator would make them, and the same worker runs your handler: what fails comes back
    after its delay, and what is hopeless is parked. One line is shown for each message. Ctrl-C lets what has begun
    finish, and ends; Ctrl-C again ends at once.

    Without --broker a throw-away RabbitMQ is started, if one is installed, and removed at the end.

    Example: redrive dev -f orders.yaml --broker amqp://guest:guest@localhost --management http://localhost:15672
    """
    options = Options(file, broker or None, management or None, workers, chdir or Path.cwd(), output)
    with _interruptible():
        try:
            code = run(options)
        except KeyboardInterrupt:  # before there were any workers, or after
            code = INTERRUPTED
    raise typer.Exit(code)


def run(options: Options) -> int:
    """Do it all, and return the exit code."""
    manifest = read_manifest(options.file)
    _check(options, manifest.consumer)
    screen = _screen(options.output, manifest.consumer)
    with _workspace() as folder, _find_place(options, manifest.consumer, folder, screen) as place:
        prepared = _prepare(manifest.consumer, place.address)
        _introduce(screen, manifest, place, prepared, workers=options.workers)
        if prepared.config is None:
            screen.note("the queues are there; with no spec.worker in the manifest, there is nothing to run")
            return 0
        launches = [
            _launch(prepared.config, place.address, folder / f"worker-{number}", options, manifest)
            for number in range(1, options.workers + 1)
        ]
        return _run_workers(launches, screen, manifest.consumer, place)


def _check(options: Options, consumer: Consumer) -> None:
    """Refuse what can be known to be wrong before anything is started."""
    if not options.folder.is_dir():
        raise Misuse(f"--chdir {options.folder}: there is no such folder")
    if options.management and not options.broker:
        raise Misuse(f"--management needs --broker: name the broker with it, or with {BROKER_VARIABLE}")
    if consumer.worker is None and not options.broker:
        raise Misuse(
            f"{options.file} has no spec.worker, so there is nothing to run, and queues in a throw-away broker would "
            "serve nobody: add spec.worker, or name a broker with --broker to have the queues made there"
        )


def _screen(output: Output, consumer: Consumer) -> Screen:
    if output is Output.JSON:
        return JsonLines(sys.stdout, sys.stderr)
    return LiveScreen(sys.stdout, sys.stderr, max_attempts=consumer.retry.max_attempts)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let SIGTERM unwind us as Ctrl-C does, so that what was made is removed."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {one: signal.signal(one, interrupt) for one in _SIGNALS}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@contextmanager
def _workspace() -> Iterator[Path]:
    """Give a folder that only we may look into: it holds credentials."""
    folder = Path(tempfile.mkdtemp(prefix="redrive-dev-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _find_place(options: Options, consumer: Consumer, folder: Path, screen: Screen) -> Iterator[Place]:
    if options.broker:
        yield Place(read_flags(options.broker, options.management, vhost=consumer.broker.vhost))
        return
    screen.note("no --broker: starting a throw-away RabbitMQ")
    with throw_away(folder, os.environ) as broker:
        yield Place(broker.address, broker)


def _prepare(consumer: Consumer, address: BrokerAddress) -> Prepared:
    try:
        return prepare(consumer, address)
    except BrokerError as error:
        raise CliError(f"{error}{_advise(error, address)}") from error


def _advise(error: BrokerError, address: BrokerAddress) -> str:
    flags = "--broker and --management" if address.management else "--broker"
    match error:
        case Unreachable():
            return f": check {flags}, and that RabbitMQ is running there"
        case AccessRefused():
            return f": check the user and the password in {flags}, and that it may use the vhost {address.vhost}"
        case NotFound():
            return f": make the vhost with `rabbitmqctl add_vhost {address.vhost}`, or name another one in --broker"
        case _:
            return ""


def _introduce(screen: Screen, manifest: Manifest, place: Place, prepared: Prepared, *, workers: int) -> None:
    facts = list(say_facts(manifest, place.address, prepared, workers=workers))
    if place.own is not None:
        facts.append(("connect", f"the URL, with its password, is in {place.own.url_file} until the end"))
    screen.introduce(say_title(manifest.consumer, place.address, prepared), facts)


def _launch(config: WorkerConfig, address: BrokerAddress, home: Path, options: Options, manifest: Manifest) -> Launch:
    """Write what a pod would have mounted, and say how its worker is started."""
    home.mkdir(mode=0o700)
    (home / "config.json").write_text(write_config(config))
    write_secret(address.amqp, home / "broker")
    worker = [sys.executable, "-m", "redrive.worker", "--config", f"{home}/config.json", "--broker", f"{home}/broker"]
    # They share one machine, and not, as pods do, each its own address.
    worker += ["--host", "127.0.0.1", "--port", "0"]
    ours = {key: value for key, value in os.environ.items() if key not in (BROKER_VARIABLE, MANAGEMENT_VARIABLE)}
    path = [str(options.folder.resolve()), str(manifest.folder), *filter(None, [ours.get("PYTHONPATH")])]
    return Launch(
        command=put_on_leash(worker, patience=ABANDONED_SECONDS, folder=home),
        # Unbuffered, as in the image: what a handler prints is seen when it prints it.
        env={**ours, "PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1"},
        cwd=options.folder,
    )


def _run_workers(launches: list[Launch], screen: Screen, consumer: Consumer, place: Place) -> int:
    longest = consumer.longest_attempt
    drain = DRAIN_MARGIN_SECONDS + (longest.total_seconds() if longest else 0)

    async def run_crew() -> int:
        crew = Crew(launches, screen, drain_seconds=drain, trouble=place.trouble)
        code = await crew.run()
        screen.note(say_tally(crew.tally))
        return code

    try:
        return asyncio.run(run_crew())
    finally:
        for one in _SIGNALS:  # the rest is short, and must not be left half done
            signal.signal(one, signal.SIG_IGN)
