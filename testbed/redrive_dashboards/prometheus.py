"""The door to a Prometheus: two questions of its HTTP API, asked as Grafana asks them."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import urlopen

TIMEOUT = 30
POINTS = 150


class PrometheusError(Exception):
    """The Prometheus cannot be asked, or does not understand the question."""


@dataclass(frozen=True)
class Window:
    """From when to when, in seconds since 1970."""

    start: float
    end: float

    @property
    def step(self) -> float:
        return max(1.0, (self.end - self.start) / POINTS)


@dataclass(frozen=True)
class Series:
    """One answer: its labels, and its values over time. A value that is no number is left out, as Grafana leaves it."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]

    @property
    def last(self) -> float | None:
        return self.points[-1][1] if self.points else None


class Prometheus:
    """One that listens at `address`."""

    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")

    def now(self, expr: str, at: float) -> list[Series]:
        return [_series(one["metric"], [one["value"]]) for one in self._ask("query", query=expr, time=f"{at:.3f}")]

    def over(self, expr: str, window: Window) -> list[Series]:
        span = {"start": f"{window.start:.3f}", "end": f"{window.end:.3f}", "step": f"{window.step:.3f}"}
        return [_series(one["metric"], one["values"]) for one in self._ask("query_range", query=expr, **span)]

    def _ask(self, question: str, **parameters: str) -> list[dict[str, Any]]:
        url = f"{self._address}/api/v1/{question}?{urlencode(parameters)}"
        if not url.startswith(("http://", "https://")):
            raise PrometheusError(f"{self._address} is no address: it should begin with http:// or https://")
        try:
            with urlopen(url, timeout=TIMEOUT) as answer:  # noqa: S310  the scheme was looked at
                said = json.load(answer)
        except HTTPError as error:
            raise PrometheusError(f"{_reason(error)}: {parameters['query']}") from error
        except (URLError, OSError, ValueError) as error:
            raise PrometheusError(f"{self._address} does not answer as a Prometheus does: {error}") from error
        found: list[dict[str, Any]] = said["data"]["result"]
        return found


def _series(labels: Mapping[str, str], values: list[list[Any]]) -> Series:
    numbers = ((float(moment), float(value)) for moment, value in values)
    return Series(labels, tuple((moment, value) for moment, value in numbers if math.isfinite(value)))


def _reason(error: HTTPError) -> str:
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError):
        return f"{error.code} {error.reason}"
