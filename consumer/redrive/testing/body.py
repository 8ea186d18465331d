"""What a publisher may hand over as a body, and the bytes that it becomes."""

import json
from collections.abc import Mapping, Sequence

import pydantic

Body = bytes | str | int | float | None | Mapping[str, object] | Sequence[object] | pydantic.BaseModel


def encode_body(body: Body) -> bytes:
    """Bytes stay, text becomes UTF-8, a model the JSON that it reads itself from, and everything else JSON."""
    match body:
        case bytes():
            return body
        case str():
            return body.encode()
        case pydantic.BaseModel():
            return body.model_dump_json(by_alias=True).encode()
        case _:
            return json.dumps(body).encode()
