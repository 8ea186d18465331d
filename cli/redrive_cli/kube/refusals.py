"""What the API server refuses, as one sentence that says what to ask for. Nothing here does I/O.

The server's own words are kept where it knows better than we do, on one line and without anything that steers a
terminal. What it says of a Secret is not repeated: it may quote from it.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redrive_cli.errors import ClusterError, Forbidden, Missing
from redrive_cli.kube.kinds import SECRETS, Kind
from redrive_cli.wording import clean

LONGEST = 400

# "… cannot get resource "pods/portforward" in API group …": which verb counts is the server's to say.
_CANNOT = re.compile(r'cannot (?P<verb>[a-z]+) resource "(?P<resource>[a-z0-9./-]+)"')


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked, in the words of a role: `verb` on `kind`, or on a `part` of it."""

    verb: str
    kind: Kind
    namespace: str | None = None
    name: str = ""
    part: str = ""

    @property
    def resource(self) -> str:
        return f"{self.kind.resource}/{self.part}" if self.part else self.kind.resource

    def __str__(self) -> str:
        """Complete the sentence "cannot …"."""
        what = f"{self.kind.kind} {self.name}" if self.name else self.kind.plural
        return f"{self.verb} {f'the {self.part} of ' if self.part else ''}{what}{self.where}"

    @property
    def where(self) -> str:
        if not self.kind.namespaced:
            return ""
        return f" in namespace {self.namespace}" if self.namespace else " in all namespaces"


def explain(status: int, answer: bytes, request: Request) -> ClusterError:
    """Say what a refusal of this request means."""
    told = _read(answer)
    message = clean(" ".join(_text(told.get("message")).split()))[:LONGEST]
    match status:
        case 401:
            return ClusterError("the API server does not know you: log in again, or check the user of the context")
        case 403:
            return Forbidden(_say_forbidden(message, request))
        case 404 if _is_of_object(told):
            return Missing(f"there is no {request.kind.kind} {request.name}{request.where}")
        case 404:
            return Missing(_say_no_kind(request.kind))
        case _:
            words = "" if request.kind == SECRETS else message
            return ClusterError(f"cannot {request}: {words or f'the API server answered {status}'}")


def _say_forbidden(message: str, request: Request) -> str:
    """Name the verb and the resource as a role names them, so that the sentence can be handed on as it is."""
    found = _CANNOT.search(message)
    verb = found["verb"] if found else request.verb
    resource = request.resource
    if found and "/" in found["resource"]:
        resource = found["resource"]
    if message and not found:  # an admission policy, a quota: a role would not help
        return f"cannot {request}: {message}"
    need = f"the verb `{verb}` on `{resource}`{request.where}"
    return f"you may not {request}: ask for a role with {need}"


def _say_no_kind(kind: Kind) -> str:
    if kind.group.endswith("redrive.dev"):
        return (
            f"this cluster has no {kind.plural}: Redrive's kinds are not installed here, or this is not the context "
            "that you meant (--context)"
        )
    return f"this cluster's API has no {kind.resource}"


def _is_of_object(told: Mapping[str, Any]) -> bool:
    details = told.get("details")
    return isinstance(details, dict) and bool(details.get("name"))


def _read(answer: bytes) -> Mapping[str, Any]:
    try:
        told = json.loads(answer)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
