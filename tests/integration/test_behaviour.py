"""The suite of `tests/behaviour` on real brokers, with worker processes."""

import secrets

import pytest

pytest.register_assert_rewrite("behaviour")

from behaviour.carrying import *  # noqa: E402, F403
from behaviour.fixtures import *  # noqa: E402, F403
from behaviour.on_broker import BrokerStage  # noqa: E402
from behaviour.parking import *  # noqa: E402, F403
from behaviour.retrying import *  # noqa: E402, F403
from behaviour.workers import *  # noqa: E402, F403

from redrive import workshop  # noqa: E402


@pytest.fixture(scope="module")
def open_stages(session_broker, tmp_path_factory):
    """One consumer and worker of each kind for all tests on a release: they tell their messages apart by name."""
    if not session_broker.running():
        session_broker.start()
    opened = {}

    def find(name):
        if name not in opened:
            opened[name] = BrokerStage(name, vhost, tmp_path_factory.mktemp(name))
        return opened[name]

    vhost = session_broker.add_vhost(f"test-{secrets.token_hex(4)}")
    try:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(workshop, "GROWING_UP_SECONDS", 0)
            yield find
        for stage in opened.values():
            stage.close()
    finally:
        for stage in opened.values():
            stage.kill()
        session_broker.delete_vhost(vhost.name)


@pytest.fixture
def stages(open_stages):
    return open_stages
