"""The handlers of `worker_handler` once more, for a worker that awaits them. Apart, to spare the others asyncio."""

import asyncio
from typing import Any

from bench import worker_handler as plain


async def succeed(body: bytes) -> None:
    if plain.seconds:
        await asyncio.sleep(plain.seconds)
    plain.note_success(body)


async def fail_first(body: bytes, message: Any) -> None:  # noqa: ANN401
    plain.fail_first(body, message)
