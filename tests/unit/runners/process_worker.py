"""A worker to be killed: starts a runner with two children, says who there is, and waits."""

from process_bed import lay_bed

if __name__ == "__main__":
    with lay_bed(concurrency=2) as bed:
        bed.loop.run_until(lambda: len(bed.pids()) == 2)
        bed.submit("work 1000", "work 1000")
        print(bed.zygote, *bed.pids(), flush=True)
        bed.loop.run_until(lambda: False, within=60)
