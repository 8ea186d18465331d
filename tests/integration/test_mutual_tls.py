"""A broker that asks for a certificate: shown it lets us in by both doors, and a whole worker; else it does not."""

import ssl

import pytest
from tls_terminator import Terminator, server_context
from workers.bed import Bed, manifest

from redrive.amqp import Amqp
from redrive.broker_folder import BrokerFolder
from redrive.endpoints import parse_management_url, tls_context
from redrive.errors import Unreachable
from redrive.management import Management
from redrive_testbed.certificates import Authority


@pytest.fixture(scope="module")
def authorities(tmp_path_factory):
    """Two authorities of the same look: ours, and somebody else's."""
    made = [Authority(tmp_path_factory.mktemp(name)) for name in ("ours", "theirs")]
    for authority in made:
        authority.establish(nodes=[], server_names=["DNS:localhost"])
        authority.issue("client", "/CN=orders", [])
    return made


@pytest.fixture
def ports(authorities, broker):
    """Put a door before the broker's two ports that opens only to who shows a certificate of our authority."""
    context = server_context(authorities[0])
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authorities[0].certificate)
    terminator = Terminator(context)
    plain = broker.settings.ports
    yield [terminator.start(("127.0.0.1", port)) for port in (plain.amqp, plain.management)]
    terminator.close()


@pytest.fixture
def mount(ports, authorities, vhost, tmp_path):
    """Give a function that writes a Secret as Kubernetes mounts it, with certificates by whom we say."""

    def write(folder="broker", *, trusts=0, shows=0):
        files = {"host": "localhost", "port": str(ports[0]), "username": vhost.user, "password": vhost.password}
        files["ca.crt"] = authorities[trusts].certificate.read_text()
        if shows is not None:
            files["tls.crt"] = (authorities[shows].folder / "client.crt").read_text()
            files["tls.key"] = (authorities[shows].folder / "client.key").read_text()
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        for old in place.iterdir():
            old.unlink()
        for key, value in files.items():
            (place / key).write_text(value)
        return place

    return write


def enter(folder, vhost):
    endpoint, tls = BrokerFolder(folder, vhost.name).read()
    with Amqp([endpoint], tls=tls) as door:
        return door.version


def test_certificate_of_the_secret_opens_the_broker(mount, vhost, broker):
    assert enter(mount(), vhost) == broker.version


@pytest.mark.parametrize("shows", [None, 1], ids=["none", "of another authority"])
def test_broker_does_not_let_in_who_shows_a_certificate_that_is(shows, mount, vhost):
    with pytest.raises(Unreachable):
        enter(mount(shows=shows), vhost)


def test_broker_of_another_authority_is_refused_though_it_would_let_us_in(mount, vhost):
    with pytest.raises(Unreachable, match="certificate verify failed"):
        enter(mount(trusts=1), vhost)


def test_management_api_is_opened_by_the_same_certificate(ports, authorities, vhost, broker):
    admin = broker.settings.credentials
    api = parse_management_url(f"https://localhost:{ports[1]}").as_user(admin.user, admin.password)
    ours = authorities[0]
    files = {"certificate_file": str(ours.folder / "client.crt"), "key_file": str(ours.folder / "client.key")}
    shown, hidden = (tls_context(ca=ours.certificate.read_text(), **shown) for shown in (files, {}))
    assert Management(api, vhost=vhost.name, tls=shown).read().version == broker.version
    with pytest.raises(Unreachable):
        Management(api, vhost=vhost.name, tls=hidden).read()


@pytest.fixture
def bed(vhost, tmp_path):
    bed = Bed(vhost.amqp_url, tmp_path, manifest(vhost.name))
    yield bed
    bed.close()


def test_worker_comes_in_by_its_certificate_and_retries(bed, mount):
    mount()
    bed.start()
    bed.publish(["flaky"], do=("fail", "ok"))
    bed.wait_done()


@pytest.mark.parametrize("files", [{"trusts": 1}, {"shows": None}], ids=["wrong authority", "no certificate"])
def test_worker_that_is_not_let_in_takes_nothing_until_its_secret_is_mended(files, bed, mount):
    mount(**files)
    bed.publish(["patient"])
    worker = bed.start()
    worker.wait_for("broker")
    assert worker.lines("consuming") == []
    assert bed.amqp.count_ready("orders") == 1
    mount()
    bed.wait_done()
