"""A worker in a control group with little memory: runs the bodies that it is given, and says what came of them.

`memory_worker.py GROUP '{"concurrency": 2, "bodies": ["succeed"], "alone": false, "blind": false}'`: a blind one has no
look at its memory while they run.
"""

import json
import os
import sys
from pathlib import Path


def main(group: Path, *, concurrency: int, bodies: list[str], alone: bool, blind: bool) -> None:
    (group / "cgroup.procs").write_text(str(os.getpid()))
    from process_bed import lay_bed, make_job

    from redrive.memory import find_memory
    from redrive.runners import rounds

    memory = find_memory()
    assert memory
    if blind:
        rounds.next_look = lambda _: 1000.0
    with lay_bed(concurrency=concurrency, memory=memory) as bed:
        bed.run("succeed")
        jobs = [make_job(body, alone=alone) for body in bodies]
        bed.submit(*jobs)
        bed.wait_for(*jobs, within=60)
        ended = [bed.result_of(job) for job in jobs]
        results = [[type(one).__name__, getattr(one, "error", ""), getattr(one, "alone", None)] for one in ended]
        born = max(bed.runner._household.seats) + 1
        print(json.dumps({"results": results, "kills": memory.count_kills(), "born": born}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), **json.loads(sys.argv[2]))
