"""What the API server's refusals mean: a status and its words, as one of our errors.

The words are the server's own, on one line: nobody knows better what it did not like. Except of Secrets, where a
refusal (of a schema, or of somebody's admission webhook) may quote what lies in them: of those only the names of
fields are repeated.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from redrive_operator.errors import KubeConflict, KubeError, KubeInvalid, KubeRefused, KubeUnavailable
from redrive_operator.kube.kinds import NAMESPACES, SECRETS, Kind
from redrive_operator.wording import shorten

LONGEST = 600

# What the API server says, with status 500, when an applied object has a field that its kind does not.
_NO_SUCH_FIELD = "failed to create typed patch object"

_WORDS = {
    400: "it cannot be read",
    401: "the API server does not know these credentials",
    403: "the operator's role does not allow it, or a policy or a quota forbids it",
    404: "there is no such thing",
    409: "somebody else changed it in the meantime",
    413: "it is too large",
    422: "it is not valid",
    429: "the API server is busy",
}


class Missing(KubeInvalid):
    """There is no object of that name. A kind that is not served at all is another matter: see `explain`."""


class Expired(KubeUnavailable):
    """What was to be continued is too old to be; with a `token`, it can be gone on with as things are now."""

    def __init__(self, message: str, token: str = "") -> None:
        super().__init__(message)
        self.token = token


class TooLong(KubeError):
    """The answer is longer than whoever asked can take, and was given up."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is not what was asked for, as far as it can be read."""

    status: int
    reason: str = ""
    message: str = ""
    kind: str = ""  # of what is spoken of, in the plural
    name: str = ""
    fields: tuple[str, ...] = ()
    token: str = field(default="", repr=False)  # to go on with a list that has grown too old


def one_line(text: str, limit: int = LONGEST) -> str:
    return shorten(" ".join(text.split()), limit)


def read_refusal(status: int, answer: bytes) -> Refusal:
    """Read the Status that the API server sends; whoever else answers (a proxy, say) may send anything."""
    try:
        body = json.loads(answer)
    except (ValueError, RecursionError):
        return Refusal(status)
    told = _mapping(body)
    details = _mapping(told.get("details"))
    causes = details.get("causes")
    fields = [_text(_mapping(cause).get("field")) for cause in causes] if isinstance(causes, list) else []
    return Refusal(
        status,
        reason=_text(told.get("reason")),
        message=_text(told.get("message")),
        kind=_text(details.get("kind")),
        name=_text(details.get("name")),
        fields=tuple(dict.fromkeys(name for name in fields if name)),
        token=_text(_mapping(told.get("metadata")).get("continue")),
    )


def explain(refusal: Refusal, what: str, kind: Kind) -> KubeError:
    """Say what the refusal of `what` ("apply Deployment shop/orders"), which is of that kind, comes to."""
    if refusal.status == 404 and not refusal.name:
        told = f"this cluster's API has no {kind.plural}: install Redrive's CRDs in the operator's version"
    elif kind == SECRETS or not refusal.message:
        told = _tell_fields(refusal)
    else:
        told = one_line(refusal.message)
    return _error_of(refusal, kind)(f"cannot {what}: {told}")


def _error_of(refusal: Refusal, kind: Kind) -> Callable[[str], KubeError]:
    match refusal.status:
        case 404 if refusal.kind == "namespaces" and kind != NAMESPACES:
            return KubeRefused  # as in a namespace that is being deleted: a moment later it has been
        case 404 if refusal.name:
            return Missing
        case 409:
            return KubeConflict
        case 410:
            return partial(Expired, token=refusal.token)
        case 401 | 403:
            return KubeRefused
        case 408 | 425 | 429:
            return KubeUnavailable
        case 500 if refusal.message.startswith(_NO_SUCH_FIELD):
            return KubeInvalid
        case status if 400 <= status < 500:
            return KubeInvalid
    return KubeUnavailable


def _tell_fields(refusal: Refusal) -> str:
    fields = f" (see {', '.join(refusal.fields)})" if refusal.fields else ""
    return one_line(f"{_describe(refusal.status)}{fields}")


def _describe(status: int) -> str:
    return _WORDS.get(status, f"the API server answered {status}")


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
