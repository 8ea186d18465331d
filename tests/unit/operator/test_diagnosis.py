"""The words of Kubernetes and the causes that they mean."""

import pytest

from redrive_operator.causes import PlacementCause
from redrive_operator.diagnosis import (
    LONGEST_MESSAGE,
    diagnose_event,
    diagnose_refusal,
    diagnose_unscheduled,
    diagnose_waiting,
    tidy,
)

CPU, MEMORY, RESOURCES = (
    PlacementCause.INSUFFICIENT_CPU,
    PlacementCause.INSUFFICIENT_MEMORY,
    PlacementCause.INSUFFICIENT_RESOURCES,
)


def nodes(reasons):
    return f"0/3 nodes are available: {reasons}. preemption: 0/3 nodes are available: 3 No preemption victims found."


@pytest.mark.parametrize(
    ("reasons", "cause"),
    {
        "1 Insufficient cpu": CPU,
        "1 Insufficient memory": MEMORY,
        "1 Insufficient ephemeral-storage": RESOURCES,
        "1 Insufficient nvidia.com/gpu": RESOURCES,
        "1 Too many pods": RESOURCES,
        "3 cannot allocate all claims": RESOURCES,
        "1 node(s) didn't match Pod's node affinity/selector": PlacementCause.NODE_SELECTOR,
        "1 node(s) didn't match node selector": PlacementCause.NODE_SELECTOR,
        "pod affinity terms conflict": PlacementCause.NODE_SELECTOR,
        "node(s) didn't satisfy plugin NodeAffinity": PlacementCause.NODE_SELECTOR,
        "1 node(s) had untolerated taint(s)": PlacementCause.TAINT,
        "1 node(s) had untolerated taint {gpu: yes}": PlacementCause.TAINT,
        "1 node(s) had taint {gpu: yes}, that the pod didn't tolerate": PlacementCause.TAINT,
        "1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }": PlacementCause.TAINT,
        "1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }": PlacementCause.NO_NODES,
        "1 node(s) were unschedulable": PlacementCause.NO_NODES,
        "pod has unbound immediate PersistentVolumeClaims": PlacementCause.VOLUME,
        'persistentvolumeclaim "anti-affinity" not found': PlacementCause.VOLUME,
        "1 node(s) had volume node affinity conflict": PlacementCause.VOLUME,
        "1 node(s) didn't match PersistentVolume's node affinity": PlacementCause.VOLUME,
        "1 node(s) didn't find available persistent volumes to bind": PlacementCause.VOLUME,
        "1 node(s) exceed max volume count": PlacementCause.VOLUME,
        "1 node(s) did not have enough free storage": PlacementCause.VOLUME,
        "1 node(s) didn't match pod anti-affinity rules": PlacementCause.UNSCHEDULABLE,
        "1 node(s) didn't match pod topology spread constraints": PlacementCause.UNSCHEDULABLE,
        "1 node(s) didn't have free ports for the requested pod ports": PlacementCause.UNSCHEDULABLE,
        "1 node(s) are on the moon": PlacementCause.UNSCHEDULABLE,
    }.items(),
)
def test_what_the_scheduler_says_has_its_cause(reasons, cause):
    assert diagnose_unscheduled(nodes(reasons)) == (cause, f"0/3 nodes are available: {reasons}.")


