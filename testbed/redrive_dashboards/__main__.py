"""`python -m redrive_dashboards`: build the JSON, list the queries or ask them, draw the pages from real data."""

import argparse
import sys
import time
from pathlib import Path

from redrive_dashboards.dashboards import DASHBOARDS, REPOSITORY, path_of, written
from redrive_dashboards.filling import Choice
from redrive_dashboards.picture import draw_all
from redrive_dashboards.prometheus import Prometheus, PrometheusError, Window
from redrive_dashboards.questions import questions, unanswered

DOCS = REPOSITORY / "docs"


def main() -> int:
    arguments = _parser().parse_args()
    try:
        return int(arguments.run(arguments) or 0)
    except PrometheusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _build(_: argparse.Namespace) -> None:
    for dashboard in DASHBOARDS:
        path_of(dashboard).write_text(written(dashboard))


def _queries(arguments: argparse.Namespace) -> None:
    for question in questions(_choice(arguments)):
        print(question.expr)


def _ask(arguments: argparse.Namespace) -> int:
    missing = unanswered(Prometheus(arguments.prometheus), _window(arguments), _choice(arguments))
    for question in missing:
        print(f"no number: {question}")
    return 1 if missing else 0


def _picture(arguments: argparse.Namespace) -> None:
    pages = draw_all(Prometheus(arguments.prometheus), _window(arguments), _choice(arguments))
    for name, page in pages.items():
        (arguments.into / f"{name}.svg").write_text(page)


def _choice(arguments: argparse.Namespace) -> Choice:
    return Choice(arguments.namespace, arguments.consumer, arguments.interval)


def _window(arguments: argparse.Namespace) -> Window:
    end = arguments.end or time.time()
    return Window(end - arguments.minutes * 60, end)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="redrive_dashboards", description=__doc__)
    commands = parser.add_subparsers(required=True)
    commands.add_parser("build", help="write the JSON into the chart").set_defaults(run=_build)
    queries = commands.add_parser("queries", help="print every query, ready to be run")
    queries.set_defaults(run=_queries)
    ask = commands.add_parser("ask", help="ask every query, and name those that get no number")
    ask.set_defaults(run=_ask)
    picture = commands.add_parser("picture", help="draw both pages as SVG, from real data")
    picture.set_defaults(run=_picture)
    picture.add_argument("--into", type=Path, default=DOCS, help="the folder of the pictures")
    for command in (ask, picture):
        command.add_argument("--prometheus", required=True, help="where it listens, http://127.0.0.1:9090")
        command.add_argument("--minutes", type=float, default=15, help="how far back")
        command.add_argument("--end", type=float, default=0, help="until when, in seconds since 1970; now unless said")
    for command in (queries, ask, picture):
        command.add_argument("--namespace", default="shop", help="whose page the second one is")
        command.add_argument("--consumer", default="orders")
        command.add_argument(
            "--interval", default="2m", help="over what rates are taken: four scrapes, as Grafana does"
        )
    return parser


if __name__ == "__main__":
    sys.exit(main())
