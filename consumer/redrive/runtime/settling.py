"""Carries out what was decided: publishes, waits for the confirm, acknowledges; and never in another order.

What the broker refuses stays in our hands, unacknowledged, and is tried again with growing pauses. Acknowledgements are
sent many at a time: those that have not been sent when the worker dies are duplicates, so they wait for a few
milliseconds at most, and never while nothing else is done. Handlers that run side by side do not end in the order in
which their messages came: within that time one acknowledgement mostly comes to speak for all of them.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import assert_never

from redrive.config import WorkerConfig
from redrive.outcome import Cause, DeadLetter, DeadReason, Done
from redrive.runtime.hands import Hands
from redrive.runtime.held import Held, Stage
from redrive.runtime.ports import Loop, Publisher, Refusal, Session, Timer
from redrive.runtime.witness import Witness
from redrive.settle import Acknowledge, Disposal, GiveBack, Park, Return, Send, circumstances, plan_settlement

BATCH = 64
LONGEST_PENDING = 0.01  # seconds

# How often it is looked whether the broker still says nothing to what it was sent: twice, and it is silent about it.
SILENT_SECONDS = 1.0

SHORTEST_PAUSE = 0.5
LONGEST_PAUSE = 30.0

Random = Callable[[], float]


class Settling:
    """What is in our hands, and how it leaves them. `freed` is called when something has, `silent` while the
    broker says nothing to something that it was sent."""

    def __init__(
        self,
        config: WorkerConfig,
        *,
        loop: Loop,
        publisher: Publisher,
        clock: Callable[[], datetime],
        random: Random,
        pod: str,
        witness: Witness,
        freed: Callable[[Held], None],
        silent: Callable[[], None],
    ) -> None:
        self._config = config
        self._loop = loop
        self._publisher = publisher
        self._clock = clock
        self._random = random
        self._pod = pod
        self._witness = witness
        self._freed = freed
        self._silent = silent
        self.hands = Hands()
        self._books = self.hands.books
        self._retired: set[Session] = set()
        self._flush_timer: Timer | None = None
        self._listening: Timer | None = None
        self._pending = 0
        self._batch = self._look_at = BATCH
        self._most_left = 0  # of those that are done and not acknowledged, because others before them are not done
        self._sending = 0

    @property
    def sending(self) -> int:
        """Say how many are on their way to the broker; those that it refused and that wait are not."""
        return self._sending

    def expect(self, prefetch: int, *, ahead: int) -> None:
        """Be told how many may be unacknowledged, and how many of them ahead of the handlers.

        What waits to be acknowledged keeps others away: half of those ahead at most, so that no handler waits for it.
        """
        self._batch = max(1, min(BATCH, prefetch // 4))
        self._most_left = ahead // 2
        self._look_at = self._pending + self._batch

    def settle(self, held: Held, disposal: Disposal) -> None:
        """Do this to it; if the broker has taken it back, when it comes again."""
        held.disposal = disposal
        held.stage = Stage.DECIDED
        if held.is_ours:
            self._carry_out(held, disposal)
        else:
            self._freed(held)

    def go_on(self, held: Held) -> None:
        """Do for a redelivery what had been decided before."""
        if held.again is not None:
            held.again.cancel()
        if held.stage is Stage.DECIDED and held.disposal is not None:
            self._carry_out(held, held.disposal)
        elif held.stage is Stage.SENT:
            self._let_go(held)

    def lost(self, session: Session) -> list[Held]:
        """Close the book of a session that is gone; give what the broker took back."""
        book = self._books.pop(session, None)
        is_retired = session in self._retired
        self._retired.discard(session)
        if book is None:
            return []
        self._pending -= book.pending
        for held in book.unheard:
            held.book = None
            held.is_adrift = is_retired
        if is_retired:
            self.hands.adrift.update(book.held.values())
        return book.unheard

    def retire(self, session: Session) -> None:
        """Close a session that nothing more comes by, once all of it is settled."""
        self._retired.add(session)
        self._close_retired()

    def flush(self) -> None:
        """Send the acknowledgements that wait."""
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        for book in self._books.values():
            if book.pending:
                book.acknowledge()
        self._pending = 0
        self._look_at = self._batch
        if self._retired:
            self._close_retired()

    def _acknowledge_soon(self) -> None:
        self._pending += 1
        if self._pending >= self._look_at:
            self._acknowledge_together()
        if self._pending and self._flush_timer is None:
            self._flush_timer = self._loop.later(LONGEST_PENDING, self.flush)

    def _acknowledge_together(self) -> None:
        """Send what one acknowledgement can speak for; what is left over waits, as long as it keeps nobody away."""
        for book in self._books.values():
            book.acknowledge_together()
        self._pending = sum(book.pending for book in self._books.values())
        self._look_at = self._pending + self._batch
        if self._pending > self._most_left:
            self.flush()
        elif self._retired:
            self._close_retired()

    def _close_retired(self) -> None:
        for session in list(self._retired):
            book = self._books.get(session)
            if book is None or book.settled:
                self._books.pop(session, None)
                self._retired.discard(session)
                session.close()

    def _carry_out(self, held: Held, disposal: Disposal) -> None:
        if isinstance(disposal, Done):  # what most messages come to: it has one plan, whatever the circumstances
            self._let_go(held)
            return
        held.planned_at = self._clock()
        at = circumstances(held.planned_at, self._pod, self._publisher.frame_max, self.has_queue(held))
        plan = plan_settlement(self._config, held.message, disposal, at)
        match plan:
            case Send(exchange, routing_key, properties, instead):
                held.disposal = instead or disposal
                held.stage = Stage.SENDING
                self._sending += 1
                if self._listening is None:
                    self._listening = self._loop.later(SILENT_SECONDS, self._listen)
                confirmed = partial(self._confirmed, held)
                self._publisher.send(exchange, routing_key, held.message.body, properties, confirmed)
            case Acknowledge():
                self._let_go(held)
            case Park(instead):
                held.disposal = instead or disposal
                self._hand_back(held, requeue=False)
            case Return():
                self._return(held)
            case _:
                assert_never(plan)

    def has_queue(self, held: Held) -> bool:
        """Say whether its queue is there to take it back."""
        return held.book is not None and held.book.session not in self._retired

    def _confirmed(self, held: Held, refusal: Refusal | None) -> None:
        self._sending -= 1
        if refusal is None:
            self._let_go(held)
            return
        held.stage = Stage.DECIDED
        held.refusals += 1
        self._witness.refused(held, refusal)
        if refusal.hopeless and self._config.queue_parks and self.has_queue(held):
            self._give_up(held, refusal)
        else:
            held.again = self._loop.later(self._pause(held.refusals), partial(self._try_again, held))
            self._freed(held)

    def _listen(self) -> None:
        """Note to what there is no answer; what is asked for when it is refused, is asked for then too."""
        self._listening = None
        unanswered = [held for held in self.hands.every if held.stage is Stage.SENDING]
        for held in unanswered:
            held.silences += 1
        if self._sending:  # also what the broker has taken back meanwhile, for it comes again
            self._listening = self._loop.later(SILENT_SECONDS, self._listen)
        if unanswered:
            self._silent()

    def _give_up(self, held: Held, refusal: Refusal) -> None:
        """Leave to its queue what the broker will never take from us: as a dead letter, unless it never ran."""
        if isinstance(held.disposal, GiveBack):
            self._return(held)
            return
        cause = Cause("redrive.Refused", refusal.reason)
        held.disposal = DeadLetter(DeadReason.REJECTED, cause, held.message.story.crashes)
        self._hand_back(held, requeue=False)

    def _try_again(self, held: Held) -> None:
        held.again = None
        if held.is_ours:
            self.go_on(held)

    def _pause(self, refusals: int) -> float:
        longest = min(LONGEST_PAUSE, SHORTEST_PAUSE * 2.0 ** min(refusals, 10))
        return longest * (0.5 + self._random() / 2)

    def _let_go(self, held: Held) -> None:
        """Acknowledge. One whose delivery is gone waits for its redelivery, and is then acknowledged."""
        if held.stage is not Stage.SENT:
            held.stage = Stage.SENT
            self._tell(held)
        held.is_gone = isinstance(held.disposal, GiveBack)
        book = held.book
        if book is not None:
            held.leave()
            book.done(held.tag, held)
            self._acknowledge_soon()
        else:
            self.hands.adrift.discard(held)
        self._freed(held)

    def _hand_back(self, held: Held, *, requeue: bool) -> None:
        """Leave it to its queue."""
        session = held.leave()
        if session is not None:
            held.stage = Stage.SENT
            held.is_gone = True
            session.reject(held.tag, requeue=requeue)
            self._tell(held)
        self._freed(held)

    def _return(self, held: Held) -> None:
        """Have its queue put it back in its place; after a rest if it was to come later, for it comes at once."""
        rest = held.disposal.delay.total_seconds() if isinstance(held.disposal, GiveBack) else 0.0
        if not rest:
            self._hand_back(held, requeue=True)
            return
        held.stage = Stage.DECIDED
        held.refusals += 1
        held.again = self._loop.later(rest, partial(self._return_rested, held))
        self._freed(held)

    def _return_rested(self, held: Held) -> None:
        held.again = None
        if self.has_queue(held):
            self._hand_back(held, requeue=True)
        elif held.is_ours:
            self.go_on(held)

    def _tell(self, held: Held) -> None:
        if held.disposal is not None:
            self._witness.settled(held, held.disposal)
