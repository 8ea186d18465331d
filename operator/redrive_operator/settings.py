"""What the operator is told from outside: flags, or the environment where no flag is given.

Each setting is one flag, and the variable that is named like it: `--consumer-image` is `REDRIVE_CONSUMER_IMAGE`. Both
are read by one parser with the same errors, so `kopf run -m redrive_operator.main`, which knows no flag of ours, obeys
the environment alone.
"""

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from redrive.spec.envelope import LABEL, SUBDOMAIN
from redrive_operator.errors import SettingsError
from redrive_operator.pod_identity import ANY_ACCOUNT

_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_PREFIX = "REDRIVE_"

# Beside a Service that is called `redrive`, Kubernetes sets REDRIVE_PORT to where that is, and nobody meant us.
_SERVICE_LINK = "tcp://"

_LONGEST_NAMESPACE = 63
_LONGEST_ACCOUNT = 253
_LEVELS = ("debug", "info", "warning", "error")
_STANDARDS = ("baseline", "privileged")

# What an identity may be made of: it becomes a part of an exchange's argument, and is shown to people.
_IDENTITY = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.]{0,99}")


@dataclass(frozen=True, slots=True)
class Settings:
    """How this operator works. `interval` is the time between two readings of a broker, in seconds."""

    namespace: str
    watch_namespaces: tuple[str, ...]
    identity: str | None
    consumer_image: str
    interval: float
    threads: int
    port: int
    log_level: str
    kubeconfig: str | None
    pod_security: str = "baseline"
    worker_service_accounts: tuple[str, ...] = ()

    @property
    def trusts_templates(self) -> bool:
        """Whether a pod template may ask for what is the node's."""
        return self.pod_security == "privileged"


def read_settings(words: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """Read flags, then the environment, then what is usual; SettingsError says what to change."""
    parser = _parser()
    told = {
        action.option_strings[0]: environment.get(_PREFIX + action.dest.upper(), "")
        for action in parser._actions
        if action.dest != "help"
    }
    meant = [f"{flag}={value}" for flag, value in told.items() if value and not value.startswith(_SERVICE_LINK)]
    options = parser.parse_args([*meant, *words])
    return Settings(
        namespace=options.namespace or _own_namespace(),
        watch_namespaces=options.watch_namespaces,
        identity=options.identity,
        consumer_image=options.consumer_image,
        interval=options.interval,
        threads=options.threads,
        port=options.port,
        log_level=options.log_level,
        kubeconfig=options.kubeconfig,
        pod_security=options.pod_security,
        worker_service_accounts=options.worker_service_accounts,
    )


class _Parser(argparse.ArgumentParser):
    """Raises what argparse would print: the same sentence serves a flag and a variable."""

    def error(self, message: str) -> NoReturn:
        raise SettingsError(f"{message} (a flag, or the variable {_PREFIX}… that is named like it)")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="redrive-operator", description="Run RabbitMQ consumers which retry.", allow_abbrev=False)
    add = parser.add_argument
    add("--namespace", type=_namespace, help="where the operator's own Secrets are (default: the pod's namespace)")
    add("--watch-namespaces", type=_namespaces, default=(), help="only these, comma-separated (default: all)")
    add("--identity", type=_identity, help="how brokers know this cluster (default: the uid of kube-system)")
    add("--consumer-image", default="redrive/consumer:latest", help="the runtime beside http workers (%(default)s)")
    add("--interval", type=_between(1, 60), default=15.0, help="seconds between readings (%(default)s)")
    add("--threads", type=_whole(1, 64), default=8, help="brokers that are worked on at once")
    add("--port", type=_whole(0, 65535), default=8080, help="where /metrics, /livez and /readyz are")
    add("--log-level", choices=_LEVELS, default="info", help="how much to tell (%(default)s)")
    add("--pod-security", choices=_STANDARDS, default="baseline", help="what pod templates may ask for (%(default)s)")
    names = "service accounts that pod templates may name, comma-separated, or * for any (default: none)"
    add("--worker-service-accounts", type=_accounts, default=(), help=names)
    add("--kubeconfig", help="outside a cluster: the file that says where it is (default: KUBECONFIG)")
    return parser


def _own_namespace() -> str:
    try:
        return _OWN_NAMESPACE.read_text().strip()
    except OSError:
        return "default"  # not in a pod


def _namespace(text: str) -> str:
    if len(text) > _LONGEST_NAMESPACE or not re.fullmatch(LABEL, text):
        raise argparse.ArgumentTypeError(f"{text!r} is not the name of a namespace")
    return text


def _namespaces(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_namespace(word.strip()) for word in text.split(",") if word.strip()))


def _account(text: str) -> str:
    if text != ANY_ACCOUNT and (len(text) > _LONGEST_ACCOUNT or not re.fullmatch(SUBDOMAIN, text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not the name of a service account")
    return text


def _accounts(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_account(word.strip()) for word in text.split(",") if word.strip()))


def _identity(text: str) -> str:
    if not _IDENTITY.fullmatch(text):
        raise argparse.ArgumentTypeError("must be at most 100 letters, digits, '-', '_' and '.'")
    return text


class _between:  # noqa: N801 - used as a function: argparse names the type in its errors
    def __init__(self, low: float, high: float) -> None:
        self._low, self._high = low, high

    def __call__(self, text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
        if not self._low <= number <= self._high:
            raise argparse.ArgumentTypeError(f"must be from {self._low:g} to {self._high:g}, got {text}")
        return number


class _whole(_between):  # noqa: N801 - as above
    def __call__(self, text: str) -> int:
        if not (text.isascii() and text.isdecimal()):
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
        return int(super().__call__(text))
