"""One target in the hands of atheris: `python -m fuzz.one NAME FLAGS…`. The code under test is watched as it runs."""

import sys

import atheris

with atheris.instrument_imports(include=["redrive"]):
    from fuzz.targets import TARGETS


def main():
    name = sys.argv.pop(1)
    atheris.Setup(sys.argv, TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
