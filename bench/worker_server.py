"""The handler as a server that messages are posted to, on a port that it writes into a file.

It understands what a worker sends, and nothing else of HTTP, so that next to none of the time is its own.
"""

import asyncio
import sys
from pathlib import Path

from bench import worker_handler

_DONE = b"HTTP/1.1 204 No Content\r\n\r\n"
_NOT_YET = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while head := await _read_head(reader):
        body = await reader.readexactly(int(head[b"content-length"]))
        if worker_handler.seconds:
            await asyncio.sleep(worker_handler.seconds)
        writer.write(_answer(body, int(head[b"redrive-attempt"])))
    writer.close()


async def _read_head(reader: asyncio.StreamReader) -> dict[bytes, bytes]:
    try:
        _, *lines = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
    except asyncio.IncompleteReadError:
        return {}  # the worker has gone
    named = (line.partition(b":") for line in lines if line)
    return {name.lower(): value.strip() for name, _, value in named}


def _answer(body: bytes, attempt: int) -> bytes:
    try:
        worker_handler.fail_or_succeed(*worker_handler.read_body(body, attempt))
    except worker_handler.NotYet:
        return _NOT_YET
    return _DONE


async def main(told: Path) -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**20)
    beside = told.with_suffix(".new")
    beside.write_text(str(server.sockets[0].getsockname()[1]))
    beside.rename(told)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
