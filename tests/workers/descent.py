"""Who descends from whom, from /proc. The scripted handler asks too, so this imports nothing of ours."""

from pathlib import Path


def descendants(pid):
    """List the children of a process, and theirs."""
    children = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, todo = [], [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found
