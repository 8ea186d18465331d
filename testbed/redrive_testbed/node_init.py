"""The first process of a node, inside its namespaces: lays out the mounts, then keeps three servers running.

It is what an init system is on a real machine: a server that dies is started again, orphans are reaped, and with
its own end everything in the node ends.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from redrive_testbed import network
from redrive_testbed.node import NodeParts
from redrive_testbed.shell import run, succeeds, wait_until

PAUSE_IMAGE = "localhost/redrive-pause:1"
RESTART_AFTER = 1.0


def main() -> None:
    parts = NodeParts.read(Path(sys.argv[1]))
    folder = Path(parts.folder)
    lay_mounts(folder)
    run("hostname", parts.name)
    write_configuration(parts, folder)
    wait_until("no cable was laid", lambda: parts.address in run("ip", "-4", "addr", "show"), within=30)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    servers = {"containerd": start("containerd", parts)}
    wait_until("containerd does not answer", lambda: succeeds(*_ctr(folder), "version"), within=60)
    if PAUSE_IMAGE not in run(*_ctr(folder), "images", "list", "--quiet"):
        run(*_ctr(folder), "images", "import", parts.pause_archive)
    servers |= {name: start(name, parts) for name in ("kubelet", "kube-proxy")}
    keep_running(servers, parts)


def lay_mounts(folder: Path) -> None:
    """Give the node folders of its own where the servers' paths are fixed."""
    run("mount", "--make-rshared", "/")
    run("mount", "-t", "tmpfs", "tmpfs", "/run")
    run("mount", "-t", "tmpfs", "tmpfs", "/var/lib/cni")
    for inside, place in (("kubelet", "/var/lib/kubelet"), ("log", "/var/log")):
        (folder / inside).mkdir(exist_ok=True)
        run("mount", "--bind", folder / inside, place)


def start(name: str, parts: NodeParts) -> subprocess.Popen[bytes]:
    folder = Path(parts.folder)
    with (folder / f"{name}.log").open("ab") as log:
        return subprocess.Popen(command(name, parts), stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def command(name: str, parts: NodeParts) -> list[str]:
    folder = parts.folder
    match name:
        case "containerd":
            return ["containerd", "--config", f"{folder}/containerd.toml"]
        case "kubelet":
            flags = ["--kubeconfig", parts.kubeconfig, "--config", f"{folder}/kubelet.yaml"]
            identity = ["--hostname-override", parts.name, "--node-ip", parts.address]
            labels = ["--node-labels", ",".join(parts.labels)] if parts.labels else []
            return [parts.kubernetes, "kubelet", *flags, *identity, *labels]
        case _:
            return [parts.kubernetes, "kube-proxy", "--config", f"{folder}/proxy.yaml"]


def keep_running(servers: dict[str, subprocess.Popen[bytes]], parts: NodeParts) -> None:
    while True:
        ended, _ = os.wait()  # also reaps the orphans of containers' shims
        for name, server in servers.items():
            if server.pid == ended:
                server.returncode = 0  # reaped above; the object would warn otherwise
                time.sleep(RESTART_AFTER)
                servers[name] = start(name, parts)


def write_configuration(parts: NodeParts, folder: Path) -> None:
    (folder / "cni").mkdir(exist_ok=True)
    (folder / "cni" / "10-pods.conflist").write_text(POD_NETWORK % {"pods": parts.pods, "folder": folder})
    (folder / "containerd.toml").write_text(CONTAINERD % {"folder": folder, "pause": PAUSE_IMAGE})
    taints = "".join(f"\n- {_taint(text)}" for text in parts.taints)
    kubelet = KUBELET + (f"registerWithTaints:{taints}\n" if taints else "")
    (folder / "kubelet.yaml").write_text(kubelet % vars(parts))
    (folder / "proxy.yaml").write_text(PROXY % {**vars(parts), "all_pods": network.PODS})


def _taint(text: str) -> str:
    key_value, _, effect = text.partition(":")
    key, _, value = key_value.partition("=")
    return f'{{key: "{key}", value: "{value}", effect: "{effect}"}}'


def _ctr(folder: Path) -> tuple[str, ...]:
    return ("ctr", "--address", f"{folder}/containerd.sock", "--namespace", "k8s.io")


# Every pod on a cable of its own, routed by the node: on a shared bridge the answer of a neighbour would go round
# kube-proxy, and a Service would not reach a pod of the same node.
POD_NETWORK = """{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {"type": "host-local", "dataDir": "/run/cni-addresses",
    "ranges": [[{"subnet": "%(pods)s"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
"""

CONTAINERD = """version = 2
root = "%(folder)s/containerd"
state = "%(folder)s/run"
[grpc]
  address = "%(folder)s/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%(pause)s"
  disable_tcp_service = true
  stream_server_address = "127.0.0.1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "%(folder)s/cni"
"""

# Image collection is off, because nothing could be pulled again; eviction is nearly off, because the disk and the
# memory are the whole machine's and not the cluster's.
KUBELET = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %(address)s
healthzBindAddress: 127.0.0.1
failSwapOn: false
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: %(cgroup_root)s
enforceNodeAllocatable: []
systemReserved: {cpu: "%(reserved_cpu)s"}
containerRuntimeEndpoint: unix://%(folder)s/containerd.sock
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %(authority)s}}
authorization: {mode: Webhook}
clusterDNS: [%(dns)s]
clusterDomain: cluster.local
evictionHard: {memory.available: "100Mi", nodefs.available: "1%%", imagefs.available: "1%%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
maxPods: 200
"""

PROXY = """apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: %(proxy_kubeconfig)s}
mode: nftables
clusterCIDR: %(all_pods)s
hostnameOverride: %(name)s
conntrack: {maxPerCore: 0}
bindAddress: %(address)s
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
"""

if __name__ == "__main__":
    main()
