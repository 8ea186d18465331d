"""The operator's image runs in the cluster as it will at a user's: not as root, read-only, under Restricted."""


def grant(namespace, kubectl):
    """Let the operator's account see what kopf looks at when it starts, and nothing else."""
    role = f"{namespace.name}-operator"
    rules = "--verb=list,watch", "--resource=namespaces,customresourcedefinitions.apiextensions.k8s.io"
    namespace.kubectl("create", "serviceaccount", "operator")
    namespace.kubectl("create", "clusterrole", role, *rules)
    account = f"--serviceaccount={namespace.name}:operator"
    namespace.kubectl("create", "clusterrolebinding", role, f"--clusterrole={role}", account)
    return lambda: kubectl("delete", "clusterrole,clusterrolebinding", role)


def test_operator_starts_and_answers_its_probe(namespace, pod, kubectl):
    namespace.kubectl("label", "namespace", namespace.name, "pod-security.kubernetes.io/enforce=restricted")
    revoke = grant(namespace, kubectl)
    probe = {"readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1}}
    operator = pod("operator", image="redrive/operator:dev", command=None, container=probe)
    operator["spec"]["serviceAccountName"] = "operator"
    try:
        namespace.apply(operator)
        namespace.kubectl("wait", "--for=condition=Ready", "pod/operator", "--timeout=120s")
    finally:
        revoke()
