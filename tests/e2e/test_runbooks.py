"""What runbooks tell a tired person to type works as it stands there, with the names put in."""

import pytest
from runbooks import calls

from redrive_testbed.rabbitmq_release import TESTED

CONSUMER = "calm"


@pytest.fixture(scope="module")
def names(open_shop):
    """Give what stands in the place of each name of the pages."""
    with open_shop(TESTED[-1]) as shop:
        shop.apply_ready(shop.consumer(CONSUMER, worker=shop.worker()))
        (pod,) = shop.pods(CONSUMER)
        yield {"shop": shop.name, "orders": CONSUMER, "pod": pod["metadata"]["name"]}


def put_in(words, names):
    """Put real names in the place of those of the pages, also of one after a slash or an equals sign."""
    verb, kind, *rest = words
    return [verb, _put(kind, {key: names[key] for key in ("shop", "orders")}), *(_put(word, names) for word in rest)]


def _put(word, names):
    for sign in ("/", "="):
        before, found, name = word.rpartition(sign)
        if found and name in names:
            return f"{before}{sign}{names[name]}"
    return names.get(word, word)


def harmless(words):
    """Say how a command is tried without doing anything: what changes something is only asked for."""
    if "--previous" in words or words[:2] == ["rollout", "restart"]:  # the one needs a worker that has crashed
        return [*words, "--help"]
    return [*words, "--dry-run=server"] if words[0] in ("patch", "scale") else words


@pytest.mark.parametrize("words", calls("kubectl"), ids=" ".join)
def test_command_works_as_it_stands_in_a_runbook(kubectl, names, words):
    done = kubectl(*harmless(put_in(words, names)))
    assert done.returncode == 0, done.stderr
    assert done.stdout or "No resources found" in done.stderr or words[0] == "logs"
