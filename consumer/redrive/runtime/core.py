"""The story of a message in a worker: it is delivered, run, decided about and settled. One thread, and no waiting.

Who may run: a message that is new to this queue, at once. One that is redelivered may have killed the worker that had
it, so it goes round the queue once more as a suspect, and a suspect runs alone (`isolation`). A suspect that is
redelivered has killed its worker while alone: that is a crash, and is counted.

Stopping is polite: what has begun is finished, what has not is sent to the end of the queue, without a mark on it.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from redrive.config import WorkerConfig
from redrive.delivery import Delivery
from redrive.message import is_expired, read_message, welcome_back
from redrive.outcome import Crashed, Expired, Result, RetryLater
from redrive.retry import decide
from redrive.runners import Ended, Runner
from redrive.runtime.drain import Drain, Once, Progress
from redrive.runtime.gate import Gate
from redrive.runtime.held import Held, Stage, hold
from redrive.runtime.isolation import Isolation
from redrive.runtime.neighbours import Neighbours
from redrive.runtime.ports import Consumer, Loop, Publisher, Session
from redrive.runtime.recall import Recall
from redrive.runtime.settling import Settling
from redrive.runtime.tries import Tries
from redrive.runtime.witness import Witness
from redrive.settle import GiveBack, Suspect

# Whether fewer should be taken is thought over at once when messages of this many bytes come.
LARGE_BODY = 65_536

# How long the last answer of the broker is waited for.
GOODBYE_SECONDS = 3.0

_NOW = partial(datetime.now, UTC)
_DIED_ALONE = Crashed("the worker ended while it ran this message and nothing else", alone=True)


class Runtime:
    """One worker. Give it its doors, `start` it, `drain` it; `finished` is told the exit code."""

    def __init__(
        self,
        config: WorkerConfig,
        *,
        loop: Loop,
        consumer: Consumer,
        publisher: Publisher,
        runner: Runner,
        witness: Witness,
        random: Callable[[], float],
        new_id: Callable[[], str],
        pod: str,
        finished: Callable[[int], None],
        clock: Callable[[], datetime] = _NOW,
    ) -> None:
        self._config = config
        self._loop = loop
        self._consumer = consumer
        self._publisher = publisher
        self._runner = runner
        self._witness = witness
        self._random = random
        self._new_id = new_id
        self._clock = clock
        self._finished = finished
        self._settling = Settling(
            config,
            loop=loop,
            publisher=publisher,
            clock=clock,
            random=random,
            pod=pod,
            witness=witness,
            freed=self._freed,
            silent=self._make_room,
        )
        self._hands = self._settling.hands
        self._tries = Tries(config.policy, runner, loop, self._decide)
        self._gate = Gate(config.concurrency, loop=loop, consumer=consumer, settling=self._settling)
        self._neighbours = Neighbours(self._tries, self._settling, self._gate, max_delay=config.policy.max_delay)
        self._isolation = Isolation(self._neighbours, self._gate.pause, self._let_others_in)
        self._recall = Recall()
        self._session: Session | None = None
        self._ready: list[Held] = []
        self._dispatching = False
        self._drain: Drain | None = None

    def start(self) -> None:
        self._runner.start(self._ended, self._fail)
        self._publisher.start()
        self._consumer.start(self, prefetch=self._gate.prefetch)

    @property
    def is_consuming(self) -> bool:
        return self._session is not None and not self.is_draining

    @property
    def is_draining(self) -> bool:
        return self._drain is not None

    @property
    def running(self) -> int:
        """How many messages the handlers have."""
        return self._tries.running

    @property
    def is_working(self) -> bool:
        """Say whether anything is in flight."""
        return self._neighbours.are_working

    @property
    def held(self) -> int:
        """How many deliveries the broker has not heard back about: those of the handlers, before them and after."""
        return self._hands.unheard

    def flush(self) -> None:
        self._settling.flush()

    def drain(self, exit_code: int = 0) -> None:
        """Take nothing more, give back what has not begun, finish what has, and say so."""
        if self._drain is not None:
            return
        self._drain = Drain(self._loop, self, exit_code)
        self._gate.pause(self._drain.paused)
        self._tries.stop_trying()
        self._take_back()
        suspect = self._isolation.forget()
        waiting = dict.fromkeys([*self._pop_ready(), *([suspect] if suspect is not None else [])])
        for held in waiting:
            if held.stage is Stage.WAITING:
                self._gate.send_round(held, GiveBack())
        self._drain.look()

    def progress(self) -> Progress:
        return Progress(running=self._tries.running, unsettled=self._hands.held + self._settling.sending)

    def finish(self, exit_code: int) -> None:
        """Say goodbye. What the broker has not heard about by now, it gives to another worker."""
        self._settling.flush()
        session, self._session = self._session, None

        def leave() -> None:
            self._consumer.stop()
            self._publisher.stop()
            self._runner.stop()
            self._finished(exit_code)

        if session is None:
            leave()
        else:
            goodbye = Once(leave)
            session.barrier(goodbye)
            self._loop.later(GOODBYE_SECONDS, goodbye)

    # What comes from the queue.

    def consuming(self, session: Session) -> None:
        self._session = session
        self._hands.begin(session)
        self._recall.begin(self._loop.now())
        self._witness.consuming(self._gate.prefetch)

    def delivered(self, session: Session, delivery: Delivery) -> None:
        known = self._recall.find(delivery, self._loop.now()) if delivery.redelivered else None
        if known is not None:
            self._meet_again(session, known, delivery)
            return
        attempts = self._config.policy.max_attempts
        now = self._clock()
        message = welcome_back(read_message(delivery, now=now, max_attempts=attempts, new_id=self._new_id))
        held = hold(message, delivery)
        self._hands.take(session, held, delivery.tag)
        self._witness.received(message)
        self._gate.note_size(len(delivery.body))
        if len(delivery.body) > LARGE_BODY and self._may_change_prefetch:
            self._gate.lower()  # before there are many
        self._admit(held, now)

    def cancelled(self, session: Session) -> None:
        """Finish what we hold: if the queue was deleted, nobody else has it.

        The broker also does this to a consumer that takes too long, and then gives what it had to others, or to us
        again: so it is remembered too.
        """
        self._witness.cancelled()
        if session is self._session:
            self._session = None
        for held in self._hands.unheard_of(session):
            self._recall.keep(held)
        self._settling.retire(session)

    def lost(self, session: Session, reason: str) -> None:
        self._witness.lost(reason)
        if session is self._session:
            self._session = None
        taken = self._settling.lost(session)
        for held in taken:
            self._recall.keep(held)
        self._take_back()
        self._ready = [held for held in self._ready if held.is_ours]
        self._gate.forget_lost()
        for held in taken:
            if held.stage is Stage.WAITING:
                self._isolation.lost(held)
        self._dispatch_soon()
        self._look_at_drain()

    def _meet_again(self, session: Session, held: Held, delivery: Delivery) -> None:
        """Take back up what we had when the connection broke; it is nobody's suspect, for we are alive."""
        is_waiting_here = held.stage is Stage.WAITING and held.is_ours
        self._hands.take_again(session, held, delivery.tag)
        if held.stage is not Stage.WAITING:
            self._settling.go_on(held)
        elif not is_waiting_here:
            self._admit(held, self._clock())

    def _admit(self, held: Held, now: datetime) -> None:
        message = held.message
        redelivered = message.redelivered
        if is_expired(message, now):
            self._decide(held, Expired())
        elif message.story.suspect and redelivered and not self._is_cleared(held):
            self._decide(held, _DIED_ALONE)
        elif message.story.suspect:
            self._isolate(held)
        elif redelivered:
            self._gate.note_suspect()
            self._gate.send_round(held, Suspect())
        elif self.is_draining:
            self._gate.send_round(held, GiveBack())
        else:
            self._gate.note_innocent()
            self._ready.append(held)
            self._dispatch_soon()
            if self._gate.is_new and self._may_change_prefetch:
                self._gate.begin()

    def _is_cleared(self, held: Held) -> bool:
        """Say whether we had one like it, and live. That is remembered once, and it may be admitted more often."""
        if not held.is_cleared:
            held.is_cleared = self._recall.find_over(held.delivery, self._loop.now()) is not None
        return held.is_cleared

    # Running.

    def _dispatch_soon(self) -> None:
        """Hand over what one reading of the socket brought together."""
        if self._ready and not self._dispatching and self._isolation.suspect is None:
            self._dispatching = True
            self._loop.soon(self._dispatch)

    def _dispatch(self) -> None:
        self._dispatching = False
        if self._isolation.suspect is None and self._ready:
            self._tries.submit(self._pop_ready())
            self._witness.in_flight(self._tries.running)

    def _ended(self, several: list[Ended]) -> None:
        for ended in several:
            self._gate.note_run(ended.seconds)
            self._witness.ended(ended)
        self._tries.ended(several)
        self._witness.in_flight(self._tries.running)
        if not self._tries.running and not self._ready:
            self._settling.flush()
        if self._may_change_prefetch:
            self._gate.think_over()
        self._look_at_drain()

    def _decide(self, held: Held, result: Result) -> None:
        message = held.message
        policy = self._config.policy
        outcome = decide(policy, message.attempt, result, random=self._random, crashes=message.story.crashes)
        if isinstance(outcome, RetryLater) and not outcome.delay and held is not self._isolation.suspect:
            self._gate.send_round(held, outcome)
        else:
            self._settling.settle(held, outcome)

    def _fail(self, reason: str) -> None:
        self._witness.failed(reason)
        self.drain(exit_code=1)

    def _take_back(self) -> None:
        """Have in our own hands again what the runner has not begun."""
        fresh = self._tries.take_back()
        self._ready[:0] = [held for held in fresh if held is not self._isolation.suspect]
        self._isolation.taken_back(fresh)

    def _pop_ready(self) -> list[Held]:
        several, self._ready = self._ready, []
        return several

    # Suspects.

    def _isolate(self, held: Held) -> None:
        self._gate.note_suspect()
        is_other_here = self._isolation.suspect is not None
        if self.is_draining or (is_other_here and self._gate.is_closed):
            self._gate.send_round(held, GiveBack())
        elif is_other_here or self._neighbours.is_hindered(held):
            self._neighbours.give_back(held)  # it could come to us again at once
        elif self._gate.prefetch == 1 and self._hands.held == 1 and not self._neighbours.are_working:
            self._isolation.begin_at_once(held)
        else:
            self._isolation.begin(held)
            self._take_back()
            self._isolation.look()

    def _let_others_in(self) -> None:
        if self.is_draining:
            return
        self._gate.take_one_by_one()
        self._dispatch_soon()

    # What has left our hands.

    def _freed(self, held: Held) -> None:
        if held is self._isolation.suspect:
            self._settling.flush()
        if held.message.story.suspect and held.stage is Stage.SENT:
            self._recall.keep(held, since=self._loop.now())
        self._isolation.end(held)
        self._isolation.look()
        if held.refusals:
            self._make_room()
        if self._drain is not None:
            self._loop.soon(self._look_at_drain)

    def _make_room(self) -> None:
        """Have others come beside what is kept; not beside a suspect, which has the worker to itself."""
        self._isolation.look()
        if self._isolation.suspect is None:
            self._gate.make_room()

    def _look_at_drain(self) -> None:
        if self._drain is not None:
            self._drain.look()

    @property
    def _may_change_prefetch(self) -> bool:
        return not self.is_draining and self._isolation.suspect is None
