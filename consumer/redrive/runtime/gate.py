"""The gate between the queue and us: how many messages may be in our hands, when none may come, and what goes round.

What goes round is sent to the end of the queue and may come back to us. Never while taking is about to end: it could be
on its way to us already when that happens. The broker would take it back, marked as redelivered: one that was given
back without a mark would be a suspect, and a suspect would have killed its worker.
"""

from collections.abc import Callable
from functools import partial

from redrive.outcome import RetryLater
from redrive.runtime.held import Held, Stage
from redrive.runtime.ports import Consumer, Loop
from redrive.runtime.prefetch import Pace, choose_prefetch, is_worth_changing
from redrive.runtime.room import is_crowded, is_full
from redrive.runtime.settling import Settling
from redrive.settle import GiveBack, Suspect

# So many messages in a row that are no suspects, and the worker expects no more of them.
CALM_AFTER = 16

# How often the prefetch is thought over: soon at first, for the first runs of a handler are its slowest.
FIRST_LOOK_SECONDS = 0.1
LOOK_SECONDS = 0.5

# What comes back at once: as it was, as a suspect, or as one that is to run once more, alone.
Round = GiveBack | Suspect | RetryLater


class Gate:
    """Open, or closed by `pause` until the next `take`."""

    def __init__(self, concurrency: int, *, loop: Loop, consumer: Consumer, settling: Settling) -> None:
        self._concurrency = concurrency
        self._loop = loop
        self._consumer = consumer
        self._settling = settling
        self._pace = Pace()
        self._calm = CALM_AFTER  # messages in a row that were no suspects
        self._look_at = loop.now()
        self._look_again = FIRST_LOOK_SECONDS
        self.is_closed = False
        self._is_closing = False
        self.is_new = True  # nothing has come yet that says how large messages are
        self._lowering: object = None  # what waits to take fewer, unless somebody else pauses or takes meanwhile
        self._put_off: list[tuple[Held, Round]] = []
        self.prefetch = choose_prefetch(concurrency, self._pace)
        self._tell_settling()

    def pause(self, call: Callable[[], None]) -> None:
        """Take nothing more, and call when nothing more comes."""
        self._lowering = None
        self._settling.flush()  # the sooner the broker has them, the sooner it can say so
        self._is_closing = self.is_closed = True
        self._consumer.pause(partial(self._paused, call))

    def take(self, prefetch: int) -> None:
        """Take at most so many at once, also after a pause."""
        self._lowering = None
        self.prefetch = prefetch
        self._tell_settling()
        self._consumer.resume(prefetch=prefetch)
        self.is_closed = False
        self._send_what_was_put_off()  # whoever was told to pause is not any more

    def take_one_by_one(self) -> None:
        """Have the next suspect come to empty hands."""
        self.is_new = False
        if self.prefetch != 1 or self.is_closed:
            self.take(1)

    def make_room(self) -> None:
        """Have others come where the broker takes nothing back of all that may: another consumer counts from none.

        Nothing is on its way to the one that ends, for it has all that it may have.
        """
        if not self.is_closed and is_crowded(self._settling.hands.present, self.prefetch) and not self._is_full():
            self._consumer.pause(_nothing)
            self.take(self.prefetch)

    def send_round(self, held: Held, disposal: Round) -> None:
        """Send it to the end of the queue, if need be a little later."""
        if self._is_closing and held.is_ours:  # else it is met again, and then sent
            if isinstance(disposal, RetryLater):  # it has been run, and is not to be run again for itself
                held.stage, held.disposal = Stage.DECIDED, disposal
            self._put_off.append((held, disposal))
        else:
            self._settling.settle(held, disposal)

    def forget_lost(self) -> None:
        """Send nothing round that the broker has taken back."""
        self._put_off = [(held, disposal) for held, disposal in self._put_off if held.is_ours]

    def note_suspect(self) -> None:
        self._calm = 0

    def note_innocent(self) -> None:
        self._calm += 1

    def note_run(self, seconds: float) -> None:
        self._pace.note_run(seconds)

    def note_size(self, size: int) -> None:
        self._pace.note_size(size)

    def begin(self) -> None:
        """Go over from one message to as many as its size lets in.

        It is in our hands, so there is no room for another, and none is on its way: suspects that were sent round
        before do no harm. And it stays there beside as many as the new consumer may have: with one more, a worker that
        runs one at a time would hold two ahead, of which others could be running one. But when it is done, as many must
        be able to come as can run.
        """
        self.is_new = False
        self._look_at = self._loop.now() + self._look_again
        wanted = choose_prefetch(self._concurrency, self._pace)
        if wanted > 1 and not self._is_full():
            self.take(max(wanted - 1, self._concurrency))

    def think_over(self) -> None:
        """Go over to another prefetch, if that matters, and if no suspects are about."""
        now = self._loop.now()
        if now < self._look_at or self._calm < CALM_AFTER or self.is_new or self.is_closed:
            return
        self._look_at = now + self._look_again
        self._look_again = min(LOOK_SECONDS, 2 * self._look_again)
        self._pace.forget_sizes(now)
        wanted = choose_prefetch(self._concurrency, self._pace)
        if wanted < self.prefetch:
            self.lower()
        elif self._is_worth(wanted):
            self.take(wanted)

    def lower(self) -> None:
        """Take fewer at once if messages have become so large or so slow, also while suspects are about.

        What goes round meanwhile is put off: it must not be on its way to us when a consumer ends.
        """
        wanted = choose_prefetch(self._concurrency, self._pace)
        if wanted < self.prefetch and self._is_worth(wanted) and not self.is_closed:
            lowering = object()
            self.pause(partial(self._take_fewer, lowering, wanted))
            self._lowering = lowering

    def _take_fewer(self, lowering: object, wanted: int) -> None:
        if lowering is self._lowering:
            self.take(wanted)

    def _is_worth(self, wanted: int) -> bool:
        return is_worth_changing(self.prefetch, wanted) and not self._is_full()

    def _is_full(self) -> bool:
        return is_full(self._settling.hands.kept, self._concurrency)

    def _tell_settling(self) -> None:
        self._settling.expect(self.prefetch, ahead=max(0, self.prefetch - self._concurrency))

    def _paused(self, call: Callable[[], None]) -> None:
        self._send_what_was_put_off()
        call()

    def _send_what_was_put_off(self) -> None:
        self._is_closing = False
        put_off, self._put_off = self._put_off, []
        for held, disposal in put_off:
            self._settling.settle(held, disposal)


def _nothing() -> None:
    pass
