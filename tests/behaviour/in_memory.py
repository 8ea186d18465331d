"""The suite's stage in memory: `InMemoryBroker`, the same handler, and no time that really passes."""

import importlib

from behaviour.stage import HANDLERS, Stage, manifest, read_letter
from redrive.testing import InMemoryBroker


class MemoryStage(Stage):
    is_exact = True
    user = "guest"

    def __init__(self, name, journal, monkeypatch):
        super().__init__(name)
        monkeypatch.syspath_prepend(HANDLERS)
        self._errands = importlib.import_module("errands")
        self._journal = journal
        self._monkeypatch = monkeypatch
        self.broker = InMemoryBroker.from_manifest(manifest(name))

    def publish(self, body, properties, *, exchange, routing_key, redelivered):
        self.broker.publish(
            body, properties=properties, exchange=exchange, routing_key=routing_key, redelivered=redelivered
        )

    def wait_for(self, name):
        while self.broker.waiting or self.broker.sleeping:
            self._play(self.broker.run_until_idle)  # until a worker dies
        assert self.is_over(name), self.broker.runs

    def journal(self):
        return self._errands.read_journal(self._journal)

    def letters(self):
        return [read_letter(letter.message) for letter in self.broker.dead_letters]

    def requeue(self, letter):
        [found] = [one for one in self.broker.dead_letters if one.id == letter.message.id]
        self.broker.requeue(found)

    def drain_during(self, name, *, gives_back):
        self._play(self.broker.run, hold=self.broker.drain_worker)

    def count_waiting(self):
        return len(self.broker.waiting)

    def restart(self):
        self.broker.drain_worker()

    def _die(self):
        self.broker.kill_worker()
        raise ChildProcessError("nobody listens any more")

    def _play(self, run, **steps):
        with self._monkeypatch.context() as patched:
            patched.setenv("ERRANDS", str(self._journal))
            for name, step in {"pause": self.broker.advance, "die": self._die, **steps}.items():
                patched.setattr(self._errands, name, step)
            run()
