"""HTTP to the API server: the only module that knows the `kubernetes` package, and that only as far as a connection.

The package says where the API server is and who we are, and sends; objects stay the plain dicts that JSON makes of
them. Nothing is retried here: whoever asked knows whether it still matters. One transport serves all threads.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import environ as process_environment
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlencode

import urllib3
import urllib3.exceptions
from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException, load_kube_config
from kubernetes.config.incluster_config import InClusterConfigLoader

from redrive_operator.errors import KubeUnavailable, SettingsError
from redrive_operator.kube.kinds import Kind
from redrive_operator.kube.refusals import TooLong, explain, one_line, read_refusal

CONNECT_SECONDS, READ_SECONDS = 10, 30

# Connections that are kept open; a thread more than this would open one for each of its calls.
POOL = 32

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_TOKEN = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `what` completes the sentence "cannot …"; the body may hold a secret, so it is not shown."""

    method: str
    path: str
    kind: Kind
    what: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    content_type: str = "application/json"
    accept: str = "application/json"
    most_bytes: int | None = None  # of the answer: of a longer one no more is read


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server said to a request that it granted."""

    status: int
    body: dict[str, Any] = field(repr=False)
    size: int = field(default=0, repr=False)  # in bytes, as it came


class Transport:
    """Sends calls to one API server, as one user."""

    def __init__(self, configuration: Configuration) -> None:
        configuration.retries = False
        configuration.connection_pool_maxsize = POOL
        configuration.keep_alive = True  # a load balancer that forgets us in silence would cost a whole timeout
        self._configuration = configuration
        self._client: Any = RESTClientObject(configuration)
        self._credentials = Lock()

    def send(self, call: Call) -> Answer:
        """Send one call; raises the error that the answer means, or that there was none, or TooLong."""
        status, answer = self._exchange(call)
        if not 200 <= status < 300:
            raise explain(read_refusal(status, answer), call.what, call.kind)
        try:
            body = json.loads(answer)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise KubeUnavailable(f"cannot {call.what}: {self._server} did not answer in JSON: is a proxy in between?")
        return Answer(status, body, len(answer))

    def close(self) -> None:
        self._client.close()

    def _exchange(self, call: Call) -> tuple[int, bytes]:
        url = f"{self._configuration.host}{call.path}" + (f"?{urlencode(call.query)}" if call.query else "")
        headers = {"Accept": call.accept, "User-Agent": "redrive-operator", **self._authorization(call)}
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        timeouts = (CONNECT_SECONDS, READ_SECONDS)
        try:
            response = self._client.request(call.method, url, headers, call.body, _request_timeout=timeouts)
            return response.status, _read(response.response, call)
        except ApiException as error:  # the package raises it for TLS alone
            told = f"the TLS connection failed: does the configured CA belong to it? {one_line(error.reason)}"
            raise KubeUnavailable(f"cannot {call.what}: {self._server}: {told}") from error
        except urllib3.exceptions.HTTPError as error:
            raise KubeUnavailable(f"cannot {call.what}: {self._server}: {_describe(error)}") from error

    def _authorization(self, call: Call) -> dict[str, str]:
        """Get what says who we are; the package's hook renews it if need be, and was not made for threads."""
        try:
            with self._credentials:
                settings: Mapping[str, Any] = self._configuration.auth_settings()
        except (ConfigException, OSError) as error:
            told = f"the credentials for it cannot be read: {one_line(str(error))}"
            raise KubeUnavailable(f"cannot {call.what}: {self._server}: {told}") from error
        return {setting["key"]: setting["value"] for setting in settings.values() if setting["value"]}

    @property
    def _server(self) -> str:
        return f"the API server at {self._configuration.host}"


def find_cluster(kubeconfig: str | None) -> Configuration:
    """Use the given file; without one the pod's own account, and outside a pod what `kubectl` would use."""
    if kubeconfig:
        return _read_kubeconfig(kubeconfig)
    try:
        return in_cluster(process_environment)
    except ConfigException:
        return _read_kubeconfig(None)


def in_cluster(
    environment: Mapping[str, str], *, token: Path = _ACCOUNT / "token", ca: Path = _ACCOUNT / "ca.crt"
) -> Configuration:
    """Be the pod's service account. Its token is replaced about every hour, so the file is read for every call."""
    configuration = Configuration()
    account: Any = InClusterConfigLoader(str(token), str(ca), try_refresh_token=False, environ=environment)  # type: ignore[no-untyped-call]
    account.load_and_set(configuration)
    configuration.proxy = None  # for what is outside of the cluster, if for anything

    def read_token(configuration: Configuration) -> None:
        text = token.read_text().strip()
        if not _TOKEN.fullmatch(text):
            raise ConfigException(f"{token} holds no token")
        configuration.api_key["BearerToken"] = f"Bearer {text}"

    configuration.refresh_api_key_hook = read_token  # type: ignore[assignment]
    return configuration


def _read_kubeconfig(path: str | None) -> Configuration:
    configuration = Configuration()
    usual = (
        "no cluster was found: this is no pod with a service account (else give --kubeconfig), and the usual kubeconfig"
    )
    where = f"the kubeconfig {path}" if path else usual
    try:
        load_kube_config(path, client_configuration=configuration, persist_config=False)  # type: ignore[no-untyped-call]
    except ConfigException as error:
        raise SettingsError(f"{where} cannot be used: {one_line(str(error))}") from error
    except Exception as error:  # a person writes that file; the parsers' words could quote a credential from it
        raise SettingsError(f"{where} cannot be used: it cannot be read ({type(error).__name__})") from None
    return configuration


def _read(response: urllib3.BaseHTTPResponse, call: Call) -> bytes:
    """Read an answer, and hang up on one that is too long: what is left of it would have to be read by somebody."""
    if call.most_bytes is None:
        return response.data
    answer = response.read(call.most_bytes + 1)
    if len(answer) > call.most_bytes:
        response.close()
        raise TooLong(f"cannot {call.what}: the answer is longer than {call.most_bytes} bytes")
    return answer


def _describe(error: urllib3.exceptions.HTTPError) -> str:
    match error:
        case urllib3.exceptions.NameResolutionError():
            return "its name cannot be resolved"
        case urllib3.exceptions.NewConnectionError():
            cause = error.__cause__
            return (isinstance(cause, OSError) and cause.strerror) or "no connection"
        case urllib3.exceptions.ConnectTimeoutError():
            return f"no connection within {CONNECT_SECONDS} s"
        case urllib3.exceptions.ReadTimeoutError():
            return f"no answer within {READ_SECONDS} s"
        case urllib3.exceptions.ProtocolError():
            return "the connection broke before there was an answer"
    return type(error).__name__
