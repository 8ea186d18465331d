"""Which RabbitMQ releases: `--broker=3.10,4`, else `REDRIVE_BROKERS`, else those that every test run must prove.

A test that asks for `release`, or for a fixture that does, runs once on each.
"""

import os
import signal

import hypothesis
import pytest

from redrive_testbed.errors import Refused
from redrive_testbed.rabbitmq_release import TESTED, find_release

# How long an example takes says more about what else the machine does than about the code.
hypothesis.settings.register_profile("redrive", deadline=None)
hypothesis.settings.load_profile("redrive")

# A shell starts what runs in its background with Ctrl-C ignored, and so it is inherited: programs that tests start
# would not hear it either.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption("--broker", help="RabbitMQ releases to test on, for example 3.10,4")
    parser.addoption("--broker-tests-only", action="store_true", help="leave out what is the same on every release")
    parser.addoption("--together", action="store_true", help="of e2e, only tests that bear others beside them: for -n")
    parser.addoption("--alone", action="store_true", help="of e2e, only the others")


def pytest_collection_modifyitems(config, items):
    """Let the releases be tested side by side, and what has nothing to do with them once."""
    if config.getoption("--broker-tests-only"):
        config.hook.pytest_deselected(items=[item for item in items if "release" not in item.fixturenames])
        items[:] = [item for item in items if "release" in item.fixturenames]


def pytest_generate_tests(metafunc):
    if "release" in metafunc.fixturenames:
        metafunc.parametrize("release", _releases(metafunc.config), scope="session", ids="rabbitmq-{}".format)


def _releases(config):
    chosen = config.getoption("broker", default=None) or os.environ.get("REDRIVE_BROKERS") or ",".join(TESTED)
    try:
        return [find_release(name).name for name in chosen.split(",")]
    except Refused as reason:
        raise pytest.UsageError(str(reason)) from reason
