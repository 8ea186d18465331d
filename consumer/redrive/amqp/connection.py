"""The library's connection, which reads more at a time, and for a worker also writes fewer times."""

from collections.abc import Iterable, Sequence
from typing import Any

import pika
from pika import frame

from redrive.amqp.intake import Intake

# The library reads 4 KiB at a time.
RECEIVE_BYTES = 65_536

# What one turn of the loop brings is sent in pieces of about this size, and not with a system call for each frame. What
# the system does not take at once of a piece is copied, so pieces must not be too large.
SEND_BYTES = 262_144


def send_at_once(connection: Any, frames: Sequence[bytes]) -> None:  # noqa: ANN401 - the library's blocking one
    """Send frames that are written already by a blocking connection, and wait until they have gone."""
    connection._impl._output_marshaled_frames([b"".join(frames)] if frames else [])
    connection._flush_output()


class Reader(pika.SelectConnection):  # type: ignore[misc]  # the library has no annotations that are seen here
    """Deliveries that somebody takes are read by its `intake`, and everything else by the library."""

    _frame_buffer: bytes

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        self.intake = Intake(self._leave_to_library)
        super().__init__(*args, **kwargs)

    def read_more_at_once(self) -> None:
        """To be called when the connection is open."""
        self._transport._MAX_RECV_BYTES = RECEIVE_BYTES

    def _on_data_available(self, data: bytes) -> None:
        if not self._opened:
            super()._on_data_available(data)
            return
        buffer = self._frame_buffer + data if self._frame_buffer else data
        length = self.intake.read(buffer)
        self._frame_buffer = buffer[length:]
        self.bytes_received += length

    def _leave_to_library(self, raw: bytes) -> None:
        self._process_frame(frame.decode_frame(raw)[1])


class Connection(Reader):
    """A worker's: what is sent in one turn of the loop is sent together."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        self._outgoing: list[bytes] = []
        self._outgoing_bytes = 0
        super().__init__(*args, **kwargs)
        self.intake.keeps_headers = True

    def send(self, pieces: Iterable[bytes]) -> None:
        """Send frames that are written already."""
        for piece in pieces:
            self._adapter_emit_data(piece)

    def _adapter_emit_data(self, data: bytes) -> None:
        if not self._outgoing:
            self._nbio.add_callback_threadsafe(self._flush)
        self._outgoing.append(data)
        self._outgoing_bytes += len(data)
        if self._outgoing_bytes >= SEND_BYTES:
            self._flush()

    def _flush(self) -> None:
        outgoing, self._outgoing, self._outgoing_bytes = self._outgoing, [], 0
        if outgoing and self._transport is not None:
            self._transport.write(b"".join(outgoing))
