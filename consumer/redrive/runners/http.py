"""A request a message, to the user's container in the same pod: the body posted, the rest in headers.

2xx is done; any other status is a failure with that status, and what to make of it is for the rules. Redirects are not
followed. The whole exchange has the time of one try, however slowly the server talks. A server that does not listen is
not ready yet: it is asked again for a while, which costs the message nothing.

A server that dies breaks every request that it had, and nobody can say which of them it died of. So those that break
together are run again, each alone, and that costs them nothing; what breaks by itself has failed.
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from http.client import IncompleteRead
from math import inf
from time import monotonic

from redrive.clip import clip_head
from redrive.outcome import Crashed, Failed, Result, Succeeded, type_names
from redrive.raised import describe
from redrive.runners import Report
from redrive.runners.attempts import Attempt, time_out
from redrive.runners.facts import write_request_headers
from redrive.runners.open_files import FILES_BESIDE, allow_files
from redrive.runners.posting import HOST, Answer, Call, Line
from redrive.runners.slots import Run, SlotRunner
from redrive.runtime.ports import Loop
from redrive.spec.worker import HttpRunner

# Pauses between looks whether the server listens.
SHORTEST_PAUSE = 0.05
LONGEST_PAUSE = 2.0

# What breaks within this time has broken together: of a process that dies, the kernel closes all connections at once.
TOGETHER_SECONDS = 0.1

# A socket's own time is longer than that of the try, so that it is always the latter which is said to be over.
_LEEWAY_SECONDS = 2.0

# Open files: a connection, and the call's own descriptor of it.
FILES_A_CALL = 2

# Bytes of an answer that become the error.
_LONGEST_ERROR = 8192

# Longer than any delay that a policy lets through.
_LONGEST_DELAY = timedelta(days=365)


class PostRunner(SlotRunner):
    """Posts messages to a server. `patience` is how long one that does not listen is asked again."""

    def __init__(
        self,
        http: HttpRunner,
        *,
        consumer: str,
        patience: timedelta,
        concurrency: int,
        timeout: timedelta,
        loop: Loop,
    ) -> None:
        super().__init__(concurrency=concurrency, timeout=timeout, loop=loop)
        self._http = http
        self._consumer = consumer
        self._patience = patience.total_seconds()
        self._breaks: deque[float] = deque(maxlen=2 * concurrency)

    @property
    def stuck(self) -> str:
        return f"a request to port {self._http.port} cannot be broken off, so this process must be replaced"

    def start(self, report: Report, fail: Callable[[str], None]) -> None:
        allow_files(FILES_A_CALL * self.concurrency + FILES_BESIDE)
        super().start(report, fail)

    @contextmanager
    def equip(self) -> Iterator[Run]:
        seconds = self.timeout.total_seconds() + _LEEWAY_SECONDS
        with closing(Line(self._http.port, self._http.path, timeout=seconds)) as line:
            yield partial(self._run, line)

    def _run(self, line: Line, attempt: Attempt) -> Result:
        with closing(Call()) as call:
            attempt.arm(call.break_off)
            try:
                result = read_answer(self._post(line, call, attempt), datetime.now(UTC))
            except Exception as error:  # whatever comes over the wire
                line.close()
                result = self._explain(error, attempt, call)
            return result if attempt.finish() else time_out(self.timeout)

    def _post(self, line: Line, call: Call, attempt: Attempt) -> Answer:
        headers = write_request_headers(attempt.job.message, self._consumer)
        until, pause = monotonic() + self._patience, SHORTEST_PAUSE
        while True:
            try:
                return line.post(attempt.job.message.body, headers, call)
            except ConnectionRefusedError:
                # The time of the try does not pass while nobody is there to use it.
                attempt.began = inf
                refused = monotonic() + pause > until or call.over.wait(pause)
                attempt.began = monotonic()
                if refused:
                    raise
            pause = min(LONGEST_PAUSE, 2 * pause)

    def _explain(self, error: Exception, attempt: Attempt, call: Call) -> Result:
        if isinstance(error, ConnectionRefusedError):
            return Failed(f"nobody listens on {HOST}:{self._http.port}", error_types=type_names(type(error)))
        said = describe(error) or type(error).__name__
        if isinstance(error, ConnectionError | IncompleteRead) and not attempt.job.alone and self._broke_together(call):
            return Crashed(f"{said}, as for others in the same moment", alone=False)
        return Failed(said, error_types=type_names(type(error)))

    def _broke_together(self, call: Call) -> bool:
        """Note that a request broke, and say whether another did at the same time, a little before or after."""
        now = monotonic()
        self._breaks.append(now)
        call.over.wait(TOGETHER_SECONDS)
        return sum(abs(one - now) <= TOGETHER_SECONDS for one in list(self._breaks)) > 1


def read_answer(answer: Answer, now: datetime) -> Result:
    if 200 <= answer.status < 300:
        return Succeeded()
    said = clip_head(answer.body.decode(errors="replace").strip(), _LONGEST_ERROR)
    return Failed(
        said or f"HTTP {answer.status} {clip_head(answer.reason, _LONGEST_ERROR)}".strip(),
        http_status=answer.status,
        asked_delay=read_retry_after(answer.retry_after, now),
    )


def read_retry_after(text: str | None, now: datetime) -> timedelta | None:
    """Read a number of seconds or a date; None for what is neither."""
    text = (text or "").strip()
    if text.isascii() and text.isdigit():
        return timedelta(seconds=int(text)) if len(text) < 8 else _LONGEST_DELAY
    try:
        date = parsedate_to_datetime(text)
        delay = (date if date.tzinfo else date.replace(tzinfo=UTC)) - now
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return min(max(timedelta(0), delay), _LONGEST_DELAY)
