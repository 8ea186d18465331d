"""What no worker may have of its node: more than Kubernetes' Baseline, for whoever may create only consumers.

Pods are made with the operator's rights, in namespaces that may enforce nothing. Without this, who may create a
RetryingConsumer, and no pod, would reach the files, processes and network of a node, and by them everything else in the
cluster. The standard is https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline; beyond it, only
the kinds of volumes that Restricted knows are taken, since a node mounts the others by itself, and for some runs what
the template names; no node is named, which goes past the scheduler and the taints, and not all taints are tolerated at
once; no worker ranks with the cluster's own pods; and no mesh is told to put into a pod what the template itself may
not ask for. The platform's team can lift all of it by a setting of the operator's. A stricter standard is for
the namespace to enforce.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from redrive.errors import SpecError
from redrive.spec.fields import boolean, show, string
from redrive_operator.raw_pod import list_of, object_in, objects_in

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_HOST_NAMESPACES = ("hostNetwork", "hostPID", "hostIPC")
_PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
_HOOKS = ("postStart", "preStop")
_ACTIONS = ("httpGet", "tcpSocket")

_CAPABILITIES = frozenset({
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
    "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
})  # fmt: skip
_SELINUX_TYPES = frozenset({"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"})
_SYSCTLS = frozenset({
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem",
})  # fmt: skip
_VOLUMES = (
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret",
)  # fmt: skip
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"

# By these, a mesh's webhook is told what to put into the pod, by rights that the template has not: volumes of whatever
# kind, whole containers, images and binaries for its own privileged ones.
# https://istio.io/latest/docs/reference/config/annotations/
_ISTIOS = ("sidecar.istio.io/", "proxy.istio.io/", "inject.istio.io/")
_ISTIOS_HARMLESS = frozenset({
    f"sidecar.istio.io/{name}" for name in (
        "agentLogLevel", "componentLogLevel", "inject", "logLevel", "nativeSidecar", "proxyCPU", "proxyCPULimit",
        "proxyMemory", "proxyMemoryLimit", "rewriteAppHTTPProbers",
    )
})  # fmt: skip
# https://linkerd.io/2/reference/proxy-configuration/
_LINKERDS_IMAGES = ("-image", "-version")

# The webhooks write what an annotation says into templates, where a quote or a line break would begin another field.
_MESHES = re.compile(r"([^/]*\.)?(istio|linkerd)\.io/.*", re.ASCII | re.DOTALL)
_PLAIN = re.compile(r"([-A-Za-z0-9.,:*/_=]|, )*", re.ASCII)

# The webhook merges a container of such a name with its own, and with the capabilities of that.
_ISTIOS_CONTAINERS = frozenset({"enable-core-dump", "istio-init", "istio-proxy", "istio-validation"})

# Kubernetes keeps such names for the classes of its own.
_CLUSTERS_PRIORITY = "system-"

_ADVICE = "a worker may have nothing of its node, unless the platform's team lifts that (podSecurity of the operator)"


def refuse_unsafe(template: Mapping[str, Any], path: str) -> None:
    """Raise SpecError for the first thing in a tidy template that the Baseline standard forbids."""
    _refuse_annotations(object_in(template, "metadata", path), f"{path}.metadata")
    spec, path = object_in(template, "spec", path), f"{path}.spec"
    for field in _HOST_NAMESPACES:
        _refuse_true(spec, field, path)
    _check_placing(spec, path)
    for where, volume in objects_in(spec, "volumes", path):
        for kind in volume:
            if kind not in ("name", *_VOLUMES):
                raise _unsafe(f"{where}.{kind}", f"must be left out, or be one of {', '.join(_VOLUMES)}")
    _check_security(spec, path)
    for field in _CONTAINERS:
        for where, container in objects_in(spec, field, path):
            _check_container(container, where)


def _check_placing(spec: Mapping[str, Any], path: str) -> None:
    if string(spec.get("nodeName", ""), f"{path}.nodeName"):
        problem = "must be left out, as it goes past the scheduler and the taints of nodes"
        raise _unsafe(f"{path}.nodeName", f"{problem} (nodeSelector and affinity do not)")
    for where, toleration in objects_in(spec, "tolerations", path):
        if string(toleration.get("key", ""), f"{where}.key") == "":
            problem = "is required, as without it every taint is tolerated, those of the control plane too"
            raise _unsafe(f"{where}.key", problem)
    priority = string(spec.get("priorityClassName", ""), f"{path}.priorityClassName")
    if priority.startswith(_CLUSTERS_PRIORITY):
        raise _unsafe(f"{path}.priorityClassName", f"must not be {show(priority)}, before which all others have to go")


def _check_container(container: Mapping[str, Any], path: str) -> None:
    name = string(container.get("name", ""), f"{path}.name")
    if name in _ISTIOS_CONTAINERS:
        raise _unsafe(f"{path}.name", f"must not be {show(name)}, which a mesh adds capabilities to")
    _check_security(container, path)
    for where, port in objects_in(container, "ports", path):
        if port.get("hostPort", 0) != 0:
            raise _unsafe(f"{where}.hostPort", "must be left out")
    for where, action in _actions(container, path):
        if action.get("host", "") != "":
            raise _unsafe(f"{where}.host", "must be left out: the node itself would ask that host")


def _actions(container: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Give each request that the kubelet would make for a container, and where it is asked for."""
    lifecycle = object_in(container, "lifecycle", path)
    asked = [(container, probe, path) for probe in _PROBES]
    asked += [(lifecycle, hook, f"{path}.lifecycle") for hook in _HOOKS]
    for holder, field, where in asked:
        for kind in _ACTIONS:
            yield f"{where}.{field}.{kind}", object_in(object_in(holder, field, where), kind, f"{where}.{field}")


