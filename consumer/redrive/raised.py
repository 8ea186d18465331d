"""What a handler raised, told as a Result: its class, its words and where it came from, none of them without bound.

An exception is the user's code too. Its text may be huge, or raise when it is asked for, and so may anything else about
it; a worker that died of that, or of the memory it takes to write it down, would run the same message for ever.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import timedelta
from linecache import getline
from traceback import TracebackException
from types import FrameType

from redrive.clip import clip_head, clip_tail
from redrive.outcome import Failed, Rejected, Result, Snoozed, type_names
from redrive.quickly import quickly
from redrive.signals import Reject, Retry, Snooze

# Bytes. The trace ends with the text, and most of it is to be frames: by them equal failures are known.
LONGEST_TEXT = 16_384
LONGEST_TRACE = 32_768

# What an error in the chain of another says, or one in a group, is only told in passing.
_LONGEST_ASIDE = 1024

# Of the stack of each error, counted from where it was raised.
_INNERMOST = 100

# Frames as they were written before, by file, line and function: a handler that fails for every message mostly does so
# in one place.
_MOST_WRITTEN = 512
_written: dict[tuple[str, int, str], str] = {}

_WISHES = (Retry, Snooze, Reject)
_TOLD_APART = (BaseExceptionGroup, SyntaxError)  # with what is in them, or with the place that they mean
_failed = quickly(Failed)


def result_of(error: BaseException) -> Result:
    """Say what an exception means; never raises."""
    try:
        return _read(error)
    except BaseException:  # whatever its own code does
        return Failed("an exception that cannot be told", error_types=type_names(Exception))


def describe(error: BaseException) -> str:
    """Say what an exception says of itself; never raises."""
    try:
        return _clip(str(error), LONGEST_TEXT)
    except BaseException:  # the user's own __str__
        return f"a {type(error).__name__} that cannot say what it is"


def trace_of(error: BaseException, said: str | None = None) -> str:
    """Say where it was raised, and what had been raised before; the end of that, where it is long.

    `said` is what it says of itself, if that is known.
    """
    try:
        said = describe(error) if said is None else said
        if _is_simple(error):
            return _trace_simply(error, said)
        told = TracebackException.from_exception(error, limit=-_INNERMOST, compact=True)
        for one in _chain(told):
            _shorten(one, _LONGEST_ASIDE)
        _say(told, said)
        return _tail(told.format())
    except BaseException:  # a cause, a note, a class of the user's own
        return ""


def _read(error: BaseException) -> Result:
    said = describe(error)
    trace = trace_of(error, said)
    if not isinstance(error, _WISHES):
        return _failed(said, type_names(type(error)), trace)
    match error:
        case Retry():
            return Failed(said, error_types=("redrive.Retry",), trace=trace, asked_delay=_delay_of(error))
        case Snooze():
            return Snoozed(_delay_of(error))
        case _:
            return Rejected(said, trace)


def _delay_of(wish: Retry | Snooze) -> timedelta | None:
    """It was checked when the wish was made; it may have been changed since."""
    return wish.delay if isinstance(wish.delay, timedelta) else None


def _is_simple(error: BaseException) -> bool:
    """Say whether nothing led to it and nothing is in it, as with nearly every error."""
    context = None if error.__suppress_context__ else error.__context__
    is_plain = error.__cause__ is None and context is None and not getattr(error, "__notes__", None)
    return is_plain and not isinstance(error, _TOLD_APART)


def _trace_simply(error: BaseException, said: str) -> str:
    """Write the trace as Python does, but for the marks below a line.

    Python's own writer asks the file system about every file of it, each time: with a handler that fails for every
    message, that is most of what the worker does.
    """
    frames: deque[str] = deque(maxlen=_INNERMOST)
    step = error.__traceback__
    while step is not None:
        frames.append(_write_frame(step.tb_frame, step.tb_lineno))
        step = step.tb_next
    name = type_names(type(error))[0]
    return _tail(["Traceback (most recent call last):\n", *frames, f"{name}: {said}\n" if said else f"{name}\n"])


def _write_frame(frame: FrameType, line: int) -> str:
    code = frame.f_code
    where = code.co_filename, line, code.co_name
    written = _written.get(where)
    if written is None:
        if len(_written) >= _MOST_WRITTEN:
            _written.clear()
        written = f'  File "{code.co_filename}", line {line}, in {code.co_name}\n'
        source = getline(code.co_filename, line, frame.f_globals).strip()
        written += f"    {source[:_LONGEST_ASIDE]}\n" if source else ""
        _written[where] = written
    return written


def _chain(told: TracebackException) -> Iterator[TracebackException]:
    """Go through what led to an error and what is in it, each once: there may be rings."""
    todo, seen = [told], {id(told)}
    while todo:
        one = todo.pop()
        yield one
        for other in (one.__cause__, one.__context__, *(one.exceptions or ())):
            if other is not None and id(other) not in seen:
                seen.add(id(other))
                todo.append(other)


def _shorten(told: TracebackException, limit: int) -> None:
    """Cut the texts before they are copied from one string into the next."""
    _say(told, _clip(str(told), limit))
    notes = told.__notes__
    told.__notes__ = [_clip(str(note), limit) for note in notes[:8]] if isinstance(notes, list) else None


def _say(told: TracebackException, text: str) -> None:
    # There is no public way to set it; where Python should come to keep it elsewhere, the whole trace is cut instead.
    told._str = text  # type: ignore[attr-defined]


def _tail(pieces: Iterable[str]) -> str:
    kept: deque[str] = deque()
    size = 0
    for piece in pieces:
        kept.append(piece)
        size += len(piece)
        while size - len(kept[0]) >= LONGEST_TRACE:
            size -= len(kept.popleft())
    return clip_tail("".join(kept), LONGEST_TRACE)


def _clip(text: str, limit: int) -> str:
    # By the method of str itself: what the user's __str__ returns may be of a class of his own.
    return clip_head(str.__getitem__(text, slice(limit)), limit)
