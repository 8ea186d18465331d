"""Every alarm for real: its cause is brought about in the cluster, somebody is called, and told when it is over.

Prometheus and Alertmanager run on this machine, which reaches the pods. They scrape as docs/alarms.md says, with the
rules of the chart, all of whose times are a twentieth. The consumers share one shop, and are all in trouble at once.
"""

import json
import os
import time
from pathlib import Path

import pytest
import yaml
from bells import hung_up
from e2e.discovery import Discovery
from e2e.misfortunes import CALLS, Misfortunes
from pager import FIRING, RESOLVED
from runbooks import ALARMS_PAGE, blocks

from redrive_dashboards.filling import Choice
from redrive_dashboards.picture import draw_all
from redrive_dashboards.prometheus import Prometheus, Window
from redrive_dashboards.questions import unanswered
from redrive_testbed import prometheus
from redrive_testbed.rabbitmq_release import TESTED

TIMES = 20
PATIENCE = 150

# The first test of all waits until everything has begun.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(600)]


def documented_jobs():
    """Read what the page tells people to scrape."""
    (block,) = [block for block in blocks(ALARMS_PAGE, "yaml") if "scrape_configs" in block]
    return yaml.safe_load(block)["scrape_configs"]


@pytest.fixture(scope="module")
def street(open_shop):
    """Give a shop on the newest release, for all of this file."""
    with open_shop(TESTED[-1]) as shop:
        yield shop


@pytest.fixture(scope="module")
def jobs(must):
    """Give the jobs of the page, which find the pods of the cluster."""
    discovery = Discovery(lambda: json.loads(must("get", "pods", "--all-namespaces", "--output=json"))["items"])
    yield [discovery.stand_in(job) for job in documented_jobs()]
    discovery.close()


@pytest.fixture(scope="module")
def bells(operator, jobs, machine_places, tmp_path_factory):
    programs = prometheus.prepare(machine_places)
    with hung_up(programs, tmp_path_factory.mktemp("bells"), jobs, times=TIMES) as bells:
        yield bells


@pytest.fixture(scope="module")
def troubled(street, bells):
    """Give the consumers, with something wrong with each but one."""

    def scraped(name):
        return bells.values(f'redrive_messages_total{{namespace="{street.name}",consumer="{name}"}}')

    misfortunes = Misfortunes(street, scraped)
    misfortunes.begin()
    return misfortunes


@pytest.fixture(scope="module")
def mended(troubled, bells, street):
    """Give the same consumers, all mended after somebody was called for each."""
    for call in CALLS:
        bells.pager.wait_called(alarm(call), within=PATIENCE, **labels(call, street))
    bells.pager.wait_called("Orphans", within=PATIENCE, vhost=street.vhost.name)
    troubled.mend()
    return troubled


def alarm(call):
    return call.partition("-")[0]


def labels(call, street):
    return {"namespace": street.name, **CALLS[call]}


def statuses(calls):
    return [call.status for call in calls]


def test_operator_and_workers_are_scraped_as_the_page_says(troubled, bells):
    targets = bells.targets()
    assert ("redrive-operator", "up") in targets
    assert ("redrive-workers", "up") in targets


@pytest.mark.parametrize("call", CALLS)
def test_somebody_is_called_with_the_name_of_the_consumer_and_where_to_read_on(troubled, bells, street, call):
    told = bells.pager.wait_called(alarm(call), within=PATIENCE, **labels(call, street))
    assert told.status == FIRING
    assert told.labels["severity"] in ("warning", "critical")
    assert told.annotations["summary"].startswith(f"{street.name}/{CALLS[call]['consumer']}: ")
    assert told.annotations["runbook_url"].endswith(f"/{alarm(call)}.md")


def test_somebody_is_called_for_messages_without_a_queue_to_return_to(troubled, bells, street):
    told = bells.pager.wait_called("Orphans", within=PATIENCE, vhost=street.vhost.name)
    assert told.status == FIRING
    assert told.annotations["summary"].startswith(f"vhost {street.vhost.name} of {told.labels['rabbitmq_cluster']}: ")
    assert told.annotations["summary"].endswith(": 1")


def test_every_query_of_the_dashboards_gets_a_number(troubled, bells, street):
    now = time.time()
    chosen = Choice(street.name, "late", "10s")
    assert unanswered(Prometheus(bells.prometheus), Window(now - 120, now), chosen) == []


def test_dashboards_are_drawn_from_what_was_seen(troubled, bells, street):
    now = time.time()
    pages = draw_all(Prometheus(bells.prometheus), Window(now - 300, now), Choice(street.name, "late", "10s"))
    if wanted := os.environ.get("REDRIVE_PICTURES"):
        for name, page in pages.items():
            (Path(wanted) / f"{name}.svg").write_text(page)
    assert ">calm<" in pages["redrive-overview"]


@pytest.mark.parametrize("call", CALLS)
def test_end_is_told_and_nobody_was_called_twice(mended, bells, street, call):
    told = bells.pager.wait_over(alarm(call), within=PATIENCE, **labels(call, street))
    assert statuses(told) == [FIRING, RESOLVED]


def test_end_is_told_when_the_messages_are_home(mended, bells, street):
    told = bells.pager.wait_over("Orphans", within=PATIENCE, vhost=street.vhost.name)
    assert statuses(told) == [FIRING, RESOLVED]
    street.wait_runs([("sleeping", 2)])


def test_operator_that_is_gone_is_missed_until_it_is_back(mended, bells, operator):
    # In such a hurry, a Prometheus that has just begun has no patience until it knows its targets.
    bells.pager.forget("OperatorStale")
    operator.stop()
    try:
        told = bells.pager.wait_called("OperatorStale", within=PATIENCE, cause="NotSeen")
        assert told.status == FIRING
    finally:
        operator.start()
    assert statuses(bells.pager.wait_over("OperatorStale", within=PATIENCE)) == [FIRING, RESOLVED]


def test_nobody_was_called_for_a_consumer_that_is_well(mended, bells, street):
    assert [call for call in bells.pager.calls if call.labels.get("consumer") == "calm"] == []
