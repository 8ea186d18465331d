"""Takes an operator's turns in a process of its own, whose memory and open files can be watched.

It ends when whoever started it does: nothing is written to its standard input, ever.
"""

import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from faults.stage import OPERATOR_SECONDS, VHOST, take_turn

from redrive.amqp import Amqp
from redrive.endpoints import parse_amqp_url, parse_management_url
from redrive.errors import BrokerError, RedriveError
from redrive.management import Management
from redrive.spec import parse_consumer
from redrive.topology import Wanted


class OperatorProcess:
    """In place of the thread `faults.stage.Operator`."""

    def __init__(self, stage):
        admin = stage.nodes[0].settings.credentials
        facts = {
            "url": stage.url,
            "management": stage.nodes[0].management_url,
            "user": admin.user,
            "password": admin.password,
            "consumer": stage.raw,
        }
        told = stage.bed.folder / "turns.json"
        told.touch(mode=0o600)
        told.write_text(json.dumps(facts))
        # A copy of the path of modules: it runs the same code as we do.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "faults.turns", str(told)], stdin=subprocess.PIPE, env=environment
        )
        self.pid = self._process.pid

    def stop(self):
        """End it; one that ended by itself is an error of the trial's."""
        ended = self._process.poll()
        self._process.stdin.close()
        self._process.wait(240)
        assert ended in (None, 0), f"the operator's turns ended by themselves with {ended}"


def main():
    facts = json.loads(Path(sys.argv[1]).read_text())
    wanted = Wanted.of(parse_consumer(facts["consumer"]))
    api = parse_management_url(facts["management"]).as_user(facts["user"], facts["password"])
    while not select.select([sys.stdin], [], [], OPERATOR_SECONDS)[0]:
        with suppress(RedriveError, BrokerError, OSError), Amqp([parse_amqp_url(facts["url"])]) as amqp:
            take_turn(amqp, Management(api, vhost=VHOST), wanted)


if __name__ == "__main__":
    main()
