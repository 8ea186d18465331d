"""A consumer and the objects that the operator plans for it, as several tests begin with them."""

from datetime import UTC, datetime

from redrive.config import plan_config
from redrive.spec import parse_consumer
from redrive_operator.subject import Key, Subject
from redrive_operator.workload import WorkloadSettings, build_manifests

PYTHON = {"python": {"handler": "shop.orders:handle"}}
COMMAND = {"command": {"args": ["/bin/handle"]}}
HTTP = {"http": {"port": 8000}}
TMP = "/tmp"  # noqa: S108 - in a container

# One of everything that a person may ask for.
EVERYTHING = {
    "metadata": {"labels": {"team": "shop"}, "annotations": {"example.com/owner": "shop"}},
    "spec": {
        "affinity": {"nodeAffinity": {}},
        "automountServiceAccountToken": False,
        "serviceAccountName": "",
        "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["legacy"]}],
        "hostNetwork": False,
        "imagePullSecrets": [{"name": "registry"}],
        "nodeSelector": {"pool": "workers"},
        "securityContext": {"fsGroup": 1000},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
        "volumes": [{"name": "scratch", "emptyDir": {}}],
        "initContainers": [{"name": "migrate", "image": "shop/migrate:1", "command": ["migrate"]}],
        "containers": [
            {
                "name": "worker",
                "env": [{"name": "SHOP", "value": "1"}, {"name": "REDRIVE_LOG_LEVEL", "value": "debug"}],
                "envFrom": [{"configMapRef": {"name": "shop"}}],
                "ports": [{"name": "admin", "containerPort": 8081}],
                "resources": {"limits": {"memory": "1Gi"}},
                "securityContext": {"readOnlyRootFilesystem": False},
                "volumeMounts": [{"name": "scratch", "mountPath": TMP}],
                "workingDir": "/srv",
            },
            {"name": "proxy", "image": "shop/proxy:2", "ports": [{"containerPort": 5432}]},
        ],
    },
}


def consumer(runner=PYTHON, *, name="orders", template=None, timeout="300s", immediate=None, image="shop/orders:1.4"):
    """Parse a consumer with this pod template."""
    worker = {"image": image, "timeout": timeout, **runner, "podTemplate": template or {}}
    spec = {
        "broker": {"secretRef": {"name": "rabbitmq"}},
        "queue": {"name": "orders"},
        "retry": {"immediate": immediate or {}},
        "worker": worker,
    }
    body = {"apiVersion": "redrive.dev/v1alpha1", "kind": "RetryingConsumer", "spec": spec}
    return parse_consumer({**body, "metadata": {"name": name, "namespace": "shop"}})


def build(made=None, *, config=None, settings=None, replicas=2, digest="abc123"):
    """Plan the objects of a consumer."""
    made = made or consumer()
    subject = Subject(
        kind="RetryingConsumer",
        api_version="redrive.dev/v1alpha1",
        key=Key(made.namespace, made.name),
        uid="0b8f1a56-5c1e-4b0e-9f5e-000000000001",
        resource_version="1",
        generation=1,
        created=datetime(2026, 5, 1, tzinfo=UTC),
        deleting=False,
    )
    return build_manifests(
        made,
        subject,
        config=config or plan_config(made, made.worker, queue_parks=True),
        broker_secret="rabbitmq",
        broker_digest=digest,
        replicas=replicas,
        settings=settings or WorkloadSettings("redrive/consumer:1"),
    )


def template_of(manifests):
    return manifests.deployment["spec"]["template"]


def pod(runner=PYTHON, spec=None, **options):
    """Plan the pod of a consumer with this pod spec in its template."""
    return template_of(build(consumer(runner, template={"spec": spec or {}}, **options)))["spec"]


def named(items, name):
    (found,) = [item for item in items if item["name"] == name]
    return found


def worker_container(runner=PYTHON, asked=None, **options):
    """Plan the container `worker` with what its template asks of it."""
    spec = {} if asked is None else {"containers": [{"name": "worker", **asked}]}
    return named(pod(runner, spec, **options)["containers"], "worker")
