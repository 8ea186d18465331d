import pytest

from redrive.versions import refuse_version


@pytest.mark.parametrize(
    "version", ["3.10.0", "3.10.8", "3.11.28", "3.12", "3.13.3", "3.13.7", "4.0.5", "4.3.6", "5.0.0"]
)
def test_supported_version_is_not_refused(version):
    assert refuse_version(version) is None


@pytest.mark.parametrize("version", ["4.1.0-rc.1", "3.12.0+2.g1", "3.10.8-debian"])
def test_what_follows_the_number_does_not_matter(version):
    assert refuse_version(version) is None


@pytest.mark.parametrize("version", ["3.13.0", "3.13.1", "3.13.2", "3.13", "3.13.0-rc.2"])
def test_version_that_drops_messages_is_refused_with_what_to_do(version):
    assert f"RabbitMQ {version} drops messages" in refuse_version(version)
    assert "upgrade it to 3.13.3" in refuse_version(version)


@pytest.mark.parametrize("version", ["3.9.29", "3.8.0", "2.8.7", "0.0.0"])
def test_old_version_is_refused(version):
    assert "too old: upgrade it to 3.10 or newer" in refuse_version(version)


@pytest.mark.parametrize("version", ["", "RabbitMQ", "v3", "%%VSN%%", "4", "9" * 5000])
def test_what_is_no_version_is_refused(version):
    assert "is this a RabbitMQ?" in refuse_version(version)
