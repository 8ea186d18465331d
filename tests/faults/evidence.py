"""Reads what a trial left behind: notes of the runs, logs of the workers, dead letters, and what still waits."""

import json
import re
from dataclasses import asdict, replace

from faults.accounting import Letter, Run
from faults.stage import VHOST
from workers.bed import QUEUE

from redrive.ladder import ORPHANS
from redrive.letter import read_death

TIMED_OUT = "redrive.TimedOut"
CRASHED = "redrive.Crashed"

# How a worker tells that it has ended a process because memory was short, and that the kernel was faster.
_FOR_MEMORY = re.compile(
    r"^ended because the container had used \d+ MiB of its \d+ MiB|: the container was out of memory$"
)


def read_runs(ledger):
    """Pair beginnings with their ends; the last line may be cut off where a machine died, and no process cuts one."""
    runs = {}
    for line in ledger.read_text().splitlines():
        note = json.loads(line)
        if "id" in note:
            facts = {key: note[key] for key in ("attempt", "what", "snoozes", "suspect")}
            runs[note["run"]] = Run(message=note["id"], began=note["at"], ended=None, **facts)
        else:
            run = runs[note["run"]]
            runs[note["run"]] = Run(**{**_fields(run), "ended": note["at"]})
    return list(runs.values())


def _fields(run):
    return {name: getattr(run, name) for name in Run.__dataclass_fields__}


def read_timeouts(workers):
    """List the attempts that a worker says it has ended, because they took too long."""
    return {
        (line["id"], line["attempt"])
        for worker in workers
        for line in worker.told(containing=TIMED_OUT)
        if line.get("event") in ("retry", "dead") and line.get("errorType") == TIMED_OUT
    }


def told_timeouts(ledger, letters):
    """List the attempts of which the next one, or the dead letter, says that they took too long.

    What a message brings along outlives the log of its pod.
    """
    notes = map(json.loads, ledger.read_text().splitlines())
    retried = {(note["id"], note["attempt"] - 1) for note in notes if note.get("failed_by") == TIMED_OUT}
    return retried | {(letter.message, letter.attempt) for letter in letters if letter.failed_by == TIMED_OUT}


def was_ended_for_memory(ledger, name):
    """Say whether a message brought along that its process was ended because memory was short; only a worker that has
    outlived that process can have told it.
    """
    notes = map(json.loads, ledger.read_text().rpartition("\n")[0].splitlines())
    mine = (note for note in notes if note.get("id") == name and note.get("failed_by") == CRASHED)
    return any(_FOR_MEMORY.search(note["error"]) for note in mine)


def write_findings(file, found):
    """Write down what is known of a trial and is in no other file: all but the runs."""
    file.write_text(json.dumps(asdict(replace(found, runs=())), default=sorted, indent=1) + "\n")


def take_letters(bed):
    """Take the dead letters, so that the queue is empty."""
    return [to_letter(message) for message in bed.letters()]


def to_letter(message):
    death = read_death(message.headers)
    return Letter(
        message=message.id,
        reason=death.reason and str(death.reason),
        attempt=message.attempt,
        crashes=message.story.crashes,
        failed_by=message.story.error_type,
        dead_at=death.at and death.at.timestamp(),
    )


def depths(stage):
    """Count the messages of each queue that can hold something of the consumer's, but for its dead letters."""
    queues = stage.living.api.get("queues", VHOST)
    return {
        queue["name"]: queue.get("messages", 0)
        for queue in queues
        if queue["name"] in (QUEUE, ORPHANS) or queue["name"].startswith("redrive.delay.")
    }