@pytest.mark.parametrize(
    ("reasons", "cause"),
    [
        ("1 Insufficient cpu, 2 node(s) had untolerated taint {node.kubernetes.io/unreachable: }", CPU),
        ("1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector", CPU),
        ("1 Insufficient cpu, 2 node(s) didn't match pod anti-affinity rules", CPU),
        ("1 Insufficient memory, 2 node(s) had volume node affinity conflict", MEMORY),
        ("1 Insufficient cpu, 1 Insufficient memory", CPU),
        ("1 Insufficient cpu, 3 Insufficient memory", MEMORY),
        ("1 Insufficient ephemeral-storage, 1 Insufficient memory", MEMORY),
        ("2 Insufficient cpu, 3 Insufficient example.com/a, 1 Insufficient example.com/b", RESOURCES),
        ("1 Insufficient cpu, 1 Insufficient memory, 3 Insufficient nvidia.com/gpu", RESOURCES),
        (
            "1 node(s) didn't match pod anti-affinity rules, 2 node(s) had volume node affinity conflict",
            PlacementCause.UNSCHEDULABLE,
        ),
        (
            "1 node(s) had volume node affinity conflict, 2 node(s) didn't match Pod's node affinity/selector",
            PlacementCause.VOLUME,
        ),
        (
            "1 node(s) had untolerated taint(s), 2 node(s) didn't match Pod's node affinity/selector",
            PlacementCause.NODE_SELECTOR,
        ),
        (
            "1 node(s) had untolerated taint {gpu: yes}, 2 node(s) were unschedulable",
            PlacementCause.TAINT,
        ),
        (
            "1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, "
            "2 node(s) had untolerated taint {node.kubernetes.io/not-ready: }",
            PlacementCause.NO_NODES,
        ),
    ],
)
def test_of_several_causes_room_comes_first_and_then_what_was_nearest_to_fit(reasons, cause):
    assert diagnose_unscheduled(nodes(reasons))[0] == cause


def test_scheduler_without_any_node_says_so():
    said = "no nodes available to schedule pods"
    assert diagnose_unscheduled(said) == (PlacementCause.NO_NODES, said)


def test_scheduler_that_says_nothing_is_said_to():
    assert diagnose_unscheduled("\n") == (PlacementCause.UNSCHEDULABLE, "the scheduler does not say why")


@pytest.mark.parametrize(
    "afterthought",
    [
        "preemption: 0/1 nodes are available: 1 Insufficient memory.",
        "preemption: not eligible due to preemptionPolicy=Never.",
        "no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
        "not found",
    ],
)
def test_afterthoughts_of_the_scheduler_are_left_out(afterthought):
    said = f"0/1 nodes are available: 1 Insufficient cpu. {afterthought}"
    assert diagnose_unscheduled(said) == (CPU, "0/1 nodes are available: 1 Insufficient cpu.")


@pytest.mark.parametrize(
    ("cause", "reasons"),
    {
        PlacementCause.IMAGE: (
            "ErrImagePull",
            "ImagePullBackOff",
            "InvalidImageName",
            "ErrImageNeverPull",
            "ImageInspectError",
            "RegistryUnavailable",
            "SignatureValidationFailed",
        ),
        PlacementCause.CONFIG: ("CreateContainerConfigError", "CreateContainerError", "NewKindOfError"),
        PlacementCause.SANDBOX: ("PreCreateHookError", "PreStartHookError"),
        None: (
            "",
            "ContainerCreating",
            "PodInitializing",
            "Resizing",
            "CrashLoopBackOff",
            "RunContainerError",
            "PostStartHookError",
        ),
    }.items(),
)
def test_reason_for_which_a_container_waits_has_its_cause(cause, reasons):
    assert {reason: diagnose_waiting(reason) for reason in reasons} == dict.fromkeys(reasons, cause)


@pytest.mark.parametrize(
    ("reason", "said", "cause"),
    [
        ("FailedMount", 'MountVolume.SetUp failed for volume "v" : secret "ghost" not found', PlacementCause.MOUNT),
        ("FailedAttachVolume", "Multi-Attach error for volume", PlacementCause.MOUNT),
        ("FailedMapVolume", "", PlacementCause.MOUNT),
        ("FailedCreatePodSandBox", "Failed to create pod sandbox: plugin failed", PlacementCause.SANDBOX),
        ("FailedCreatePodContainer", "unable to ensure pod container exists", PlacementCause.SANDBOX),
        ("FailedPrepareDynamicResources", "", PlacementCause.SANDBOX),
        ("NetworkNotReady", "network is not ready", PlacementCause.SANDBOX),
        ("NodeNotReady", "Node is not ready", PlacementCause.SANDBOX),
        ("Failed", "error making pod data directories: no space left on device", PlacementCause.SANDBOX),
        ("Failed", 'Failed to pull image "a/b": not found', PlacementCause.IMAGE),
        ("Failed", "Error: ImagePullBackOff", PlacementCause.IMAGE),
        ("Failed", 'Error: secret "ghost" not found', PlacementCause.CONFIG),
        ("BackOff", 'Back-off pulling image "a/b"', PlacementCause.IMAGE),
        ("ErrImageNeverPull", "", PlacementCause.IMAGE),
        ("BackOff", "Back-off restarting failed container worker", None),
        ("FailedScheduling", "0/1 nodes are available: 1 Insufficient cpu.", None),
        ("FailedToRetrieveImagePullSecret", "Unable to retrieve some image pull secrets", None),
        ("Unhealthy", "Startup probe failed", None),
        ("DNSConfigForming", "Search Line limits were exceeded", None),
    ],
)
def test_event_of_a_pod_that_is_not_started_has_its_cause_or_is_no_failure(reason, said, cause):
    assert diagnose_event(reason, said) == cause


