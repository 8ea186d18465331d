"""`python -m redrive_release`: make a release, compare two, or ask whether anything is known against what it needs."""

import argparse
import sys
from pathlib import Path

from redrive_release import audit, folders, making
from redrive_testbed.errors import TestbedError
from redrive_testbed.places import REPOSITORY, Places


def main() -> int:
    arguments = _parser().parse_args()
    try:
        arguments.run(arguments)
    except TestbedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="redrive_release", description=__doc__)
    commands = parser.add_subparsers(required=True)
    make = commands.add_parser("make", help="build everything twice, compare, and list what is in it")
    make.add_argument("--out", type=Path, default=REPOSITORY / "dist")
    make.add_argument("--base", help="the images' base, by digest")
    make.set_defaults(run=lambda given: making.make(Places.from_environment(), given.out, base=given.base or None))
    compare = commands.add_parser("compare", help="compare two folders of the same release")
    compare.add_argument("one", type=Path)
    compare.add_argument("other", type=Path)
    compare.set_defaults(run=lambda given: folders.must_be_alike(given.one, given.other))
    ask = commands.add_parser("audit", help="ask for advisories on every locked dependency")
    ask.add_argument("--advisories", type=Path, help="a copy of PyPA's advisory database, instead of a service")
    ask.set_defaults(run=lambda given: audit.audit(given.advisories))
    return parser


if __name__ == "__main__":
    sys.exit(main())
