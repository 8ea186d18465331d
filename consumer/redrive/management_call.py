"""One call of RabbitMQ's management API: asked, answered by a deadline, and what was refused told as an error of ours.

Only RabbitMQ itself can say that something is not there. A proxy before it, or whatever else answers while it starts,
says 404 as well, in other words: that is no answer.
"""

import json
import ssl
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from urllib.parse import quote

from redrive.endpoints import Endpoint, tls_context
from redrive.errors import AccessRefused, BadAnswer, BrokerError, NotFound, Unreachable
from redrive.timed_http import Deadline, TimedConnection

# The longest silence of a broker that answers.
TIMEOUT_SECONDS = 20

# What is no list is one small object.
LONGEST_OBJECT = 256 * 1024

# How RabbitMQ says 404, of what there is not and of what cannot be.
_NOT_FOUND = ("Object Not Found", "not_found")


class Api:
    """The management API of one broker. Every call is a connection of its own: nothing to keep alive."""

    def __init__(self, endpoint: Endpoint, tls: ssl.SSLContext | None) -> None:
        self._endpoint = endpoint
        self._tls = (tls or tls_context()) if endpoint.secure else None
        credentials = b64encode(f"{endpoint.user}:{endpoint.password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {credentials}", "Content-Type": "application/json"}

    def call(
        self, method: str, path: Sequence[str], until: Deadline, *, body: object = None, query: str = ""
    ) -> object:
        """Have one answer, which is small; None where it is empty."""
        with self.ask(method, path, until, body=body, query=query) as answer:
            content = answer.read(LONGEST_OBJECT + 1)
        if not content.strip():
            return None
        try:
            parsed: object = json.loads(content[:LONGEST_OBJECT])
        except (ValueError, RecursionError) as error:
            what = self._name(method, path)
            raise BadAnswer(f"{what} did not answer in JSON: is this really its address?") from error
        return parsed

    @contextmanager
    def ask(
        self, method: str, path: Sequence[str], until: Deadline, *, body: object = None, query: str = ""
    ) -> Iterator[HTTPResponse]:
        """Have an answer that is to be read here; one that refuses is an error."""
        _refuse_dots(path)
        what = self._name(method, path)
        with _translated(what):
            connection = TimedConnection(self._endpoint, self._tls, until)
            try:
                url = f"{self._endpoint.path}/api/{_join(path)}{query}"
                connection.request(method, url, None if body is None else json.dumps(body), self._headers)
                answer = connection.getresponse()
                if answer.status not in (200, 201, 204):
                    raise _refusal(answer.status, answer.read(LONGEST_OBJECT), what)
                yield answer
            finally:
                connection.close()

    def _name(self, method: str, path: Sequence[str]) -> str:
        return f"{method} {_join(path)} of the management API at {self._endpoint}"


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise Unreachable(
            f"{what}: no whole answer in time, the broker is too slow or something holds it up"
        ) from error
    except OSError as error:
        raise Unreachable(f"{what}: {error.strerror or type(error).__name__}") from error
    except UnicodeError as error:
        raise Unreachable(f"{what}: its host name cannot be one ({type(error).__name__})") from error
    except HTTPException as error:
        raise BadAnswer(f"{what} answered, but not in HTTP: {type(error).__name__}") from error


def _join(path: Sequence[str]) -> str:
    return "/".join(quote(part, safe="") for part in path)


def _refuse_dots(path: Sequence[str]) -> None:
    """Refuse names by which the API would be asked for something else, even when they are quoted.

    To RabbitMQ `queues/.` is `queues`, those of every vhost, and `vhosts/../permissions` is everybody's permissions.
    """
    if not {".", ".."}.isdisjoint(path):
        raise BrokerError('the management API cannot be asked for what is called "." or "..": choose another name')


def _refusal(status: int, answer: bytes, what: str) -> BrokerError:
    said = _said(answer)
    reason = " ".join(said.get("reason", "").split())[:300] or "no reason given"
    match status:
        case 401 | 403:
            return AccessRefused(f"{what} was refused ({reason}): check the user's password, tags and permissions")
        case 404 if said.get("error") in _NOT_FOUND:
            return NotFound(f"{what}: there is no such thing")
        case 404:
            return BadAnswer(f"{what} was answered with 404, and not by RabbitMQ: what is between here and the broker?")
        case 502 | 503 | 504:
            return Unreachable(f"{what}: {status} {reason}")
        case _:
            return BrokerError(f"{what} was answered with {status}: {reason}")


def _said(answer: bytes) -> dict[str, str]:
    """Tell what RabbitMQ says of a refusal, and of anybody else's answer nothing: it may echo what was sent."""
    try:
        parsed = json.loads(answer)
    except (ValueError, RecursionError):
        return {}
    return {key: text for key, text in parsed.items() if isinstance(text, str)} if isinstance(parsed, dict) else {}
