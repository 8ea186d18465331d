"""Every place of a rich template with something odd in it: merged, or refused with a sentence, and never a crash."""

import copy

import pytest
from rearranging import places, put
from workload_bed import HTTP, PYTHON, build, consumer, template_of

from redrive.errors import SpecError
from redrive_operator.pod_template import merge_pod_template

SECURITY = {
    "privileged": False,
    "procMount": "Default",
    "windowsOptions": {"hostProcess": False},
    "seccompProfile": {"type": "Localhost"},
    "appArmorProfile": {"type": "RuntimeDefault"},
    "capabilities": {"add": ["CHOWN"], "drop": ["ALL"]},
    "seLinuxOptions": {"type": "", "user": "", "role": ""},
    "sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}],
}
WORKER = {
    "name": "worker",
    "ports": [{"containerPort": 80, "hostPort": 0, "name": "x"}],
    "env": [{"name": "A", "value": "b"}],
    "envFrom": [{"secretRef": {"name": "a"}}],
    "volumeMounts": [{"name": "v", "mountPath": "/x", "subPath": "y"}],
    "volumeDevices": [{"name": "v", "devicePath": "/y"}],
    "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
    "securityContext": SECURITY,
}
OTHER = {
    **copy.deepcopy(WORKER),
    "name": "other",
    "image": "x",
    "livenessProbe": {"httpGet": {"host": "", "port": 1}, "tcpSocket": {"host": ""}},
    "lifecycle": {"postStart": {"httpGet": {"host": ""}}, "preStop": {"tcpSocket": {}}},
}
RICH = {
    "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d", "sidecar.istio.io/inject": "true"}},
    "spec": {
        "hostPID": False,
        "hostNetwork": False,
        "nodeName": "",
        "priorityClassName": "p",
        "serviceAccountName": "",
        "serviceAccount": "",
        "automountServiceAccountToken": False,
        "securityContext": copy.deepcopy(SECURITY),
        "volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "a"}}]}}],
        "containers": [WORKER, OTHER],
        "initContainers": [{**copy.deepcopy(OTHER), "name": "first"}],
        "ephemeralContainers": [{**copy.deepcopy(OTHER), "name": "later"}],
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "imagePullSecrets": [{"name": "a"}],
        "hostAliases": [{"ip": "1.1.1.1", "hostnames": ["a"]}],
        "topologySpreadConstraints": [{"maxSkew": 1}],
        "affinity": {"nodeAffinity": {}},
    },
}
ODD = [[], {}, [[]], [{}], [None], 1, 1.5, True, "", "x", None, [1], ["x"], {"a": 1}, {"name": []}, [{"name": []}]]


@pytest.mark.parametrize("runner", [PYTHON, HTTP], ids=["python", "http"])
@pytest.mark.parametrize("accounts", [(), ("*",)], ids=["no account", "any account"])
def test_odd_value_anywhere_in_a_template_is_merged_or_refused_with_a_sentence(runner, accounts):
    planned = template_of(build(consumer(runner)))
    merge_pod_template(RICH, planned, accounts=accounts)
    for place in places(RICH):
        for odd in ODD:
            told = try_to_merge(put(RICH, place, odd), planned, accounts)
            assert told is None or told.startswith("spec.worker.podTemplate"), (place, odd)


def try_to_merge(template, planned, accounts):
    """Merge it, or return the sentence of its refusal, or whatever else came of it."""
    try:
        merge_pod_template(template, planned, accounts=accounts)
    except SpecError as error:
        return str(error)
    except Exception as error:
        return repr(error)
    return None
