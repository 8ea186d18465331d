"""The worker's side of the zygote: starts it, has it fork, hears of births and deaths, and starts it again if it dies.

All of it happens in the thread of the loop, and that thread must last as long as the process: the kernel ends the
zygote with the thread that started it.
"""

from collections import deque
from datetime import timedelta
from typing import Any, Protocol

from redrive.handler import HandlerError
from redrive.memory import resident
from redrive.runners.channel import Channel
from redrive.runners.lineage import kill_group
from redrive.runners.orphans import Orphans
from redrive.runners.spawned import Spawned
from redrive.runtime.ports import Loop, Timer

LONGEST_IMPORT = 300.0  # seconds
MOST_FORKS = 8  # asked for at once: what is asked for lies in a socket's buffer

# A zygote that does not answer is lost. Looks are counted, and not the time: it may be that all of us were stopped.
LOOK = 1.0  # seconds
MOST_LOOKS = 10

# Starting again: pauses double up to the longest, and are short again after a zygote that lasted.
SHORTEST_PAUSE = 0.1  # seconds
LONGEST_PAUSE = 10.0
LASTED = 60.0
MOST_FAILURES = 5  # starts that came to nothing, one after the other


class Family(Protocol):
    """Who is told what happens in the nursery."""

    def open(self) -> None:
        """There is a zygote: children can be asked for."""

    def born(self, seat: int, pid: int) -> None: ...

    def unborn(self, seat: int, reason: str) -> None: ...

    def died(self, seat: int, status: int) -> None:
        """A child has died, and is buried when this returns."""

    def bereaved(self, how: str) -> None:
        """The zygote has died, and all children die with it; nobody tells of each. There will be another."""

    def barren(self, reason: str) -> None:
        """There will be no zygote any more."""


