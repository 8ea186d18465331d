"""Counts the messages of quorum queues as each replica has them, and has a queue led by another one.

The management API tells what a leader's node said some seconds ago, and nothing true of a queue whose leader is gone. A
replica also counts what it has handed to a consumer, and what the dead-letter worker of a rung has in its hands.
"""

import re
from collections.abc import Iterable, Mapping

from redrive_testbed.shell import wait_until

_COUNT = """
    [{element(4, amqqueue:get_name(Q)),
      try
        {Name, _} = amqqueue:get_pid(Q),
        {ok, {_, N}, _} = ra:local_query({Name, node()}, fun rabbit_fifo:query_messages_total/1),
        N
      catch _:_ -> unknown
      end} || Q <- rabbit_amqqueue:list(<<"%s">>)].
"""
_COUNTED = re.compile(r'\{\s*<<"((?:[^"\\]|\\.)*)">>,\s*(\d+|unknown)\s*\}')

Counts = Mapping[str, int | None]


def read_counts(told: str) -> dict[str, int | None]:
    """Read what a node told of its replicas; None where one does not answer."""
    return {name: None if count == "unknown" else int(count) for name, count in _COUNTED.findall(told)}


def add_up(several: Iterable[Counts]) -> dict[str, int | None]:
    """Give of each queue the most that any replica has; None where one does not answer."""
    most: dict[str, int | None] = {}
    for counts in several:
        for name, count in counts.items():
            known = most.get(name, 0)
            most[name] = None if count is None or known is None else max(count, known)
    return most


def is_at_rest(counts: Counts) -> bool:
    """Say whether all replicas answer, and nothing is in any of them."""
    return bool(counts) and all(count == 0 for count in counts.values())


def count_all(nodes, vhost):
    """Ask every node that runs."""
    told = (node.rabbitmqctl("eval", _COUNT % vhost) for node in nodes if node.running())
    return add_up(read_counts(one) for one in told)


def elect(node, vhost, queue):
    """Have another replica lead a queue: a new leader looks which of the consumers that it knows of live."""
    found = node.api.get("queues", vhost, queue)
    others = [name for name in found.get("online", ()) if name != found.get("leader")]
    if others:
        lead(node, vhost, queue, others[0])


def lead(asked, vhost, queue, node):
    """Have a queue be led by a node, and wait until it is."""
    found = f'{{ok, Queue}} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"{vhost}">>, queue, <<"{queue}">>))'
    asked.rabbitmqctl("eval", f"{found}, rabbit_quorum_queue:transfer_leadership(Queue, '{node}').")
    leader = lambda: asked.api.get("queues", vhost, queue).get("leader")  # noqa: E731
    wait_until(f"{node} does not lead {queue}", lambda: leader() == node, within=60)
