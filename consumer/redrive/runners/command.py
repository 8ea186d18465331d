"""A program a message: the body on stdin, facts in the environment, what came of it by its exit code.

No shell reads the arguments. The program inherits the worker's environment and writes to the worker's stderr, stdout
and stderr alike; the last line that it writes to stderr is the error. It is asked to end when its time is over, and
killed with all that it has started when it does not. Its death by a signal is a crash of this message and no other's.
"""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial

from redrive.handler import HandlerError
from redrive.memory import Memory
from redrive.outcome import Crashed, Failed, Rejected, Result, Snoozed, Succeeded
from redrive.raised import result_of
from redrive.runners import Job, Report
from redrive.runners.attempts import Attempt, time_out
from redrive.runners.facts import write_environment
from redrive.runners.open_files import FILES_BESIDE, allow_files
from redrive.runners.program import Bell, Exit, Program
from redrive.runners.shortage import Shortage
from redrive.runners.slots import Run, SlotRunner
from redrive.runners.strays import Strays
from redrive.runners.verdicts import describe_exit
from redrive.runtime.ports import Loop
from redrive.spec.worker import CommandRunner, ExitCodes

# Open files: a bell, and both ends of three pipes while a program is being started.
FILES_A_PROGRAM = 8


class ProgramRunner(SlotRunner):
    """Runs a program a message. `consumer` is `<namespace>/<name>`. Without `memory` nobody looks after it."""

    def __init__(
        self,
        command: CommandRunner,
        *,
        consumer: str,
        concurrency: int,
        timeout: timedelta,
        loop: Loop,
        memory: Memory | None,
    ) -> None:
        super().__init__(concurrency=concurrency, timeout=timeout, loop=loop)
        self._args = command.args
        self._codes = command.exit_codes
        self._consumer = consumer
        self._environment = dict(os.environb)
        self._memory = memory
        self._bells: list[Bell] = []
        self._programs: dict[Program, Job] = {}
        self._verdicts: dict[Program, Crashed] = {}
        self._shortage = Shortage(loop, self._memory, self._pids, self.end_child)
        self._strays = Strays(loop, self._pids)

    @property
    def stuck(self) -> str:
        return f"the program {self._args[0]} does not end though it was killed, so this process must be replaced"

    def start(self, report: Report, fail: Callable[[str], None]) -> None:
        _require_program(self._args[0])
        allow_files(FILES_A_PROGRAM * self.concurrency + FILES_BESIDE)
        self._bells = _make_bells(self.concurrency)
        super().start(report, fail)
        self._shortage.start()
        self._strays.start()

    def stop(self) -> None:
        self._shortage.stop()
        self._strays.stop()
        super().stop()
        for program in list(self._programs):  # those whose threads hang
            program.kill()

    def children(self) -> list[tuple[int, Job]]:
        """List the programs that run, by their process ids, which are also those of their sessions and groups."""
        return [(program.pid, job) for program, job in list(self._programs.items()) if program.pid is not None]

    def end_child(self, pid: int, verdict: Crashed) -> None:
        """Kill a program, and have its death count as this."""
        for program in [program for program in list(self._programs) if program.pid == pid]:
            self._verdicts[program] = verdict
            program.end(at_once=True)

    def interrupt_all(self) -> None:
        for program in list(self._programs):
            program.end(at_once=True)
        super().interrupt_all()

    @contextmanager
    def equip(self) -> Iterator[Run]:
        bell = self._bells.pop()
        try:
            yield partial(self._run, bell)
        finally:
            bell.close()

    def _run(self, bell: Bell, attempt: Attempt) -> Result:
        program = Program(bell)
        self._programs[program] = attempt.job
        if self.stopped:  # between our being given the job and being seen with it
            program.end(at_once=True)
        attempt.arm(partial(program.end, at_once=False))
        said = ""
        try:
            kills = self._count_kills()
            ended = program.run(self._args, self._tell(attempt.job), attempt.job.message.body)
            said = ended.said.decode(errors="replace")
            result = self._judge(attempt.job, ended, self._verdicts.get(program), short=self._count_kills() > kills)
        except Exception as error:  # it cannot be started any more, say
            result = result_of(error)
        del self._programs[program]
        self._verdicts.pop(program, None)
        return result if attempt.finish() else time_out(self.timeout, said)

    def _pids(self) -> list[int]:
        return [pid for pid, _ in self.children()]

    def _tell(self, job: Job) -> dict[bytes, bytes]:
        return {**self._environment, **write_environment(job.message, self._consumer)}

    def _count_kills(self) -> int:
        return 0 if self._memory is None else self._memory.count_kills()

    def _judge(self, job: Job, ended: Exit, verdict: Crashed | None, *, short: bool) -> Result:
        if ended.code >= 0:
            return read_exit(ended, self._codes)
        killed = ended.code == -signal.SIGKILL
        if killed and verdict is not None:
            return replace(verdict, alone=job.alone)
        # Where memory is short the kernel kills the biggest, which need not be the one to blame.
        return Crashed(f"the program {describe_exit(ended.code)}", alone=job.alone or not (short and killed))


def read_exit(ended: Exit, codes: ExitCodes) -> Result:
    """Say what a program meant that ended by itself."""
    said = ended.said.decode(errors="replace")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    error = lines[-1] if lines else f"exit code {ended.code}, and nothing on stderr"
    if ended.code in codes.done:
        return Succeeded()
    if ended.code in codes.reject:
        return Rejected(error, said)
    if ended.code in codes.snooze:
        return Snoozed()
    return Failed(error, trace=said, exit_code=ended.code)


def _make_bells(count: int) -> list[Bell]:
    bells: list[Bell] = []
    try:
        while len(bells) < count:
            bells.append(Bell())
    except OSError as error:
        for bell in bells:
            bell.close()
        advice = "lower it, or raise the limit of open files"
        raise HandlerError(f"worker.concurrency is too high: {error.strerror}; {advice}") from error
    return bells


def _require_program(program: str) -> None:
    if shutil.which(program) is not None:
        return
    problem = "it is no file that can be executed" if "/" in program else "it is not on the PATH"
    advice = "put it into the image, or correct spec.worker.command.args"
    raise HandlerError(f"the program {program} cannot be started: {problem}; {advice}")