class Nursery:
    """Where children come from. `takes_message`, known once it was started, is what the handler wants to be given."""

    def __init__(self, handler: str, *, timeout: timedelta, loop: Loop, family: Family) -> None:
        self.takes_message = True
        self._handler = handler
        self._timeout = timeout
        self._loop = loop
        self._family = family
        self._zygote: Spawned | None = None
        self._ready_since: float | None = None
        self._restarts = 0
        self._failures = 0
        self._timer: Timer | None = None  # for what comes next: giving up the import, or starting again
        self._pids: dict[int, int] = {}
        self._wanted: deque[tuple[int, Channel]] = deque()
        self._asked = 0
        self._dead: list[int] = []  # to be buried; the zygote has not been told
        self._burying = 0
        self._looks = 0  # since it last answered
        self._looking: Timer | None = None
        self._orphans = Orphans(loop)

    def start(self) -> None:
        """Start the zygote and wait until it has imported the handler; HandlerError says why it cannot."""
        try:
            self._zygote = Spawned(self._handler, self._timeout)
        except OSError as error:
            raise HandlerError(f"no process can be started to run the handler {self._handler}: {error}") from error
        try:
            self._welcome(self._zygote.wait(LONGEST_IMPORT))
        except HandlerError:
            self._zygote.kill()
            self._zygote = None
            raise
        self._watch(self._zygote)

    def ask(self, seat: int, channel: Channel) -> None:
        """Ask for a child that talks by this channel."""
        self._wanted.append((seat, channel))
        self._ask_on()

    def measure(self) -> int:
        """Say how big the zygote is: so big is every child, without what it does."""
        return resident(self._zygote.pid) if self._zygote else 0

    def stop(self) -> None:
        """Let those go who have leave, kill the others, and be gone with all of them."""
        zygote = self._part()
        if zygote and not zygote.end():
            self._orphans.take(self._pids.values())
        self._pids.clear()
        self._orphans.stop()

    def _watch(self, zygote: Spawned) -> None:
        for descriptor in zygote.descriptors:
            self._loop.watch(descriptor, self._hear)

    def _hear(self) -> None:
        """Take all news that there are; what it said before it died counts."""
        while self._zygote and (news := self._zygote.hear() or self._zygote.mourn()):
            self._looks = 0
            self._take(news)

    def _take(self, news: list[Any]) -> None:
        match news:
            case ["lost", str(how)] if self._ready_since is not None:
                self._lose(how)
            case _ if self._ready_since is None:
                self._try_welcome(news)
            case ["born", int(seat), int(pid)]:
                self._pids[seat] = pid
                self._asked -= 1
                self._family.born(seat, pid)
            case ["unborn", int(seat), str(reason)]:
                self._asked -= 1
                self._family.unborn(seat, reason)
            case ["died", int(seat), int(status)]:
                self._bury(seat, status)
            case ["buried", int()]:
                self._burying -= 1
        self._ask_on()

    def _ask_on(self) -> None:
        """Order what is to be done, and see that it is; what cannot be sent now is sent later."""
        zygote = self._zygote if self._ready_since is not None else None
        while zygote and self._dead and zygote.tell("bury", self._dead[0]):
            del self._dead[0]
            self._burying += 1
        while zygote and self._wanted and self._asked < MOST_FORKS:
            seat, channel = self._wanted[0]
            if not zygote.tell("fork", seat, give=channel.theirs):
                break
            self._wanted.popleft()
            self._asked += 1
        if zygote and not self._looking and self._is_waiting():
            self._looking = self._loop.later(LOOK, self._look)

    def _is_waiting(self) -> bool:
        return bool(self._dead or self._burying or self._wanted or self._asked)

    def _look(self) -> None:
        """See whether the zygote does what it was told to."""
        self._looking = None
        self._hear()
        if not self._is_waiting():
            return  # all is answered, or there is nobody to wait for
        self._looks += 1
        if self._looks < MOST_LOOKS:
            self._ask_on()
        else:
            self._lose("did not answer any more")

    def _bury(self, seat: int, status: int) -> None:
        """Until it is buried a dead child keeps its number, so what is killed here can only be what it has started."""
        pid = self._pids.pop(seat)
        kill_group(pid)
        self._family.died(seat, status)
        if self._zygote:
            self._dead.append(pid)

    def _welcome(self, news: list[Any]) -> None:
        match news:
            case ["ready", bool(takes_message)]:
                self.takes_message = takes_message
                self._ready_since, self._failures = self._loop.now(), 0
            case ["lost", str(how)]:
                problem = f"the process that imports it {how}"
                raise HandlerError(f"the handler {self._handler} cannot be imported: {problem}")
            case ["failed", str(reason)]:
                raise HandlerError(reason)
            case _:
                raise HandlerError(f"the handler {self._handler} cannot be imported: its process said {news!r}")

    def _try_welcome(self, news: list[Any]) -> None:
        self._cancel_timer()
        try:
            self._welcome(news)
        except HandlerError as error:
            self._fail(str(error))
        else:
            self._family.open()

    def _lose(self, how: str) -> None:
        """The zygote is dead, and its children die with it."""
        if self._ready_since is not None and self._loop.now() - self._ready_since > LASTED:
            self._restarts = 0
        zygote = self._part()
        if zygote:
            zygote.kill()
        self._orphans.take(self._pids.values())
        self._pids.clear()
        self._start_later()
        self._family.bereaved(how)

    def _fail(self, problem: str) -> None:
        """A start came to nothing: try again, but not for ever."""
        zygote = self._part()
        if zygote:
            zygote.kill()
        self._failures += 1
        if self._failures < MOST_FAILURES:
            self._start_later()
        else:
            self._family.barren(problem)

    def _start_later(self) -> None:
        pause = min(LONGEST_PAUSE, SHORTEST_PAUSE * 2**self._restarts)
        self._restarts += 1
        self._timer = self._loop.later(pause, self._start_again)

    def _start_again(self) -> None:
        try:
            self._zygote = Spawned(self._handler, self._timeout)
        except OSError as error:
            self._fail(f"no process can be started to run the handler {self._handler}: {error}")
            return
        self._watch(self._zygote)
        problem = f"took longer than {LONGEST_IMPORT:g} s"
        self._timer = self._loop.later(LONGEST_IMPORT, lambda: self._try_welcome(["lost", problem]))

    def _part(self) -> Spawned | None:
        """Have nothing more to do with the zygote, and hand it over to be ended."""
        self._cancel_timer()
        zygote, self._zygote, self._ready_since = self._zygote, None, None
        self._wanted.clear()
        self._dead.clear()
        self._asked = self._burying = self._looks = 0
        if self._looking:
            self._looking.cancel()
            self._looking = None
        for descriptor in zygote.descriptors if zygote else ():
            self._loop.unwatch(descriptor)
        return zygote

    def _cancel_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
