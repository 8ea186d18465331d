"""What the worker and one child talk by: a pair of connected sockets that keep each message whole, and two bells.

The worker holds on to both ends. What it has sent and the child has not received lies in the far end's queue, and the
worker can receive it there itself: the kernel gives each message to exactly one of the two. So it is known of every job
whether it has begun, also when the child is dead, and what has not begun can be taken back at any time.

Both sides are woken by a bell and not by what is sent, so that several jobs, or answers, wake the other once. An answer
is in the kernel's hands as soon as it is given, rung for or not: it outlives its child.

Nothing here ever waits on the worker's side. What does not fit into a datagram travels as a file in memory.
"""

import errno
import io
import os
import select
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from struct import Struct
from time import perf_counter

from redrive.runners.bell import Bell

JOB = Struct("<QBI")  # the job's number, what it is, and how long the head of the message is
ANSWER = Struct("<QdB")  # the job's number, the seconds that it took, and which kind of result follows

RUN, RUN_FILE, CONDEMN = range(3)  # what a job's frame may be

# Above this a file is cheaper than copying through socket buffers, which others, sent ahead, need too.
LARGEST_INLINE = 65_536
LARGEST_JOB = JOB.size + LARGEST_INLINE
LARGEST_REST = 131_072  # of an answer: far more than the texts of a failure may have
LARGEST_ANSWER = ANSWER.size + LARGEST_REST
_BUFFER = 262_144

DESCRIPTOR_SPACE = socket.CMSG_SPACE(4)

# The kind of an answer that says: this job could not be taken, and has not begun. No result has that number.
UNTAKEN = 255

# What may keep a file from being sent now, and not for ever.
_TEMPORARY = {errno.EAGAIN, errno.ENOBUFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ETOOMANYREFS}


# A child rings for its answers when it has nothing else to do, and after so many or so long.
_MOST_UNTOLD = 16
_LONGEST_UNTOLD = 0.0005  # seconds

_TAKE = socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC

# As they are before a handler's module may have put others in their place, which wait in their own way.
_Socket = socket.socket
_poll = select.poll


class LostFileError(Exception):
    """The file of a job did not arrive: a process that may have no more open files is not given it by the kernel."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Channel:
    """The worker's side, with both ends. `answers` rings when there are some, `jobs` is rung when all are sent."""

    __slots__ = ("_recv", "_send", "answers", "far", "jobs", "near")

    def __init__(self) -> None:
        with ExitStack() as made:
            self.near, self.far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            made.callback(self.near.close)
            made.callback(self.far.close)
            self.jobs = Bell()
            made.callback(self.jobs.close)
            self.answers = Bell()
            made.pop_all()  # else what there is of it is closed
        for end in (self.near, self.far):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        # The far end may wait: it is the child's.
        self.near.setblocking(False)
        self._send = self.near.send
        self._recv = self.near.recv_into

    @property
    def theirs(self) -> list[int]:
        """What the child is given, in the order in which `Inbox` takes it."""
        return [self.far.fileno(), self.jobs.descriptor, self.answers.rope]

    def send(self, number: int, head: bytes, body: bytes) -> bool:
        """Send a job; False when there is no room for it now. ConnectionError: there will never be, with this child.

        Any other OSError: there will never be, with any.
        """
        if len(head) + len(body) > LARGEST_INLINE:
            return self._send_file(number, head, body)
        try:
            self._send(JOB.pack(number, RUN, len(head)) + head + body)
        except BlockingIOError:
            return False
        except ConnectionError:
            raise
        except OSError:  # the machine allows no buffers of this size
            return self._send_file(number, head, body)
        return True

    def condemn(self, number: int) -> None:
        """Lay down, for the child to see when it is interrupted, which job it was interrupted for."""
        self._send(JOB.pack(number, CONDEMN, 0))

    def hear(self, buffer: bytearray) -> int:
        """Receive an answer into the buffer, and say how long it is; 0 when there is none now.

        OSError: there will never be one, because the child has shut the connection down.
        """
        try:
            length = self._recv(buffer)
        except BlockingIOError:
            return 0
        if not length:
            raise ConnectionAbortedError("the child has shut the connection down")
        return length

    def take_back(self) -> list[int]:
        """Receive all that the child has not, and say which jobs that are.

        They need not be the last that were sent: the child may receive one between two that are received here.
        """
        numbers = []
        with suppress(OSError):  # that there is nothing more, above all
            while frame := self.far.recv(JOB.size, socket.MSG_DONTWAIT):
                number, kind, _ = JOB.unpack(frame)
                if kind != CONDEMN:
                    numbers.append(number)
        return numbers

    def close(self) -> None:
        """Close both ends: a child that waits for more understands it as its leave."""
        self.near.close()
        self.far.close()
        self.jobs.close()
        self.answers.close()

    def _send_file(self, number: int, head: bytes, body: bytes) -> bool:
        try:
            with io.FileIO(os.memfd_create("redrive-message"), "w") as file:
                _write_all(file, head, body)
                socket.send_fds(self.near, [JOB.pack(number, RUN_FILE, len(head))], [file.fileno()])
        except ConnectionError:
            raise
        except OSError as error:
            if error.errno in _TEMPORARY:
                return False
            raise  # files in memory are forbidden, say, or may not be so large
        return True


