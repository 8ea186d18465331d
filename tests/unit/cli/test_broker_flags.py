"""The broker's URLs: which vhost they mean, whose credentials, and that no password is ever shown."""

import stat

import pytest

from redrive.broker_secret import read_broker_secret
from redrive_cli.broker_flags import read_flags, write_secret
from redrive_cli.errors import Misuse


@pytest.mark.parametrize(
    ("url", "vhost", "why"),
    [
        ("amqp://me:pw@rabbit", "shop", "by spec.broker.vhost"),
        ("amqp://me:pw@rabbit/", "shop", "by spec.broker.vhost"),
        ("amqp://me:pw@rabbit/%2f", "/", "by the URL"),
        ("amqp://me:pw@rabbit/blue", "blue", "by the URL"),
        ("amqps://me:pw@rabbit:1/a%20b", "a b", "by the URL"),
    ],
)
def test_vhost_is_that_of_the_url_else_that_of_the_manifest(url, vhost, why):
    address = read_flags(url, None, vhost="shop")
    assert (address.vhost, address.vhost_from, address.management) == (vhost, why, None)


@pytest.mark.parametrize(
    ("url", "user", "password"),
    [
        ("http://rabbit:15672", "me", "pw"),
        ("http://admin:other@rabbit:15672", "admin", "other"),
    ],
)
def test_management_is_asked_as_the_user_of_the_broker_unless_it_names_one(url, user, password):
    management = read_flags("amqp://me:pw@rabbit", url, vhost="/").management
    assert (management.user, management.password, str(management)) == (user, password, "rabbit:15672")


@pytest.mark.parametrize(
    ("broker", "management", "flag"),
    [
        ("rabbit:5672", None, "--broker or REDRIVE_BROKER: "),
        ("http://me:hunter2@rabbit", None, "--broker or REDRIVE_BROKER: "),
        ("amqp://me:hunter2@rabbit:hunter2", None, "--broker or REDRIVE_BROKER: "),
        ("amqp://me:hunter2@rabbit", "amqp://me:hunter2@rabbit", "--management or REDRIVE_MANAGEMENT: "),
    ],
)
def test_url_that_cannot_be_used_is_named_by_its_flag_and_not_shown(broker, management, flag):
    with pytest.raises(Misuse) as refused:
        read_flags(broker, management, vhost="/")
    assert str(refused.value).startswith(flag)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("url", ["amqp://me:p%2Fw%0A@rabbit:5673", "amqps://[::1]", "amqp://localhost"])
def test_secret_that_is_written_is_read_as_the_same_broker(url, tmp_path):
    amqp = read_flags(url, None, vhost="shop").amqp
    write_secret(amqp, tmp_path / "broker")
    files = {file.name: file.read_text() for file in (tmp_path / "broker").iterdir()}
    secret = read_broker_secret(files, vhost="shop")
    assert secret.amqp == amqp
    assert secret.management is None


def test_secret_is_for_nobody_else(tmp_path):
    write_secret(read_flags("amqp://me:pw@rabbit", None, vhost="/").amqp, tmp_path / "broker")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "broker").iterdir()}
    assert (stat.S_IMODE((tmp_path / "broker").stat().st_mode), modes) == (0o700, {0o600})
