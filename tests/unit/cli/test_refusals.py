"""What the API server refuses is told in one sentence that can be handed to who gives out roles."""

import json

import pytest

from redrive_cli.errors import ClusterError, Forbidden, Missing
from redrive_cli.kube.kinds import CONSUMERS, NODES, PODS, SECRETS
from redrive_cli.kube.refusals import Request, explain


def status(message="", **details):
    return json.dumps({"kind": "Status", "message": message, "details": details}).encode()


def say(code, answer, request):
    return str(explain(code, answer, request))


@pytest.mark.parametrize(
    ("request_", "message", "said"),
    [
        (
            Request("get", SECRETS, "shop", "rabbitmq"),
            'secrets "rabbitmq" is forbidden: User "ann" cannot get resource "secrets" in API group ""',
            "you may not get Secret rabbitmq in namespace shop: "
            "ask for a role with the verb `get` on `secrets` in namespace shop",
        ),
        (
            Request("create", PODS, "shop", "rabbit-0", "portforward"),
            'User "ann" cannot get resource "pods/portforward" in API group ""',
            "you may not create the portforward of Pod rabbit-0 in namespace shop: "
            "ask for a role with the verb `get` on `pods/portforward` in namespace shop",
        ),
        (
            Request("list", CONSUMERS, None),
            'cannot list resource "retryingconsumers" in API group "redrive.dev" at the cluster scope',
            "you may not list retryingconsumers in all namespaces: "
            "ask for a role with the verb `list` on `retryingconsumers.redrive.dev` in all namespaces",
        ),
        (
            Request("list", NODES),
            "",
            "you may not list nodes: ask for a role with the verb `list` on `nodes`",
        ),
        (
            Request("patch", CONSUMERS, "shop", "orders"),
            'admission webhook "guard" denied the request: not on a Friday',
            'cannot patch RetryingConsumer orders in namespace shop: admission webhook "guard" denied the request: '
            "not on a Friday",
        ),
    ],
)
def test_who_may_not_is_told_the_verb_the_resource_and_the_namespace(request_, message, said):
    error = explain(403, status(message), request_)
    assert isinstance(error, Forbidden)
    assert str(error) == said


def test_an_object_that_is_not_there_is_another_matter_than_a_kind_that_is_not():
    request = Request("get", CONSUMERS, "shop", "orders")
    missing = explain(404, status("not found", name="orders", kind="retryingconsumers"), request)
    assert (type(missing), str(missing)) == (Missing, "there is no RetryingConsumer orders in namespace shop")
    assert "kinds are not installed here" in say(404, b"404 page not found", request)


def test_an_unknown_person_is_told_to_log_in():
    assert "log in again" in say(401, status("Unauthorized"), Request("get", PODS, "shop", "a"))


def test_what_is_said_of_a_secret_is_not_repeated():
    said = say(422, status("data.password: Invalid value: hunter2"), Request("get", SECRETS, "shop", "rabbitmq"))
    assert "hunter2" not in said
    assert "answered 422" in said


@pytest.mark.parametrize("answer", [b"", b"[]", b"<html>", b"[" * 100_000, b'{"message": 7, "details": []}'])
def test_an_answer_of_somebody_else_is_borne(answer):
    assert isinstance(explain(500, answer, Request("get", PODS, "shop", "a")), ClusterError)


def test_nothing_in_an_answer_steers_a_terminal():
    assert "\x1b" not in say(500, status("\x1b[31mred"), Request("get", PODS, "shop", "a"))
