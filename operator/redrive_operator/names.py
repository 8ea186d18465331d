"""What the operator calls what it makes in the cluster, and the labels by which it knows it again.

A consumer's name is a DNS subdomain of at most 180 characters, so it can be the name of any object, with a suffix too.
It cannot always be the value of a label, which ends at 63. Whatever is named inside a pod (containers, volumes, ports)
is named without it, for there neither dots nor more than 63 characters are allowed. The names of pods are the API
server's: it cuts what a Deployment is called at 58 characters and adds its own.
"""

import hashlib

from redrive_operator.subject import Key

DOMAIN = "redrive.dev"

MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
COMPONENT_LABEL = "app.kubernetes.io/component"
NAME_LABEL = "app.kubernetes.io/name"
CONSUMER_LABEL = f"{DOMAIN}/consumer"
LABELS = (MANAGED_BY_LABEL, COMPONENT_LABEL, NAME_LABEL, CONSUMER_LABEL)

MANAGER = "redrive"
WORKER_COMPONENT = "worker"

# By this the operator watches what it has made, and nothing else that is in the cluster.
MANAGED_BY = f"{MANAGED_BY_LABEL}={MANAGER}"

# Of the pod template: a change of one of these is what rolls the workers when nothing else has changed.
CONFIG_ANNOTATION = f"{DOMAIN}/config"
BROKER_ANNOTATION = f"{DOMAIN}/broker"

# Inside a pod. Containers and volumes of the operator's, other than these two, begin with the prefix.
WORKER_CONTAINER = "worker"
APP_CONTAINER = "app"
OWN_PREFIX = "redrive-"

_LONGEST_LABEL = 63
_DIGEST = 16  # hexadecimal digits


def deployment_name(consumer: str) -> str:
    return consumer


def deployment_key(consumer: Key) -> Key:
    """Say where a consumer's Deployment is found."""
    return Key(consumer.namespace, deployment_name(consumer.name))


def config_map_name(consumer: str) -> str:
    return f"{consumer}-redrive"


def budget_name(consumer: str) -> str:
    return consumer


def broker_secret_name(consumer: str) -> str:
    return f"{consumer}-redrive-broker"


def label_value(consumer: str) -> str:
    """Write a consumer's name as the value of a label, so that no two have the same.

    What is too long is cut, and a digest follows. The "_" between them is in no consumer's name.
    """
    if len(consumer) <= _LONGEST_LABEL:
        return consumer
    digest = hashlib.sha256(consumer.encode()).hexdigest()[:_DIGEST]
    return f"{consumer[: _LONGEST_LABEL - _DIGEST - 1]}_{digest}"


def labels_of(key: Key) -> dict[str, str]:
    """Say which labels everything of a consumer's has, its pods too."""
    return {
        MANAGED_BY_LABEL: MANAGER,
        COMPONENT_LABEL: WORKER_COMPONENT,
        NAME_LABEL: label_value(key.name),
        CONSUMER_LABEL: label_value(key.name),
    }


def pod_selector(key: Key) -> dict[str, str]:
    """Say which labels choose a consumer's pods. A Deployment never lets this be changed, so these are few."""
    return {MANAGED_BY_LABEL: MANAGER, CONSUMER_LABEL: label_value(key.name)}


def selector_of(key: Key) -> str:
    """Write the same as `status.selector` has it, for autoscalers and `kubectl get pods --selector`."""
    return ",".join(f"{label}={value}" for label, value in pod_selector(key).items())
