"""A whole worker on a broker in memory: the runtime of the real one, with the doors and the runner of a test."""

from collections.abc import Callable
from dataclasses import dataclass

from redrive.config import WorkerConfig
from redrive.handler import Handler
from redrive.message import Message
from redrive.runners import Ended
from redrive.runtime.core import Runtime
from redrive.runtime.held import Held
from redrive.runtime.ports import Refusal
from redrive.settle import Disposal
from redrive.testing.inline import InlineRunner
from redrive.testing.memory import MemoryConsumer, MemoryPublisher
from redrive.testing.vhost import Vhost

POD = "in-memory"

# Told of a message that has left the worker's hands, and of what its handler raised.
Settled = Callable[[Held, Disposal, BaseException | None], None]


@dataclass(frozen=True, slots=True)
class Chance:
    """What a worker draws: numbers from 0 to 1, for jitter, and ids for messages that have none."""

    random: Callable[[], float]
    new_id: Callable[[], str]


class MemoryWorker:
    """Takes from the vhost what it is allowed to, and runs it."""

    def __init__(
        self, config: WorkerConfig, handler: Handler, vhost: Vhost, *, chance: Chance, settled: Settled
    ) -> None:
        self._loop = vhost.loop
        self._runner = InlineRunner(handler, self._loop)
        self._consumer = MemoryConsumer(vhost, self._loop)
        self._publisher = MemoryPublisher(vhost, self._loop)
        self._settled = settled
        self.is_alive = True
        self._runtime = Runtime(
            config,
            loop=self._loop,
            consumer=self._consumer,
            publisher=self._publisher,
            runner=self._runner,
            witness=_Witness(self),
            random=chance.random,
            new_id=chance.new_id,
            pod=POD,
            finished=self._finished,
            clock=self._loop.clock,
        )
        self._consumer.allow(0)
        self._runtime.start()

    @property
    def is_running(self) -> bool:
        """Whether a handler is being called just now."""
        return self._runner.is_running

    def take(self, count: int | None) -> None:
        """Take so many messages, None for all there are, and bring each to its end. Only tries in place take time."""
        self._consumer.allow(count)
        while self._turn():
            pass
        self._consumer.allow(0)

    def drain(self) -> None:
        """Stop as at SIGTERM."""
        self._runtime.drain()

    def kill(self) -> None:
        """Die as at SIGKILL: nothing more is said to the broker, which takes back what was unacknowledged.

        A real worker may die in the few milliseconds for which acknowledgements wait, too, and what it had done is run
        again; here only what it was doing is, so that a test knows what it has to expect.
        """
        self._runtime.flush()
        self.is_alive = False
        self._publisher.stop()
        self._runner.stop()
        self._consumer.stop()

    def tell(self, held: Held, disposal: Disposal) -> None:
        raised = self._runner.raised.pop(held, None)
        if self.is_alive:
            self._settled(held, disposal, raised)

    def _turn(self) -> bool:
        """Do what can be done; say whether there is more, such as what the next acknowledgements let in."""
        self._loop.settle()
        if not self.is_alive:
            return False
        if self._runtime.is_working:
            return self._loop.advance_to_next()
        self._runtime.flush()  # they wait for others, or for a moment, and nothing else is to come
        return not self._loop.is_settled

    def _finished(self, _exit_code: int) -> None:
        self.is_alive = False


class _Witness:
    """Of all that a runtime tells, a test wants to know what became of each message."""

    def __init__(self, worker: MemoryWorker) -> None:
        self._worker = worker

    def settled(self, held: Held, disposal: Disposal) -> None:
        self._worker.tell(held, disposal)

    def received(self, message: Message) -> None: ...
    def ended(self, ended: Ended) -> None: ...
    def refused(self, held: Held, refusal: Refusal) -> None: ...
    def consuming(self, prefetch: int) -> None: ...
    def lost(self, reason: str) -> None: ...
    def cancelled(self) -> None: ...
    def in_flight(self, count: int) -> None: ...
    def failed(self, reason: str) -> None: ...
