"""The control plane of the Docker-less cluster: etcd, API server, controllers, scheduler and DNS on this machine.

The API server and DNS listen on the bridge's address, where pods and this machine reach them (see `network` for why
nobody else does); the rest listens on loopback.
"""

import json
from pathlib import Path

from redrive_testbed import network
from redrive_testbed.certificates import Authority
from redrive_testbed.files import write_whole
from redrive_testbed.machine import accepts
from redrive_testbed.processes import Processes
from redrive_testbed.shell import run, succeeds, wait_until

API_PORT = 6443
API = f"https://{network.HOST}:{API_PORT}"
CONTEXT = "redrive-testbed"
ETCD, ETCD_PEERS = "https://127.0.0.1:13379", "https://127.0.0.1:13380"
LOOPBACK_PORTS = {"etcd": 13379, "etcd's peers": 13380, "kube-controller-manager": 10257, "kube-scheduler": 10259}
LISTENERS = (("127.0.0.1", 10257), ("127.0.0.1", 10259), (network.HOST, 53))
SERVER_NAMES = [
    *(f"IP:{address}" for address in ("127.0.0.1", network.HOST, network.API_SERVICE)),
    *(f"DNS:{name}" for name in ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")),
]


class ControlPlane:
    """The servers that make a cluster out of nodes."""

    def __init__(self, state: Path, *, kubernetes: Path, coredns: Path, processes: Processes) -> None:
        self._state = state
        self._kubernetes = kubernetes
        self._coredns = coredns
        self._processes = processes
        self.authority = Authority(state / "pki")

    def start(self, nodes: list[str]) -> None:
        """Start every server that does not run, and see that each answers."""
        self.authority.establish(nodes=nodes, server_names=SERVER_NAMES)
        self._start("etcd", *self._etcd_flags())
        self._start("kube-apiserver", *self._api_flags())
        wait_until("the API server is not ready", self._api_ready, within=120)
        self._start("kube-controller-manager", *self._controller_flags())
        self._start("kube-scheduler", *self._component("scheduler"))
        self._start_dns()
        wait_until("not every server answers", self._all_answer, within=60)

    def kubeconfig(self, name: str) -> Path:
        """The kubeconfig of a component, a node, or `admin`; written on first use, readable by its owner only."""
        path = self._state / f"{name}.kubeconfig"
        if not path.exists():
            write_whole(path, _kubeconfig(name, self.authority), mode=0o600)
        return path

    def _start(self, server: str, *flags: str) -> None:
        self._processes.start(server, [self._kubernetes, server, *flags])

    def _api_ready(self) -> bool:
        self._processes.must_live("etcd")
        self._processes.must_live("kube-apiserver")
        return succeeds(*self._kubectl(), "get", "--raw", "/readyz")

    def _all_answer(self) -> bool:
        for server in ("kube-controller-manager", "kube-scheduler", "coredns"):
            self._processes.must_live(server)
        return all(accepts(address, port) for address, port in LISTENERS)

    def _kubectl(self) -> tuple[str | Path, ...]:
        return (self._kubernetes, "kubectl", "--kubeconfig", self.kubeconfig("admin"))

    def _etcd_flags(self) -> list[str]:
        own, ca = (f"{self.authority.folder}/{name}" for name in ("etcd", "ca.crt"))
        urls = ["--listen-client-urls", ETCD, "--advertise-client-urls", ETCD, "--listen-peer-urls", ETCD_PEERS]
        # Whoever may write here owns the cluster, and with it the machine: nobody without our certificate may.
        for prefix in ("", "peer-"):
            urls += [f"--{prefix}client-cert-auth", f"--{prefix}trusted-ca-file", ca]
            urls += [f"--{prefix}cert-file", f"{own}.crt", f"--{prefix}key-file", f"{own}.key"]
        # Not syncing leaves the disk to the brokers; only a power cut could tear the log: then `down` and `up` help.
        return ["--data-dir", f"{self._state}/etcd", *urls, "--unsafe-no-fsync", "--log-level", "warn"]

    def _api_flags(self) -> list[str]:
        pki = self.authority.folder
        return [
            *("--etcd-servers", ETCD, "--etcd-cafile", f"{pki}/ca.crt"),
            *("--etcd-certfile", f"{pki}/etcd.crt", "--etcd-keyfile", f"{pki}/etcd.key"),
            *("--bind-address", network.HOST, "--advertise-address", network.HOST, "--secure-port", str(API_PORT)),
            *("--tls-cert-file", f"{pki}/apiserver.crt", "--tls-private-key-file", f"{pki}/apiserver.key"),
            *("--client-ca-file", f"{pki}/ca.crt", "--token-auth-file", f"{pki}/tokens.csv"),
            *("--service-account-key-file", f"{pki}/sa.pub", "--service-account-signing-key-file", f"{pki}/sa.key"),
            *("--service-account-issuer", "https://kubernetes.default.svc"),
            *("--service-cluster-ip-range", str(network.SERVICES)),
            *("--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "NodeRestriction"),
            "--allow-privileged",
            *("--kubelet-preferred-address-types", "InternalIP"),
            *("--kubelet-client-certificate", f"{pki}/kubelet-client.crt"),
            *("--kubelet-client-key", f"{pki}/kubelet-client.key"),
        ]

    def _component(self, name: str) -> list[str]:
        own = str(self.kubeconfig(name))
        delegated = ["--authentication-kubeconfig", own, "--authorization-kubeconfig", own]
        return ["--kubeconfig", own, *delegated, "--leader-elect=false", "--bind-address", "127.0.0.1"]

    def _controller_flags(self) -> list[str]:
        pki = self.authority.folder
        return [
            *self._component("controller-manager"),
            *("--service-account-private-key-file", f"{pki}/sa.key", "--root-ca-file", f"{pki}/ca.crt"),
            *("--cluster-signing-cert-file", f"{pki}/ca.crt", "--cluster-signing-key-file", f"{pki}/ca.key"),
            "--use-service-account-credentials",
            # A node that goes away is noticed in half the usual time, so that tests need not wait a minute for it.
            *("--node-monitor-grace-period", "25s"),
        ]

    def _start_dns(self) -> None:
        run(*self._kubectl(), "apply", "--server-side", "-f", "-", stdin=DNS_RIGHTS)
        corefile = self._state / "Corefile"
        facts = {"address": network.HOST, "kubeconfig": self.kubeconfig("dns"), "context": CONTEXT}
        write_whole(corefile, COREFILE % facts)
        self._processes.start("coredns", [self._coredns, "-conf", corefile])


def _kubeconfig(name: str, authority: Authority) -> str:
    cluster = {"server": API, "certificate-authority": str(authority.certificate)}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": CONTEXT, "cluster": cluster}],
            "users": [{"name": name, "user": {"token": authority.token(name)}}],
            "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": name}}],
            "current-context": CONTEXT,
        },
        indent=2,
    )


DNS_RIGHTS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: testbed-dns}
rules:
- {apiGroups: [""], resources: [services, pods, namespaces], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: testbed-dns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: testbed-dns}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "testbed:dns"}]
"""

COREFILE = """.:53 {
  bind %(address)s
  errors
  cache 5
  kubernetes cluster.local in-addr.arpa {
    kubeconfig %(kubeconfig)s %(context)s
    pods insecure
  }
}
"""
