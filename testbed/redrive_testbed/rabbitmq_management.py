"""The management API of a test broker, as far as tests need it: JSON in, JSON out."""

import json
from base64 import b64encode
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import quote, urlsplit

from redrive_testbed.errors import TestbedError


class ManagementApi:
    """One node's management API, as its administrator."""

    def __init__(self, url: str, *, user: str, password: str) -> None:
        self._address = urlsplit(url).netloc
        credentials = b64encode(f"{user}:{password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {credentials}", "Content-Type": "application/json"}

    def get(self, *path: str) -> Any:  # noqa: ANN401 - any JSON document
        return self._expect("GET", path)

    def put(self, *path: str, body: object = None) -> None:
        self._expect("PUT", path, body or {})

    def delete(self, *path: str) -> None:
        """Delete something; what is not there counts as deleted."""
        status, answer = self._call("DELETE", path)
        if status not in {200, 204, 404}:
            raise TestbedError(f"DELETE {'/'.join(path)} was answered with {status}: {answer!r}")

    def status(self, *path: str) -> int:
        """Return the status of a GET; 0 when nobody answers."""
        try:
            return self._call("GET", path)[0]
        except (OSError, HTTPException):
            return 0

    def _expect(self, method: str, path: tuple[str, ...], body: object = None) -> Any:  # noqa: ANN401
        status, answer = self._call(method, path, body)
        if status not in {200, 201, 204}:
            raise TestbedError(f"{method} {'/'.join(path)} was answered with {status}: {answer!r}")
        return json.loads(answer) if answer else None

    def _call(self, method: str, path: tuple[str, ...], body: object = None) -> tuple[int, bytes]:
        connection = HTTPConnection(self._address, timeout=30)
        try:
            where = "/api/" + "/".join(quote(part, safe="") for part in path)
            connection.request(method, where, None if body is None else json.dumps(body), self._headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()
