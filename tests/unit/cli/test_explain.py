"""`redrive explain` as it is typed: the published schedules come out exactly, without a cluster or a broker."""

import json
from pathlib import Path

import pytest
import yaml
from typing_commands import type_command

EXAMPLES = Path(__file__).parents[3] / "examples"

WATCHBOT = [2, 4, 8, 16, 32, 64, 128, 256, 512]


@pytest.fixture
def explain(typed):
    def explain(*words):
        done = typed("explain", *words)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return explain


@pytest.fixture
def delays_of(explain):
    def delays_of(name):
        explained = json.loads(explain("-f", EXAMPLES / f"{name}.yaml", "-o", "json"))
        return explained, [row.get("delaySeconds") for row in explained["attempts"]]

    return delays_of


@pytest.mark.parametrize(
    ("name", "delays", "worst"),
    [
        ("watchbot", WATCHBOT, 1022.0),
        ("full-jitter", [1, 2, 4, 8], 15.0),
        ("daycry", [5, 10, 20, 40], 86.25),
        ("webhook", [10, 20, 40, 80], 150.0),
        ("linear", [0, 0, 0, 0], 0.0),
    ],
)
def test_published_schedules_come_out_exactly(delays_of, name, delays, worst):
    explained, found = delays_of(name)
    assert found == [*delays, None]  # after the last attempt there is none
    assert explained["maxAttempts"] == len(delays) + 1
    assert explained["worstCaseSeconds"] == pytest.approx(worst, abs=0.125 * len(delays))
    assert [row["cumulativeSeconds"] for row in explained["attempts"]] == [
        sum(delays[: attempt + 1]) for attempt in range(len(delays) + 1)
    ]


def test_watchbot_is_told_as_programs_expect_it(delays_of):
    explained, _ = delays_of("watchbot")
    assert explained["attempts"][0] == {"attempt": 1, "delaySeconds": 2.0, "cumulativeSeconds": 2.0}
    assert explained["attempts"][-1] == {"attempt": 10, "cumulativeSeconds": 1022.0}
    assert explained["worstCaseSeconds"] == 1022.0


def test_yaml_says_the_same_as_json(explain):
    words = "-f", EXAMPLES / "watchbot.yaml", "-o"
    assert yaml.safe_load(explain(*words, "yaml")) == json.loads(explain(*words, "json"))


def test_a_person_is_shown_every_delay_the_load_the_queues_and_what_to_mind(explain):
    lines = explain("-f", EXAMPLES / "watchbot.yaml").splitlines()
    assert lines[0].startswith("maps/watchbot: 10 attempts, after 2s, 4s")
    cells = [line.split() for line in lines]
    assert ["9", "8m32s", "17m2s"] in cells
    assert ["10", "then", "dead", "17m2s"] in cells
    assert ["50%", "4,500/s", "5,500/s", "511,000"] in cells
    assert ["redrive.dead.tiles", "dead", "letters"] in cells
    assert any("no jitter" in line for line in lines)
    assert not [line for line in lines if line != line.rstrip()]


def test_jitter_is_shown_as_a_range(explain):
    assert "4s250ms … 5s750ms" in explain("-f", EXAMPLES / "daycry.yaml")


def test_a_manifest_may_come_by_standard_input():
    text = (EXAMPLES / "watchbot.yaml").read_text()
    done = type_command("explain", "-f", "-", stdin=text)
    assert (done.returncode, done.stderr) == (0, "")
    assert "17m2s" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name one consumer: NAME for one in the cluster, or -f FILE"),
        (("orders", "-f", EXAMPLES / "watchbot.yaml"), "name one consumer"),
        (("-f", "nowhere.yaml"), "nowhere.yaml cannot be read"),
        (("-f", EXAMPLES / "redrive" / "count.yaml"), "must have one RetryingConsumer"),
        (("-f", EXAMPLES / "watchbot.yaml", "--consumer-timeout", "soon"), "--consumer-timeout: must be a duration"),
    ],
)
def test_what_is_asked_wrongly_is_one_sentence_and_exit_code_2(typed, words, said):
    done = typed("explain", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_consumer_of_the_cluster_is_explained_by_its_name(typed, api):
    body = yaml.safe_load((EXAMPLES / "watchbot.yaml").read_text())
    api.add(body)
    done = typed("explain", "watchbot", "-n", "maps", "--kubeconfig", api.kubeconfig, "-o", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["worstCaseSeconds"] == 1022.0