@pytest.mark.parametrize(
    ("said", "cause", "told"),
    [
        (
            'pods "orders-55d5b6566b-m44pf" is forbidden: exceeded quota: small, requested: pods=1, used: pods=0, '
            "limited: pods=0",
            PlacementCause.QUOTA,
            "exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0",
        ),
        (
            'pods "orders-55d5b6566b-ldxwt" is forbidden: failed quota: small: must specify requests.cpu for: worker',
            PlacementCause.QUOTA,
            "failed quota: small: must specify requests.cpu for: worker",
        ),
        (
            'pods "orders-66b9b4648b-nvqq8" is forbidden: violates PodSecurity "restricted:latest": privileged '
            '(container "worker" must not set securityContext.privileged=true)',
            PlacementCause.POD_SECURITY,
            'violates PodSecurity "restricted:latest": privileged '
            '(container "worker" must not set securityContext.privileged=true)',
        ),
        (
            'Pod "orders-76fb8dcb7b-4mqb4" is invalid: spec.containers[0].resources.requests: Invalid value: "4": must '
            "be less than or equal to cpu limit of 1",
            PlacementCause.REFUSED,
            'spec.containers[0].resources.requests: Invalid value: "4": must be less than or equal to cpu limit of 1',
        ),
        (
            'pods "orders-54f8cfbbf8-" is forbidden: error looking up service account shop/ghost: serviceaccount '
            '"ghost" not found',
            PlacementCause.REFUSED,
            'error looking up service account shop/ghost: serviceaccount "ghost" not found',
        ),
    ],
)
def test_refusal_has_its_cause_and_is_told_without_the_name_that_changes_with_each_try(said, cause, told):
    assert (diagnose_refusal(said), tidy(said)) == (cause, told)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (" two\n\tlines\x00 \x1b[1m\u202e\udc80", "two lines [1m"),
        ('Get "https://bob:hunter2@example.com/v2/": denied', 'Get "https://…@example.com/v2/": denied'),
        (
            'Get "https://cdn.example.com/blob?X-Sig=abc&Expires=1": i/o timeout',
            'Get "https://cdn.example.com/blob?…": i/o timeout',
        ),
        ("mount -o username=bob,password=hunter2,vers=3 failed", "mount -o username=bob,password=…,vers=3 failed"),
        (f'network for sandbox "{"0f" * 32}": no address', 'network for sandbox "…": no address'),
        (f"image a/b@sha256:{'0f' * 32}: not found", f"image a/b@sha256:{'0f' * 32}: not found"),
        ('breaks policy (pod: "orders-1-2_shop(u-1)", container: worker)', "breaks policy (container: worker)"),
    ],
)
def test_message_is_one_line_without_secrets_and_without_what_differs_from_pod_to_pod(said, told):
    assert tidy(said) == told


def test_message_that_is_too_long_keeps_who_speaks_and_what_is_wrong():
    told = tidy(f"ErrImagePull: {'ü' * 1000}: connection refused")
    assert told.startswith("ErrImagePull: ü")
    assert told.endswith("ü: connection refused")
    assert LONGEST_MESSAGE - 3 <= len(told.encode()) <= LONGEST_MESSAGE
