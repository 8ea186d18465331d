"""Runs every target with inputs that atheris makes up, guided by what they reach: `make fuzz`.

Each target is a process of its own, since the fuzzer ends it. What a target choked on is kept in `fuzz-findings`.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from fuzz.seeds import SEEDS
from fuzz.targets import TARGETS

FINDINGS = Path("fuzz-findings")


def main():
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("target", nargs="*", choices=[*TARGETS, []], help="all, unless some are named")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    asked = parser.parse_args()
    failed = [name for name in asked.target or TARGETS if _run(name, asked.seconds) != 0]
    print(f"failed: {', '.join(failed)}, see {FINDINGS}" if failed else "nothing was found")
    return 1 if failed else 0


def _run(name, seconds):
    print(f"--- {name} for {seconds} s", flush=True)
    place = FINDINGS / name
    corpus = place / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(SEEDS[name]):
        (corpus / f"seed-{number}").write_bytes(seed)
    words = [sys.executable, "-m", "fuzz.one", name, f"-max_total_time={seconds}", "-max_len=4096", "-timeout=20"]
    words += [f"-artifact_prefix={place}/", "-print_final_stats=1", str(corpus)]
    return subprocess.run(words, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