def _write_all(file: io.FileIO, *parts: bytes) -> None:
    for part in parts:
        rest = memoryview(part)
        while rest:
            rest = rest[file.write(rest) :]
    file.seek(0)


class Inbox:
    """The child's side: one job after the other, and an answer to each at once, for what is kept dies with a child."""

    def __init__(self, descriptors: Sequence[int]) -> None:
        far, jobs, answers = descriptors
        self._socket = _Socket(fileno=far)
        self._socket.settimeout(None)  # a handler's module may have set one for every socket
        self._jobs, self._answers = Bell(descriptor=jobs), Bell(rope=answers)
        self._poll = _poll()
        self._poll.register(jobs, select.POLLIN)
        self._poll.register(far, 0)  # that it was closed is told unasked
        self._untold = 0
        self._told_at = 0.0  # or when there was nothing to tell

    def receive(self) -> tuple[int, bytes, bytes] | None:
        """Wait for a job: its number, and head and body of its message. None is leave to go.

        LostFileError: there was one, and it cannot be had.
        """
        while True:
            try:
                frame, attached, _, _ = self._socket.recvmsg(LARGEST_JOB, DESCRIPTOR_SPACE, _TAKE)
            except BlockingIOError:
                self._wait()
                continue
            if not frame:
                return None
            number, kind, length = JOB.unpack_from(frame)
            if kind == RUN:
                start = JOB.size + length
                return number, frame[JOB.size : start], frame[start:]
            if kind == RUN_FILE:
                descriptor = read_descriptor(attached)
                if descriptor < 0:
                    raise LostFileError(number)
                return number, *_read_file(descriptor, length)
            # Else it condemns a job that is over by now.

    def is_condemned(self, number: int) -> bool:
        """Say whether the worker wants this job ended. It looks and takes nothing: the next job may be there."""
        try:
            frame = self._socket.recv(JOB.size, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except OSError:  # nothing is there, or the handler has closed the socket
            return False
        return frame == JOB.pack(number, CONDEMN, 0)

    def answer(self, number: int, seconds: float, kind: int, rest: bytes = b"") -> None:
        frame = ANSWER.pack(number, seconds, kind) + rest
        try:
            self._socket.send(frame, socket.MSG_DONTWAIT)
        except BlockingIOError:  # the worker is to take some
            self.tell()
            self._socket.send(frame)
        self._untold += 1
        if self._untold >= _MOST_UNTOLD or perf_counter() - self._told_at > _LONGEST_UNTOLD:
            self.tell()

    def tell(self) -> None:
        """Have the worker hear what was answered."""
        self._answers.ring()
        self._untold = 0
        self._told_at = perf_counter()

    def close(self) -> None:
        self._socket.close()
        self._jobs.close()
        self._answers.close()

    def _wait(self) -> None:
        if self._untold:
            self.tell()
        self._poll.poll()
        self._jobs.hush()  # before looking for jobs: what is sent after that rings anew
        self._told_at = perf_counter()


def read_descriptors(attached: list[tuple[int, int, bytes]]) -> list[int]:
    """Say which descriptors came with a message."""
    return list(memoryview(attached[0][2]).cast("i")) if attached else []


def read_descriptor(attached: list[tuple[int, int, bytes]]) -> int:
    """Say which descriptor came with a message; -1 when none did."""
    return int.from_bytes(attached[0][2], sys.byteorder) if attached else -1


def _read_file(descriptor: int, length: int) -> tuple[bytes, bytes]:
    with io.FileIO(descriptor) as file:
        return file.read(length), file.readall()
