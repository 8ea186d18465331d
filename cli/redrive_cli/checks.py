"""What a doctor finds: pure. Each check is a value: how it is, what was seen, and what to do about it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from redrive.versions import refuse_version
from redrive_cli.standing import Standing

OLDEST_KUBERNETES = (1, 31)
API_VERSION = "v1alpha1"
VERSION_LABEL = "app.kubernetes.io/version"


class State(StrEnum):
    """How a thing is. Only what is bad makes the doctor's exit code 1."""

    GOOD = "ok"
    UNSURE = "mind"
    BAD = "wrong"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. `mend` says what to do where it is not good."""

    what: str
    state: State
    seen: str
    mend: str = ""

    def as_json(self) -> dict[str, str]:
        return {"check": self.what, "state": str(self.state), "seen": self.seen, "mend": self.mend}


def check_kubernetes(version: str) -> Check:
    found = re.match(r"v?(\d+)\.(\d+)", version)
    if found is None:
        return Check("kubernetes", State.UNSURE, f"its version is {version!r}, which is none", "is this Kubernetes?")
    if (int(found[1]), int(found[2])) < OLDEST_KUBERNETES:
        return Check("kubernetes", State.BAD, f"{version} is too old", "upgrade it to 1.31 or newer")
    return Check("kubernetes", State.GOOD, version)


def check_crd(name: str, body: Mapping[str, Any] | None, own_version: str) -> Check:
    """See that a kind is served in the version that we speak."""
    if body is None:
        return Check(name, State.BAD, "this kind is not installed", "install Redrive's chart, or its crds/")
    served = [each.get("name") for each in body["spec"].get("versions") or () if each.get("served")]
    conditions = {each["type"]: each["status"] for each in (body.get("status") or {}).get("conditions") or ()}
    if API_VERSION not in served:
        seen = f"it is served as {', '.join(map(str, served)) or 'nothing'}, not as {API_VERSION}"
        return Check(name, State.BAD, seen, "upgrade Redrive's chart, or use the `redrive` of that version")
    if conditions.get("Established") != "True":
        return Check(name, State.BAD, "the API server does not serve it yet", f"see `kubectl describe crd {name}`")
    version = (body["metadata"].get("labels") or {}).get(VERSION_LABEL)
    if version and version != own_version:
        seen = f"it is that of version {version}, and this is `redrive` {own_version}"
        return Check(name, State.UNSURE, seen, "upgrade Redrive's chart, or use the `redrive` of that version")
    return Check(name, State.GOOD, f"served as {API_VERSION}{f', of version {version}' if version else ''}")


def check_operator(deployments: Sequence[Mapping[str, Any]], own_version: str) -> Iterator[Check]:
    """See that the operator runs, and that it is of our version."""
    if not deployments:
        mend = "install the chart, or name its namespace with --operator-namespace"
        yield Check("operator", State.BAD, "no operator was found in this cluster", mend)
    for body in deployments:
        metadata, status = body["metadata"], body.get("status") or {}
        where = f"{metadata['namespace']}/{metadata['name']}"
        if not status.get("readyReplicas"):
            mend = f"see `kubectl logs --namespace {metadata['namespace']} deployment/{metadata['name']}`"
            yield Check("operator", State.BAD, f"{where} has no pod that is ready", mend)
            continue
        version = (metadata.get("labels") or {}).get(VERSION_LABEL)
        if version and version != own_version:
            seen = f"{where} runs version {version}, and this is `redrive` {own_version}"
            yield Check("operator", State.UNSURE, seen, "use the same version of both")
        else:
            yield Check("operator", State.GOOD, f"{where} runs{f' version {version}' if version else ''}")


@dataclass(frozen=True, slots=True)
class Right:
    """Something that a person may need to be allowed, and for what."""

    verb: str
    resource: str
    needed_for: str
    basic: bool = False


def check_right(right: Right, allowed: bool, where: str) -> Check:
    what = f"may {right.verb} {right.resource}"
    if allowed:
        return Check(what, State.GOOD, f"yes, {where}")
    seen = f"no, {where}: {right.needed_for} will not work"
    mend = f"ask for a role with the verb `{right.verb}` on `{right.resource}` {where}"
    return Check(what, State.BAD if right.basic else State.UNSURE, seen, mend)


def sum_up(rights: Sequence[Check], where: str) -> Iterator[Check]:
    """Name the rights that are missing one by one, and count the others."""
    missing = [check for check in rights if check.state is not State.GOOD]
    had = f"all {len(rights)}" if not missing else f"{len(rights) - len(missing)} of {len(rights)}"
    yield Check("your permissions", State.GOOD, f"you have {had} that commands need {where}")
    yield from missing


def check_standing(standing: Standing) -> Iterator[Check]:
    """Say what the operator says is wrong with a consumer, and what a person should see to."""
    what = f"{standing.namespace}/{standing.name}"
    bad = [each for each in standing.conditions if each.is_bad and each.type != "Ready"]
    if standing.ready is None or not standing.current:
        yield Check(what, State.BAD, standing.verdict, "see the checks of the operator")
    elif not standing.is_ready:
        for each in bad or [standing.ready]:
            seen = f"{each.type} is {each.status}, {each.reason}: {each.message}"
            yield Check(what, State.BAD, seen, f"see `redrive status {standing.name} -n {standing.namespace}`")
    elif standing.paused:
        mend = f"`redrive resume {standing.name} -n {standing.namespace}` when it shall go on"
        yield Check(what, State.UNSURE, "it is paused", mend)
    else:
        yield Check(what, State.GOOD, "ready")
    for sentence in standing.missing:
        yield Check(what, State.UNSURE, sentence)
    if standing.counts.dead:
        mend = f"`redrive dead groups {standing.name} -n {standing.namespace}`"
        letters = "1 dead letter waits" if standing.counts.dead == 1 else f"{standing.counts.dead} dead letters wait"
        yield Check(what, State.UNSURE, f"{letters} for a person", mend)


def check_broker(what: str, version: str, *, management: bool, orphans: int | None) -> Iterator[Check]:
    """Judge a broker that answered."""
    refused = refuse_version(version)
    if refused is not None:
        yield Check(what, State.BAD, refused, "upgrade RabbitMQ")
    elif management:
        yield Check(what, State.GOOD, f"RabbitMQ {version}, with its management API")
    else:
        seen = f"RabbitMQ {version}, without a management API: no retention, no scaling down, no adoption"
        yield Check(what, State.UNSURE, seen, "give the broker's Secret `management_uri`")
    if orphans:
        seen = f"{orphans} messages in redrive.orphans: their consumer's queue was gone when they came back"
        yield Check(what, State.UNSURE, seen, "`redrive orphans list`")
