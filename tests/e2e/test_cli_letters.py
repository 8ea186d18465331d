"""Dead letters of a real consumer in a real cluster: found, shown with what their pod logged, and put back."""

import json

import pytest
from typing_commands import type_command

from redrive_testbed.rabbitmq_release import TESTED


@pytest.fixture(scope="module")
def till(open_shop):
    """Give a shop with one dead letter."""
    with open_shop(TESTED[-1]) as shop:
        shop.apply_ready(shop.consumer(worker=shop.worker()))
        shop.publish({"bad": {"fail": True}})
        shop.namespace.wait_for("a dead letter", lambda: shop.ready("redrive.dead.orders") == 1, 60)
        yield shop


@pytest.fixture(scope="module")
def redrive(cluster, till):
    def run(*words, code=0, **how):
        done = type_command(*words, "-n", till.name, env={"KUBECONFIG": str(cluster.kubeconfig)}, **how)
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
        return done

    return run


def letters(redrive):
    return json.loads(redrive("dead", "list", "orders", "-o", "json").stdout)


def test_dead_letter_is_found_and_shown_with_what_its_pod_logged(redrive):
    [found] = letters(redrive)
    assert found["reason"] == "Exhausted"
    shown = redrive("dead", "show", "orders", found["id"]).stdout
    assert f"Log of {found['pod']}" in shown
    assert '"event": "dead"' in shown
    assert json.loads(redrive("dead", "groups", "orders", "-o", "json").stdout)[0]["count"] == 1


def test_letter_that_is_put_back_before_the_cause_is_mended_dies_again_and_says_so(redrive, till):
    [found] = letters(redrive)
    redrive("dead", "requeue", "orders", "--id", found["id"])
    till.namespace.wait_for("the letter to die again", lambda: till.ready("redrive.dead.orders") == 1, 60)
    [again] = letters(redrive)
    assert (again["id"], again["redrives"], again["attempts"]) == (found["id"], 1, found["attempts"])


def test_canary_that_dies_again_stops_a_requeue(redrive, till):
    done = redrive("dead", "requeue", "orders", "--canary", "1", "--canary-wait", "60s", code=1)
    assert "1 of the first 1 died again" in done.stderr
    till.namespace.wait_for("the letter to be given back", lambda: till.ready("redrive.dead.orders") == 1, 30)


def test_consumer_that_does_not_exist_is_one_sentence(redrive):
    done = redrive("dead", "list", "oders", code=1)
    assert done.stderr.count("\n") == 1
    assert "did you mean orders?" in done.stderr
