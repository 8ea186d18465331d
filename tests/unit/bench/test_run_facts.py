"""What is said of a run before its tables: which it was among several on a page, in a few lines."""

from bench.command import describe_run, open_parser, parse_options
from bench.run_facts import introduce, name_run

FACTS = {
    "command": "uv run python -m bench.worker --rounds 3 --parts success,retry --release 4",
    "began": "2026-11-16 08:54 UTC",
    "parts": "success, retry",
    "releases": "4",
    "cores": "2",
    "processor": "AMD EPYC",
    "memory": "24 GB",
    "kernel": "6.18.44",
    "load before the run": "0.12 0.31 0.64",
    "Python": "3.11.7",
    "pika": "1.4.4",
    "peers": "dramatiq 2.2.1, celery 5.7.0",
    "ended": "2026-11-16 09:19 UTC",
}


def test_run_is_named_by_when_it_was_and_what_it_is_about():
    assert name_run(FACTS) == "2026-11-16 08:54 UTC: success, retry, RabbitMQ 4"


def test_run_of_before_it_told_its_parts_is_named_by_its_command():
    assert name_run({name: FACTS[name] for name in ("command", "began")}) == name_run(FACTS)


def test_run_of_which_nothing_was_chosen_is_about_everything():
    assert name_run({"command": "uv run python -m bench.ladder", "began": "today"}) == "today: everything"


def test_facts_are_three_lines_and_none_is_left_out():
    assert introduce(FACTS).splitlines() == [
        "### 2026-11-16 08:54 UTC: success, retry, RabbitMQ 4",
        "",
        "- `uv run python -m bench.worker --rounds 3 --parts success,retry --release 4`, until 2026-11-16 09:19 UTC",
        "- 2 cores, AMD EPYC, 24 GB, Linux 6.18.44, load before the run 0.12 0.31 0.64",
        "- Python 3.11.7, pika 1.4.4; peers: dramatiq 2.2.1, celery 5.7.0",
    ]


def test_run_of_which_nothing_is_known_is_not_introduced():
    assert introduce({}) == ""


def test_every_fact_of_a_new_run_is_told():
    parser = open_parser("bench.some", None)
    parser.set_defaults(parts=["one", "other"])
    facts = describe_run("bench.some", parse_options(parser, ["--release", "4"], {}))
    told = introduce(facts)
    assert "one, other, RabbitMQ 4" in told
    assert [name for name, value in facts.items() if value not in told] == []
