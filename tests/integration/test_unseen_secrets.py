"""A worker's password is nowhere that others can look: not in `ps`, not in the environment of a process, not in logs,
metrics or dead letters; neither while all is well, nor when the broker refuses it or is away.
"""

import urllib.request
from pathlib import Path

import pytest
from credential_forms import find_forms
from workers.bed import Bed, manifest
from workers.descent import descendants

from redrive_testbed.shell import wait_until


@pytest.fixture
def bed(vhost, tmp_path):
    bed = Bed(vhost.amqp_url, tmp_path, manifest(vhost.name))
    yield bed
    bed.close()


def visible_of_process(pid):
    """Give with which words and variables it runs; nothing, if it has ended: workers begin and end children."""
    try:
        return [Path(f"/proc/{pid}/{what}").read_bytes().decode() for what in ("cmdline", "environ")]
    except (FileNotFoundError, ProcessLookupError):
        return []


def visible(worker):
    """Give all that others see of a worker: what runs, with which words and variables, its log and its metrics."""
    seen = visible_of_process(worker.process.pid)
    assert seen, f"the worker has ended: {worker.tail()}"
    seen += [text for pid in descendants(worker.process.pid) for text in visible_of_process(pid)]
    [told] = worker.lines("listening")
    for path in ("metrics", "readyz", "livez", "nothing"):
        request = urllib.request.Request(f"http://127.0.0.1:{told['port']}/{path}")
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - our own
                seen.append(answer.read().decode())
        except urllib.error.HTTPError as error:
            seen.append(error.read().decode())
    return "\n".join([*seen, log_of(worker)])


def log_of(worker):
    """Give all that a worker has told: what it says of its broker stands at the beginning."""
    return worker.log.read_text(errors="replace")


def found_in(text, url):
    user, _, password = url.partition("//")[2].partition("@")[0].partition(":")
    return find_forms(text, user, password)


@pytest.mark.parametrize("level", ["info", "debug"])
def test_password_is_nowhere_to_be_seen_while_a_worker_works(level, bed, vhost, monkeypatch):
    monkeypatch.setenv("REDRIVE_LOG_LEVEL", level)
    worker = bed.start()
    flaky = [f"flaky-{number}" for number in range(30)]  # so many that the beginning of the log is far from its end
    bed.publish(flaky, do=("fail", "ok"))
    bed.publish(["hopeless"], do=("reject",))
    bed.wait_done(flaky)
    wait_until("it is not parked", lambda: bed.dead() == 1, within=30)
    seen = visible(worker)
    assert "redrive_messages_total" in seen, "nothing was looked at"
    assert '"event": "listening"' in seen, "the log was not looked at from its beginning"
    assert found_in(seen, vhost.amqp_url) == []
    assert found_in(str(bed.letters()), vhost.amqp_url) == []
    worker.stop()
    assert found_in(log_of(worker), vhost.amqp_url) == []


@pytest.mark.parametrize("fault", ["wrong password", "no such vhost user", "nobody listens", "no host", "no port"])
def test_password_is_nowhere_to_be_seen_when_the_broker_cannot_be_used(fault, bed, vhost):
    secret = "tr0ub4dor-and-3"
    url = vhost.amqp_url.replace(vhost.password, secret)
    host, _, _ = url.partition("@")[2].partition("/")
    broken = {
        "wrong password": url,
        "no such vhost user": url.replace(f"//{vhost.user}:", "//nobody:"),
        "nobody listens": url.replace(host, "127.0.0.1:1"),
        "no host": url.replace(host, "no-such-host.invalid:5672"),
        "no port": url.replace(host, "127.0.0.1:99999"),
    }[fault]
    bed.point_to(broken)
    worker = bed.start()
    wait_until(
        lambda: f"no trouble: {worker.tail()}", lambda: "rror" in worker.tail() or worker.lines("broker"), within=60
    )
    if fault == "no port":  # which no waiting would mend: it ends at once, and says why
        assert worker.process.wait(20) == 2
    text = log_of(worker) if worker.process.poll() is not None else visible(worker)
    assert text
    assert found_in(text, broken) == []
