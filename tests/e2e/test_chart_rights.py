"""What the installed operator may not do: by its role, and of pods by the chart's admission policy."""

import json
import time

from e2e.releases import ACCOUNT, install
from e2e.shops import is_ready

from redrive_operator.crews import COST_ANNOTATION

FORBIDDEN = {
    "secrets": ("list", "watch", "update", "delete", "deletecollection"),
    "pods": ("create", "delete", "update", "deletecollection"),
    "namespaces": ("list", "create", "delete", "patch"),
    "nodes": ("get", "list", "patch"),
    "serviceaccounts": ("get", "create", "impersonate"),
    "customresourcedefinitions.apiextensions.k8s.io": ("get", "create", "patch", "delete"),
    "clusterroles.rbac.authorization.k8s.io": ("get", "create", "patch", "bind", "escalate"),
    "clusterrolebindings.rbac.authorization.k8s.io": ("create", "patch"),
    "rolebindings.rbac.authorization.k8s.io": ("create", "patch"),
    "validatingadmissionpolicies.admissionregistration.k8s.io": ("get", "patch", "delete"),
    "retryingconsumers.redrive.dev": ("create", "delete", "update"),
    "brokerconnections.redrive.dev": ("create", "delete", "update"),
    "redrives.redrive.dev": ("create", "delete", "update", "patch"),
    "jobs.batch": ("create",),
    "daemonsets.apps": ("create",),
}


def test_operator_may_do_what_it_must_and_nothing_else(helm, kubectl):
    install(helm)

    def may(verb, what, *words):
        return kubectl("auth", "can-i", verb, what, ACCOUNT, "--all-namespaces", *words).stdout.strip() == "yes"

    assert may("get", "secrets")
    assert [f"{verb} {what}" for what, verbs in FORBIDDEN.items() for verb in verbs if may(verb, what)] == []
    assert not any(may("create", "pods", f"--subresource={part}") for part in ("exec", "attach", "portforward"))
    assert not may("create", "serviceaccounts", "--subresource=token")
    assert kubectl("auth", "can-i", "get", "namespaces/kube-system", ACCOUNT).stdout.strip() == "yes"
    assert kubectl("auth", "can-i", "get", "namespaces/default", ACCOUNT).stdout.strip() == "no"


def test_operator_may_change_nothing_of_a_pod_but_the_one_annotation(helm, namespace, pod, bare_shop):
    def patch(where, what, change, kind="merge"):
        return where.try_kubectl("patch", what, f"--type={kind}", "--patch", json.dumps(change), ACCOUNT)

    def refused(*words):
        return "denied request: the operator of Redrive may" in patch(*words).stderr

    def annotate(**said):
        return {"metadata": {"annotations": said}}

    install(helm)
    shop = bare_shop
    shop.apply_ready(shop.consumer(worker=shop.worker()))
    (worker,) = shop.pods()
    mine = shop.namespace, f"pod/{worker['metadata']['name']}"
    # A policy is enforced a moment after it was made; until then each try changes something.
    shop.namespace.wait_for("a policy that is enforced", lambda: refused(*mine, annotate(at=f"{time.time()}")), 30)
    assert refused(*mine, annotate(**{COST_ANNOTATION: "-100", "a": "b"}))
    assert refused(*mine, {"metadata": {"labels": {"a": "b"}}})
    assert refused(*mine, {"metadata": {"ownerReferences": []}})
    assert refused(*mine, {"metadata": {"finalizers": ["redrive.dev/kept"]}})
    image = {"spec": {"containers": [{"name": "worker", "image": "redrive/operator:dev"}]}}
    assert refused(*mine, image, "strategic")
    for cost in ("-100", None):
        done = patch(*mine, annotate(**{COST_ANNOTATION: cost}))
        assert done.returncode == 0, done.stderr
    namespace.apply(pod("foreign"))
    assert refused(namespace, "pod/foreign", annotate(**{COST_ANNOTATION: "-100"}))
    assert is_ready(shop.pods()[0])
