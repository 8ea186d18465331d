"""The loop of the worker: the client library's own, which drives both connections and whatever else is watched.

An exception in a callback is a defect of ours, and the end of the process: it comes out of `run`. The library would
swallow it, for it takes any exception on the way of a delivery for a broken connection. So what the library calls is
wrapped in `unswallowed`, which sends the exception past it.
"""

import functools
import threading
import time
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from pika.adapters.select_connection import IOLoop
from pika.adapters.utils import selector_ioloop_adapter as adapter

TICK_SECONDS = 1.0

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Broken(BaseException):
    """Carries an exception of ours through the library, which catches every `Exception`, to `Loop.run`."""


def unswallowed(call: Callable[_P, _R]) -> Callable[_P, _R]:
    @functools.wraps(call)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return call(*args, **kwargs)
        except Exception as error:
            raise Broken from error

    return wrapper


def never(*_told: object) -> None:
    """Be what the library would call for what the connection's `intake` reads itself."""
    raise Broken


class EventLoop:
    """The `Loop` of `redrive.runtime.ports`. `last_turn`, when it last went round, is None until it begins."""

    def __init__(self) -> None:
        self._io = _Poller()
        self.services = _Services(self._io)  # what the library's connections are given to live on
        self.last_turn: float | None = None
        self._ticking: _Timer | None = None

    def now(self) -> float:
        return time.monotonic()

    def later(self, seconds: float, call: Callable[[], None]) -> "_Timer":
        return _Timer(self._io, self._io.call_later(max(0.0, seconds), call))

    def soon(self, call: Callable[[], None]) -> None:
        self._io.add_callback_threadsafe(call)

    def watch(self, fd: int, call: Callable[[], None]) -> None:
        self._io.add_handler(fd, lambda _fd, _events: call(), self._io.READ)

    def unwatch(self, fd: int) -> None:
        self._io.remove_handler(fd)

    def run(self) -> None:
        """Turn until `stop`, or until a callback raises, which is raised here."""
        self._tick()
        try:
            self._io.start()
        except Broken as broken:
            raise broken.__cause__ or broken from None
        finally:
            if self._ticking is not None:
                self._ticking.cancel()

    def stop(self) -> None:
        """End `run` after this turn. From any thread, or from a signal handler."""
        self.soon(self._io.stop)

    def close(self) -> None:
        """Let go of the file descriptors, when `run` is over for good."""
        self._io.close()

    def _tick(self) -> None:
        self.last_turn = self.now()
        self._ticking = self.later(TICK_SECONDS, self._tick)


class _Timer:
    __slots__ = ("_io", "_timeout")

    def __init__(self, io: IOLoop, timeout: object) -> None:
        self._io = io
        self._timeout = timeout

    def cancel(self) -> None:
        self._io.remove_timeout(self._timeout)


class _Poller(IOLoop):  # type: ignore[misc]  # the library has no annotations that are seen here
    """The library's loop, which wakes itself with a system call for each callback; one a turn is enough.

    It matters for signals too: a handler runs between any two steps of this thread, and must not wait for the lock that
    the library holds while it wakes the loop.
    """

    def __init__(self) -> None:
        self._awake = True
        super().__init__()
        self._dispatch = self._poller._dispatch_fd_events
        self._poller._dispatch_fd_events = self._wake_up

    def add_callback_threadsafe(self, callback: Callable[[], None]) -> None:
        # In this order: whoever appends after the loop has looked finds it not awake.
        self._callbacks.append(callback)
        if not self._awake:
            self._awake = True
            self._poller.wake_threadsafe()

    add_callback = add_callback_threadsafe

    def _wake_up(self, events: dict[int, int]) -> None:
        """Be called right after waiting; what is called for becomes due before the next wait."""
        self._awake = True
        self._dispatch(events)

    def _get_remaining_interval(self) -> float | None:
        """Say how long to wait; this is asked right before waiting."""
        self._awake = False
        return super()._get_remaining_interval()  # type: ignore[no-any-return]


class _Services(adapter.SelectorIOServicesAdapter):  # type: ignore[misc]
    """What a connection lives on; its look-ups of names never hold up the end of the process."""

    def getaddrinfo(self, host: str, port: int, on_done: Callable[..., None], **hints: int) -> Any:  # noqa: ANN401
        hints = {"family": 0, "socktype": 0, "proto": 0, "flags": 0, **hints}
        return _Resolver(self._loop, host, port, on_done=on_done, **hints).start()


class _Resolver(adapter._AddressResolver):  # type: ignore[misc]
    def start(self) -> Any:  # noqa: ANN401
        self._state = self.ACTIVE
        # The library's own thread is no daemon: an interpreter that ends would wait for a name server that is gone.
        self._threading_timer = threading.Timer(0, self._resolve)
        self._threading_timer.daemon = True
        self._threading_timer.start()
        return adapter._SelectorIOLoopIOHandle(self)
