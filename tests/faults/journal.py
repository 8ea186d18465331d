"""Keeps what became of many messages on disk, and accounts for them part by part: memory does not grow with the load.

Messages are numbered. Each part has those of some thousand numbers: what was published of them, their runs, and their
letters. A part is judged with what was broken while one of its messages lived, and with nothing else.
"""

import json
from collections import Counter
from dataclasses import asdict, fields, replace
from pathlib import Path

from faults.accounting import SLACK_SECONDS, Account, Findings, Letter, Published, Run, account
from faults.scripts import SCRIPTS

PART = 2000
MOST_OPEN = 4
_SUMS = [one.name for one in fields(Account) if one.name != "complaints"]


def number_of(name: str) -> int:
    """Read the number in `m-17-flaky`."""
    return int(name.split("-")[1])


class Pages:
    """Lines of JSON in files by part; few are open at a time."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder, self._kind = folder, kind
        self._open: dict[int, object] = {}

    def add(self, name: str, line: dict) -> None:
        part = number_of(name) // PART
        if part not in self._open:
            if len(self._open) >= MOST_OPEN:
                self.close()
            self._open[part] = (self._folder / f"{self._kind}-{part}").open("a")
        self._open[part].write(json.dumps(line) + "\n")

    def close(self) -> None:
        """Have everything on disk."""
        for file in self._open.values():
            file.close()
        self._open.clear()

    def read(self, part: int):
        file = self._folder / f"{self._kind}-{part}"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


class Register:
    """What was published: a mapping that can only be added to, and counted."""

    def __init__(self, folder: Path) -> None:
        self.pages = Pages(folder, "published")
        self._count = 0

    def __setitem__(self, name: str, published: Published) -> None:
        self.pages.add(
            name, {"name": name, "script": published.script.name, "at": published.at, "sent": published.sent}
        )
        self._count += 1

    def __len__(self) -> int:
        return self._count

    def read(self, part: int) -> dict[str, Published]:
        lines = self.pages.read(part)
        return {line["name"]: Published(SCRIPTS[line["script"]], line["at"], line["sent"]) for line in lines}


class LetterBox:
    """Dead letters, each written down before it is acknowledged; one that comes again is counted again."""

    def __init__(self, folder: Path) -> None:
        self.pages = Pages(folder, "letters")

    def add(self, letter: Letter, *, at: float) -> None:
        self.pages.add(letter.message, {**asdict(letter), "at": at})

    def read(self, part: int) -> list[tuple[Letter, float]]:
        return [(Letter(**{k: v for k, v in line.items() if k != "at"}), line["at"]) for line in self.pages.read(part)]


def sort_runs(ledger: Path, folder: Path) -> Pages:
    """Copy the notes of the handlers into parts. Only runs that have not ended yet are in memory, by their own ids."""
    pages, whose = Pages(folder, "runs"), {}
    with ledger.open() as lines:
        for text in lines:
            if not text.endswith("\n"):
                break  # a note that was being written when its machine died
            note = json.loads(text)
            name = whose.setdefault(note["run"], note["id"]) if "id" in note else whose.pop(note["run"])
            pages.add(name, note)
    pages.close()
    return pages


def pair_runs(notes) -> list[Run]:
    """Make runs of the notes of one part; one that was killed has no end."""
    runs = {}
    for note in notes:
        if "id" in note:
            facts = {key: note[key] for key in ("attempt", "what", "snoozes", "suspect")}
            runs[note["run"]] = Run(message=note["id"], began=note["at"], ended=None, **facts)
        else:
            runs[note["run"]] = replace(runs[note["run"]], ended=note["at"])
    return list(runs.values())


def account_by_parts(register: Register, runs: Pages, letters: LetterBox, rest: Findings) -> Account:
    """Account for all that was published; `rest` has what belongs to no part. Numbers beyond the last are unknown."""
    register.pages.close()
    letters.pages.close()
    parts = range((len(register) + PART - 1) // PART + 1)
    accounts = [account(_part(number, register, runs, letters, rest)) for number in parts]
    sums = Counter()
    for one in accounts:
        sums.update({name: getattr(one, name) for name in _SUMS})
    return Account(
        **{name: sums[name] for name in _SUMS}, complaints=tuple(c for one in accounts for c in one.complaints)
    )


def _part(number, register, runs, letters, rest):
    published = register.read(number)
    own_runs = pair_runs(runs.read(number))
    own_letters = letters.read(number)
    began = min((one.at for one in published.values()), default=0.0)
    ends = [run.ended or run.began for run in own_runs] + [at for _, at in own_letters]
    ended = max(ends, default=float("inf"))
    return replace(
        rest,
        published=published,
        runs=own_runs,
        letters=[letter for letter, _ in own_letters],
        timed_out={one for one in rest.timed_out if number_of(one[0]) // PART == number},
        disturbances=[one for one in rest.disturbances if one.began <= ended and one.healed >= began],
        deaths=[at for at in rest.deaths if began <= at <= ended + SLACK_SECONDS],
    )
