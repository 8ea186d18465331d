"""Tells a verdict: writes the status where it differs, and posts the events."""

from collections.abc import Callable, Mapping
from typing import Any

from redrive_operator.judge import Verdict
from redrive_operator.kube import Kind
from redrive_operator.status import patch_of
from redrive_operator.subject import Subject
from redrive_operator.tools import Tools


def tell_verdict(
    tools: Tools, kind: Kind, subject: Subject, verdict: Verdict, *, take: Callable[[Mapping[str, Any]], object]
) -> bool:
    """Tell what was judged, and say whether there was anything; `take` is given the object as it is after the write."""
    patch = patch_of(subject.status, verdict.status)
    if patch is not None:
        body = tools.kube.patch_status(kind, subject.key, patch)
        if body is not None:
            take(body)
    for event in verdict.events:
        tools.herald.tell(subject, event.type, event.reason, event.message)
    return patch is not None or bool(verdict.events)
