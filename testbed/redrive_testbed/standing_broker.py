"""The one broker that stays up after the command that started it, for demonstrations and for pods of the cluster.

What it was started with is written down before it starts; so a second `up` finds it, one after a crash or a reboot
starts it again with its data and on its ports, and `down` removes everything, whatever state it is in.
"""

import json
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from redrive_testbed import sealed
from redrive_testbed.errors import Refused
from redrive_testbed.files import alone, write_whole
from redrive_testbed.machine import require_root
from redrive_testbed.places import Places
from redrive_testbed.processes import Processes
from redrive_testbed.rabbitmq import Broker, plan_node, prepare
from redrive_testbed.rabbitmq_release import find_release
from redrive_testbed.rabbitmq_settings import Credentials, NodeSettings, Ports
from redrive_testbed.say import step


@dataclass(frozen=True)
class BrokerInfo:
    """What a person or a Service must know of the broker."""

    release: str
    version: str
    running: bool
    amqp_url: str
    management_url: str
    user: str
    password: str
    addresses: tuple[str, ...]
    amqp_port: int
    management_port: int


@dataclass(frozen=True)
class Record:
    """What the broker was started with."""

    release: str
    settings: NodeSettings

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: str) -> "Record":
        document: dict[str, Any] = json.loads(text)
        node = document["settings"]
        settings = NodeSettings(
            name=node["name"],
            ports=Ports(**node["ports"]),
            credentials=Credentials(**node["credentials"]),
            listen=tuple(node["listen"]),
            conf=tuple(node["conf"]),
        )
        return cls(document["release"], settings)


def up(
    places: Places,
    release: str,
    *,
    listen: tuple[str, ...] = (),
    conf: tuple[str, ...] = (),
    amqp_port: int = 0,
    management_port: int = 0,
) -> BrokerInfo:
    """Have the broker run; `listen` are addresses beside loopback, such as the one that pods can reach."""
    find_release(release)
    require_root("running a broker")
    with alone(_lock(places)):
        record = _read(places)
        if record is None:
            settings = plan_node(listen=listen, conf=conf, amqp_port=amqp_port, management_port=management_port)
            record = _begin(places, Record(release, settings))
        _require_same(record, release, listen)
        broker = _broker(places, record)
        if broker.running():
            broker.wait_ready()
        else:
            broker.start()
    return _describe(record, broker)


def down(places: Places) -> None:
    """End the broker and delete its data; nothing happens where there is none."""
    if stands(places):
        require_root("taking the broker down")
        with alone(_lock(places)), step("taking the broker down"):
            _remove(places)


def stands(places: Places) -> bool:
    """Say whether there is a broker, or anything that one left."""
    return _folder(places).exists()


def is_ruin(places: Places) -> bool:
    """Say whether there is something of a broker, and nothing of it runs."""
    processes = Processes(_folder(places))
    return stands(places) and not any(processes.find(name) for name in processes.names())


def _remove(places: Places) -> None:
    folder = _folder(places)
    processes = Processes(folder)
    for name in processes.names():
        sealed.kill(processes, name)
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # the cluster may still live there
        places.state.rmdir()


def status(places: Places) -> BrokerInfo | None:
    """Describe the broker that was brought up, running or not; None where there is none."""
    record = _read(places)
    return None if record is None else _describe(record, _broker(places, record))


def _begin(places: Places, record: Record) -> Record:
    prepare(places, record.release, [record.settings])
    _remove(places)  # what a crash may have left without a record
    write_whole(_record_file(places), record.to_json(), mode=0o600)  # it holds the administrator's password
    return record


def _require_same(record: Record, release: str, listen: tuple[str, ...]) -> None:
    if record.release != release:
        raise Refused(f"a broker of RabbitMQ {record.release} is up: take it down first to have {release}")
    missing = set(listen) - set(record.settings.listen)
    if missing:
        raise Refused(f"the broker that is up does not listen on {', '.join(sorted(missing))}: take it down first")


def _broker(places: Places, record: Record) -> Broker:
    return Broker(record.settings, root=find_release(record.release).root(places), state=_folder(places))


def _describe(record: Record, broker: Broker) -> BrokerInfo:
    settings = record.settings
    return BrokerInfo(
        release=record.release,
        version=broker.version,
        running=broker.running(),
        amqp_url=broker.amqp_url,
        management_url=broker.management_url,
        user=settings.credentials.user,
        password=settings.credentials.password,
        addresses=settings.listen,
        amqp_port=settings.ports.amqp,
        management_port=settings.ports.management,
    )


def _read(places: Places) -> Record | None:
    try:
        return Record.from_json(_record_file(places).read_text())
    except (FileNotFoundError, KeyError, TypeError, json.JSONDecodeError):
        return None  # none, or half written by a command that was killed
    except PermissionError as error:
        raise Refused(f"{error.filename} is root's: run this command with sudo") from error


def _record_file(places: Places) -> Path:
    return _folder(places) / "broker.json"


def _lock(places: Places) -> Path:
    return places.cache / "broker.lock"


def _folder(places: Places) -> Path:
    return places.state / "broker"
