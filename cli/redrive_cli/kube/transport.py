"""HTTP to the API server: objects stay the plain dicts that JSON makes of them.

The client library says where the API server is and who we are, and sends. Nothing is retried here, and every call ends
by its timeouts.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from redrive_cli.errors import ClusterError, NoCluster
from redrive_cli.kube.refusals import Request, explain
from redrive_cli.wording import clean

if TYPE_CHECKING:
    import urllib3.exceptions
    from kubernetes.client.configuration import Configuration

CONNECT_SECONDS, READ_SECONDS = 10, 60
JSON = "application/json"
MERGE = "application/merge-patch+json"

_METHODS = {"get": "GET", "list": "GET", "create": "POST", "patch": "PATCH", "delete": "DELETE"}


@dataclass(frozen=True, slots=True)
class Call:
    """One request, and what goes with it. `path` counts where it is not that of the request's object."""

    request: Request
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    content_type: str = JSON
    accept: str = JSON
    path: str = ""

    @property
    def url_path(self) -> str:
        asked = self.request
        path = self.path or asked.kind.path(asked.namespace, asked.name, asked.part)
        return f"{path}?{urlencode(self.query)}" if self.query else path


class Transport:
    """Sends calls to one API server, as one person. One transport serves all threads."""

    def __init__(self, configuration: "Configuration") -> None:
        from kubernetes.client.rest import RESTClientObject

        configuration.retries = False
        self.configuration = configuration
        self._client: Any = RESTClientObject(configuration)
        self._credentials = Lock()

    def send(self, call: Call) -> dict[str, Any]:
        """Send one call; raises what the refusal means, or that there was no answer."""
        answer = self.fetch(call)
        try:
            body = json.loads(answer)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise ClusterError(f"cannot {call.request}: {self.server} did not answer in JSON: is a proxy in between?")
        return body

    def fetch(self, call: Call) -> bytes:
        """The same for answers that are no JSON."""
        import urllib3.exceptions
        from kubernetes.client.exceptions import ApiException

        headers = {"Accept": call.accept, "User-Agent": "redrive", **self.authorization()}
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        url, timeouts = f"{self.configuration.host}{call.url_path}", (CONNECT_SECONDS, READ_SECONDS)
        method = _METHODS[call.request.verb]
        try:
            response = self._client.request(method, url, headers, call.body, _request_timeout=timeouts)
            status, answer = response.status, response.read()
        except ApiException as error:  # the library raises it for TLS alone
            told = clean(" ".join(str(error.reason).split()))[:200]
            raise NoCluster(
                f"no cluster: the TLS connection to {self.server} failed, is its CA in the kubeconfig? ({told})"
            ) from error
        except urllib3.exceptions.HTTPError as error:
            raise NoCluster(f"no cluster: {self.server} {_describe(error)}") from error
        if not 200 <= status < 300:
            raise explain(status, answer, call.request)
        return bytes(answer)

    def authorization(self) -> dict[str, str]:
        """Get what says who we are; the library's hook renews it if need be, and was not made for threads."""
        from kubernetes.config import ConfigException

        try:
            with self._credentials:
                settings: Mapping[str, Any] = self.configuration.auth_settings()
        except (ConfigException, OSError) as error:
            told = clean(" ".join(str(error).split()))[:300]
            raise ClusterError(f"your credentials for {self.server} cannot be had: {told}") from error
        return {setting["key"]: setting["value"] for setting in settings.values() if setting["value"]}

    @property
    def server(self) -> str:
        return f"the API server at {self.configuration.host}"


def _describe(error: "urllib3.exceptions.HTTPError") -> str:
    import urllib3.exceptions

    match error:
        case urllib3.exceptions.NameResolutionError():
            return "has a name that does not resolve: is the context the right one, and the VPN up?"
        case urllib3.exceptions.NewConnectionError():
            cause = error.__cause__
            reason = (isinstance(cause, OSError) and cause.strerror) or "no connection"
            return f"cannot be reached ({reason}): is it running, and is the context the right one?"
        case urllib3.exceptions.ConnectTimeoutError():
            return f"did not answer within {CONNECT_SECONDS} s: is the VPN up?"
        case urllib3.exceptions.ReadTimeoutError():
            return f"gave no answer within {READ_SECONDS} s"
        case urllib3.exceptions.ProtocolError():
            return "broke the connection before there was an answer"
    return f"cannot be reached ({type(error).__name__})"
