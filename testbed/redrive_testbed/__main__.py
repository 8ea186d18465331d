"""The test bed on the command line; the Makefile names these commands for people."""

import argparse
import os
import sys
from collections.abc import Callable

from redrive_testbed import ahead, chart_crds, chart_values, clusters, demo, images, stages, standing_broker
from redrive_testbed.errors import TestbedError
from redrive_testbed.places import Places
from redrive_testbed.rabbitmq_release import RELEASES, TESTED
from redrive_testbed.say import say

Run = Callable[[Places, argparse.Namespace], int | None]


def main() -> int:
    arguments = _parser().parse_args()
    places = Places.from_environment()
    try:
        return int(arguments.run(places, arguments) or 0)
    except TestbedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="redrive_testbed", description=__doc__)
    commands = parser.add_subparsers(required=True)
    up = _command(commands, "cluster-up", _cluster_up, "bring up a cluster, or heal the one that is up")
    up.add_argument("--context", default=os.environ.get("REDRIVE_CONTEXT"), help="use this kube context as it is")
    up.add_argument("--nodes", type=int, default=1, help="how many nodes (only without Docker)")
    _command(commands, "cluster-down", _cluster_down, "remove every trace of the cluster")
    _command(commands, "cluster-status", _cluster_status, "say what is up")
    broker = _command(commands, "broker-up", _broker_up, "start a RabbitMQ broker on loopback")
    broker.add_argument("release", nargs="?", default=TESTED[-1], help=f"one of {', '.join(RELEASES)}")
    _command(commands, "broker-down", _broker_down, "end the broker and remove its data")
    _command(commands, "broker-status", _broker_status, "say where the broker listens")
    _command(commands, "images", _images, "build both images; load them into the cluster that is up")
    _command(commands, "chart", _chart, "make the chart's copies of the kinds and its table of values")
    _command(commands, "demo", _demo, "show the main job to a person")
    _command(commands, "ahead", _ahead, "make what a run of the tests will need, with what others leave of the machine")
    test = _command(commands, "test", _test, "run every check and test")
    test.add_argument("stages", nargs="*", metavar="STAGE", help=f"only these: {', '.join(stages.NAMES)}")
    return parser


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, run: Run, text: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(run=run)
    return parser


def _cluster_up(places: Places, arguments: argparse.Namespace) -> None:
    clusters.up(places, context=arguments.context or None, nodes=arguments.nodes)


def _cluster_down(places: Places, _: argparse.Namespace) -> None:
    clusters.down(places)


def _cluster_status(places: Places, _: argparse.Namespace) -> int:
    cluster = clusters.current(places)
    if cluster is None:
        print("no cluster is up: make cluster-up")
        return 1
    print(f"{cluster.kind}\n{cluster.status()}\nexport KUBECONFIG={cluster.kubeconfig}")
    return 0


def _broker_up(places: Places, arguments: argparse.Namespace) -> None:
    standing_broker.up(places, arguments.release)
    _broker_status(places, arguments)


def _broker_down(places: Places, _: argparse.Namespace) -> None:
    standing_broker.down(places)


def _broker_status(places: Places, _: argparse.Namespace) -> int:
    broker = standing_broker.status(places)
    if broker is None:
        print("no broker is up: make broker-up")
        return 1
    state = "running" if broker.running else "DEAD"
    print(f"RabbitMQ {broker.version}: {state}\n{broker.amqp_url}\n{broker.management_url}")
    return 0


def _images(places: Places, _: argparse.Namespace) -> None:
    cluster = clusters.current(places)
    if cluster is None:
        images.build(places)
        say("no cluster is up, so the images were built and loaded nowhere")
    else:
        images.load(places, cluster.load)


def _chart(_: Places, __: argparse.Namespace) -> None:
    chart_crds.write_templates()
    chart_values.write_readme()


def _demo(places: Places, _: argparse.Namespace) -> None:
    demo.show(places)


def _ahead(places: Places, _: argparse.Namespace) -> None:
    ahead.make(places)


def _test(places: Places, arguments: argparse.Namespace) -> int:
    return stages.run(places, arguments.stages)


if __name__ == "__main__":
    sys.exit(main())
