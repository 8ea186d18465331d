"""Pods that crash, as a real cluster shows them, read."""

from datetime import UTC, datetime

import pytest
from pod_bed import at, container, ended, pod, real, running, waiting

from redrive_operator.pods import Crash, read_pod

NO_PROGRAM = (
    "exit code 128 (StartError): failed to create containerd task: failed to create shim task: OCI runtime create "
    'failed: runc create failed: unable to start container process: exec: "/no/such/program": stat /no/such/program: '
    "no such file or directory: unknown"
)


@pytest.mark.parametrize(
    ("name", "restarts", "waits", "clock", "message"),
    [
        ("crash-exit-0", 1, True, "15:55:16", "exit code 0 (Completed)"),
        ("crash-exit-1", 2, False, "15:55:00", "exit code 1 (Error)"),
        (
            "crash-exit-2-message",
            2,
            False,
            "15:55:10",
            "exit code 2: redrive: the handler shop:handle cannot be imported: No module named shop",
        ),
        ("crash-oom", 1, True, "15:55:05", "exit code 137 (OOMKilled)"),
        ("crash-liveness", 2, True, "15:55:36", "exit code 137 (Error)"),
        ("crash-command-missing", 1, True, "15:55:11", NO_PROGRAM),
        ("crash-command-missing-crashloop", 1, True, "15:57:13", NO_PROGRAM),
        ("init-crash", 2, False, "15:55:50", "container app: exit code 3 (Error)"),
        ("init-crash-backoff", 1, True, "15:57:13", "container app: exit code 3 (Error)"),
    ],
)
def test_pod_that_crashes_says_how_and_is_not_hindered(name, restarts, waits, clock, message):
    seen = read_pod(real(name))
    assert (seen.crash.message, seen.crash.waiting, seen.crash.ended) == (message, waits, at(clock))
    assert (seen.restarts, seen.ready, seen.hindrance) == (restarts, False, None)


def test_init_container_that_has_done_its_part_has_not_crashed():
    inits = [container(ended(0, "Completed"), ended(1), name="migrate", restarts=1)]
    assert read_pod(pod(inits=inits, containers=[container(running())])).crash is None


def test_worker_that_ended_well_has_crashed_all_the_same():
    containers = [container(ended(0, "Completed"), restarts=2)]
    assert read_pod(pod(containers=containers)).crash.message == "exit code 0 (Completed)"


def test_sidecar_that_ended_well_has_crashed_all_the_same():
    inits = [container(ended(0, "Completed"), name="app", restarts=2)]
    seen = read_pod(pod(inits=inits, sidecars=["app"], containers=[container(waiting("PodInitializing"))]))
    assert seen.crash.message == "container app: exit code 0 (Completed)"


def test_container_that_runs_again_says_since_when():
    containers = [container(running("12:00:12"), ended(1, started="12:00:01", finished="12:00:02"), restarts=1)]
    crash = Crash("exit code 1 (Error)", at("12:00:01"), at("12:00:02"), waiting=False, resumed=at("12:00:12"))
    assert read_pod(pod(containers=containers)).crash == crash


def test_container_that_waits_for_its_next_start_is_told_of_before_one_that_crashed_later():
    containers = [
        container(waiting("CrashLoopBackOff"), ended(3, finished="12:00:02"), name="a", restarts=4),
        container(running(), ended(1, finished="12:30:00"), restarts=1),
    ]
    seen = read_pod(pod(containers=containers))
    assert (seen.crash.message, seen.restarts) == ("container a: exit code 3 (Error)", 4)


@pytest.mark.parametrize(
    ("crashed", "told"),
    [
        (container(waiting("CrashLoopBackOff"), ended(1, message="password: hunter2")), "exit code 1 (Error)"),
        (
            container(ended(2, message="usage: app --password hunter2"), name="app"),
            "container app: exit code 2 (Error)",
        ),
        (container(waiting("PostStartHookError", "hunter2"), ended(137), restarts=1), "its postStart hook failed"),
        (container(ended(2, message="")), "exit code 2 (Error)"),
        (container(ended(2, message="hunter2\nerror: no such file\n\n")), "exit code 2: error: no such file"),
        (container(waiting("RunContainerError", "no shell"), ended(1)), "RunContainerError: no shell"),
        (container(waiting("CrashLoopBackOff", "hunter2")), "its status does not say how it ended"),
        (container({"terminated": {"exitCode": 255}}), "exit code 255"),
    ],
)
def test_crash_is_told_without_what_a_container_wrote_but_for_the_sentence_of_a_worker(crashed, told):
    assert read_pod(pod(containers=[crashed])).crash.message == told


@pytest.mark.parametrize("reason", ["RunContainerError", "PostStartHookError"])
def test_first_start_that_fails_is_not_yet_waiting_for_another(reason):
    crashes = [read_pod(pod(containers=[container(waiting(reason), restarts=many)])).crash for many in (0, 1)]
    assert [crash.waiting for crash in crashes] == [False, True]


def test_crash_is_told_in_at_most_300_characters():
    said = f"error: {'x' * 5000} cannot be imported"
    message = read_pod(pod(containers=[container(ended(2, message=said))])).crash.message
    assert len(message) <= 300
    assert message.endswith("x cannot be imported")


def test_start_that_never_was_has_no_time():
    crash = read_pod(real("crash-command-missing")).crash
    assert crash.started is None
    assert crash.ended > datetime.fromtimestamp(0, UTC)
