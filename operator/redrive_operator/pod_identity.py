"""In whose name a worker's pod speaks: nobody's, unless the platform's team lets worker pods have a service account.

Pods are made with the operator's rights. Without this, who may create a RetryingConsumer, and no pod, would have the
token of any service account of the namespace, and by it whatever that account may do. A token comes in more ways than
by being mounted: a projected volume asks for one, of any audience; a pod certificate is one; and a volume's driver may
be handed one, or act by rights of its own on what the template tells it. All of them need an account that is allowed,
by its name: that which all pods share is nobody's own.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from redrive.errors import SpecError
from redrive.spec.fields import boolean, show, string
from redrive_operator.raw_pod import object_in, objects_in

ANY_ACCOUNT = "*"

# The second is the older name of the first, which the API server still takes.
_NAMES = ("serviceAccountName", "serviceAccount")

# What a projected volume may have of anybody. A source that is not here may be a credential.
_HARMLESS = frozenset({"clusterTrustBundle", "configMap", "downwardAPI", "secret"})

_LIST = "workerServiceAccounts of the operator's chart"
_ADVICE = f"goes only with a serviceAccountName that the platform's team lets worker pods have ({_LIST})"


def refuse_identity(template: Mapping[str, Any], path: str, accounts: tuple[str, ...]) -> None:
    """Raise SpecError for the first thing in a tidy template that gives its pods a name which is not in `accounts`."""
    spec, path = object_in(template, "spec", path), f"{path}.spec"
    named = False
    for field in _NAMES:
        name = string(spec.get(field, ""), f"{path}.{field}")
        if name and ANY_ACCOUNT not in accounts and name not in accounts:
            problem = f"must not be {show(name)}: leave it out, or have the platform's team let worker pods have it"
            raise SpecError(f"{path}.{field}", f"{problem} ({_LIST})")
        named = named or bool(name)
    for place in _ways_to_a_token(spec, path):
        if not named:
            raise SpecError(place, f"{_ADVICE}: leave it out, or name such a one")


def _ways_to_a_token(spec: Mapping[str, Any], path: str) -> Iterator[str]:
    """Give each place where a token, or what is as good, is asked for."""
    if boolean(spec.get("automountServiceAccountToken", False), f"{path}.automountServiceAccountToken"):
        yield f"{path}.automountServiceAccountToken"
    for where, volume in objects_in(spec, "volumes", path):
        if "csi" in volume:
            yield f"{where}.csi"
        projected = object_in(volume, "projected", where)
        for place, source in objects_in(projected, "sources", f"{where}.projected"):
            yield from (f"{place}.{kind}" for kind in source if kind not in _HARMLESS)