def _check_security(holder: Mapping[str, Any], path: str) -> None:
    """Look at the securityContext of a pod or of a container; the API server knows which field belongs where."""
    context, path = object_in(holder, "securityContext", path), f"{path}.securityContext"
    _refuse_true(context, "privileged", path)
    _refuse_true(object_in(context, "windowsOptions", path), "hostProcess", f"{path}.windowsOptions")
    _refuse_other(context, "procMount", path, lambda mount: mount == "Default")
    for profile in ("seccompProfile", "appArmorProfile"):
        _refuse_other(object_in(context, profile, path), "type", f"{path}.{profile}", lambda kind: kind != "Unconfined")
    _check_capabilities(object_in(context, "capabilities", path), f"{path}.capabilities")
    _check_selinux(object_in(context, "seLinuxOptions", path), f"{path}.seLinuxOptions")
    for where, sysctl in objects_in(context, "sysctls", path):
        _refuse_other(sysctl, "name", where, _SYSCTLS.__contains__)


def _check_capabilities(capabilities: Mapping[str, Any], path: str) -> None:
    for index, capability in enumerate(list_of(capabilities.get("add", []), f"{path}.add")):
        if string(capability, f"{path}.add[{index}]") not in _CAPABILITIES:
            raise _unsafe(f"{path}.add[{index}]", f"must not be {show(capability)}")


def _check_selinux(options: Mapping[str, Any], path: str) -> None:
    _refuse_other(options, "type", path, _SELINUX_TYPES.__contains__)
    for field in ("user", "role"):
        _refuse_other(options, field, path, lambda value: value == "")


def _refuse_annotations(metadata: Mapping[str, Any], path: str) -> None:
    annotations = object_in(metadata, "annotations", path)
    for name, told in annotations.items():
        _refuse_meshs(name.lower(), name, string(told, f"{path}.annotations"), f"{path}.annotations")
    for name, profile in annotations.items():
        if name.startswith(_APPARMOR) and profile != "runtime/default" and not str(profile).startswith("localhost/"):
            raise _unsafe(f"{path}.annotations", f"must not set {show(name)} to {show(profile)}")


def _refuse_meshs(lower: str, name: str, told: str, path: str) -> None:
    if lower.startswith(_ISTIOS) and name not in _ISTIOS_HARMLESS:
        raise _unsafe(path, f"must not have {show(name)}, by which a mesh may be told of privileged containers")
    if _MESHES.fullmatch(lower) is None:
        return
    if "linkerd.io/" in lower and lower.endswith(_LINKERDS_IMAGES):
        raise _unsafe(path, f"must not have {show(name)}, which may name an image for a privileged container")
    if not _PLAIN.fullmatch(told):
        problem = f"must not set {show(name)} to {show(told)}, which a mesh writes into a pod as it is"
        raise _unsafe(path, f"{problem} (letters, digits and . , : * / _ = - are taken, and a space after a comma)")


def _refuse_true(holder: Mapping[str, Any], field: str, path: str) -> None:
    if boolean(holder.get(field, False), f"{path}.{field}"):
        raise _unsafe(f"{path}.{field}", "must be left out")


def _refuse_other(holder: Mapping[str, Any], field: str, path: str, is_safe: Callable[[str], bool]) -> None:
    """Refuse text that is not safe; a field that is left out is."""
    if field in holder and not is_safe(string(holder[field], f"{path}.{field}")):
        raise _unsafe(f"{path}.{field}", f"must not be {show(holder[field])}")


def _unsafe(path: str, problem: str) -> SpecError:
    return SpecError(path, f"{problem}: {_ADVICE}")
