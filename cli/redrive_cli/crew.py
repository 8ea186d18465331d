"""The workers of one consumer: kept running, shown, and ended together.

A worker that dies is started again after a growing pause, as Kubernetes would; one that says that it can never work
ends all of them. The first signal drains: each worker is told once to end, and may finish what it has begun. The second
ends them at once, and so does the end of the time that a drain may take.
"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from redrive_cli.leash import KILL, SHORT_PATIENCE, TERMINATE
from redrive_cli.leashed import describe_end
from redrive_cli.screen import Screen
from redrive_cli.stopping import INTERRUPTED
from redrive_cli.worker_lines import Lines, Told, read_line

UNUSABLE = 2  # the exit code of a worker that was told something it cannot do
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
# Who ran for so long has got over whatever it died of before.
STEADY_SECONDS = 60.0
# After its end, a worker's last lines are still on their way.
LAST_LINES_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Launch:
    """How one worker is started, on its leash."""

    command: Sequence[str]
    env: Mapping[str, str]
    cwd: Path

    async def start(self) -> Process:
        return await asyncio.create_subprocess_exec(
            *self.command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=self.env,
            cwd=self.cwd,
            start_new_session=True,
        )


def pause_after(deaths: int) -> float:
    """Say how long to wait after so many deaths in a row."""
    return float(min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(deaths - 1, 10)))


class Crew:
    """Runs in one event loop, until all workers have ended for good."""

    def __init__(
        self, launches: Sequence[Launch], screen: Screen, *, drain_seconds: float, trouble: Callable[[], str | None]
    ) -> None:
        """`trouble` says what is wrong with what the workers stand on, if anything is: then all is ended."""
        self._launches = launches
        self._screen = screen
        self._drain_seconds = drain_seconds
        self._trouble = trouble
        self._running: dict[int, Process] = {}
        self._stopping = asyncio.Event()
        self._heard = asyncio.Event()
        self._code = 0
        self.tally: Counter[str] = Counter()

    async def run(self) -> int:
        """Keep them running until told to stop; return the exit code of the command."""
        loop = asyncio.get_running_loop()
        for one in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(one, self._on_signal)
        watching = asyncio.create_task(self._watch())
        await asyncio.gather(*(self._keep_running(number) for number in range(len(self._launches))))
        watching.cancel()
        return self._code

    def _on_signal(self) -> None:
        if not self._stopping.is_set():
            self._note("draining: finishing what has begun; Ctrl-C again ends at once")
            self._stop()
            return
        self._code = self._code or INTERRUPTED
        self._end_now()

    def _stop(self) -> None:
        self._stopping.set()
        self._tell_all(TERMINATE)
        asyncio.get_running_loop().call_later(self._drain_seconds, self._give_up)

    def _give_up(self) -> None:
        self._warn(f"still running after {self._drain_seconds:.0f} s: ended by force, what it worked on goes back")
        self._code = self._code or 1
        self._end_now()

    def _end_now(self) -> None:
        """Ask a second time, which a worker takes for "at once", and then do not ask."""
        self._tell_all(TERMINATE)
        asyncio.get_running_loop().call_later(SHORT_PATIENCE, self._tell_all, KILL)

    def _tell_all(self, word: bytes) -> None:
        for process in self._running.values():
            _tell(process, word)

    async def _watch(self) -> None:
        while not self._stopping.is_set():
            trouble = self._trouble()
            if trouble is not None:
                self._warn(trouble)
                self._code = 1
                self._stop()
            await asyncio.sleep(0.5)

    async def _keep_running(self, number: int) -> None:
        if number:
            # One that cannot work says so once, and not once for each of them.
            await self._either(self._heard)
        deaths = 0
        while not self._stopping.is_set():
            ran, code = await self._run_once(number)
            self._heard.set()
            if self._stopping.is_set():
                return
            if code == UNUSABLE:
                self._code = UNUSABLE
                self._stop()
                return
            deaths = 1 if ran >= STEADY_SECONDS else deaths + 1
            pause = pause_after(deaths)
            self._warn(f"worker {number + 1} {describe_end(code)}; it is started again in {pause:g} s")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)

    async def _either(self, event: asyncio.Event) -> None:
        waits = [asyncio.create_task(each.wait()) for each in (event, self._stopping)]
        _, late = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in late:
            wait.cancel()

    async def _run_once(self, number: int) -> tuple[float, int]:
        """Run one worker to its end; return for how long it ran, and its exit code."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        launch = self._launches[number]
        process = self._running[number] = await launch.start()
        if self._stopping.is_set():
            _tell(process, TERMINATE)
        name = f"#{number + 1}" if len(self._launches) > 1 else ""
        readers = [
            asyncio.create_task(self._read(process.stdout, lambda line: self._show(line, name))),
            asyncio.create_task(self._read(process.stderr, self._screen.complain)),
        ]
        code = await process.wait()
        await asyncio.wait(readers, timeout=LAST_LINES_SECONDS)
        del self._running[number]
        return loop.time() - began, code

    async def _read(self, stream: asyncio.StreamReader | None, show: Callable[[str], None]) -> None:
        lines = Lines()
        try:
            while stream is not None and (piece := await stream.read(65_536)):
                for line in lines.feed(piece):
                    show(line)
            for line in lines.end():
                show(line)
        except BrokenPipeError:
            self._nobody_looks()

    def _show(self, line: str, worker: str) -> None:
        for part in read_line(line):
            if isinstance(part, Told):
                self._heard.set()
                if part.is_outcome:
                    self.tally[part.event] += 1
            self._screen.show(part, worker=worker)

    def _note(self, text: str) -> None:
        with suppress(BrokenPipeError):
            self._screen.note(text)

    def _warn(self, text: str) -> None:
        with suppress(BrokenPipeError):
            self._screen.warn(text)

    def _nobody_looks(self) -> None:
        """Drain when whoever read our output has gone, as `head` does; what is still to be said goes nowhere."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not self._stopping.is_set():
            self._stop()


def _tell(process: Process, word: bytes) -> None:
    if process.stdin is not None and not process.stdin.is_closing():
        process.stdin.write(word)
