"""Expressions as Grafana sends them: variables replaced by what a person would have chosen."""

from collections.abc import Mapping
from dataclasses import dataclass

ALL = ".+"


@dataclass(frozen=True)
class Choice:
    """What the variables stand for; `interval` is what Grafana would take for $__rate_interval."""

    namespace: str = ALL
    consumer: str = ALL
    interval: str = "2m"

    @property
    def values(self) -> Mapping[str, str]:
        return {"$__rate_interval": self.interval, "$namespace": self.namespace, "$consumer": self.consumer}


def fill(expr: str, choice: Choice) -> str:
    """Make an expression that Prometheus understands."""
    for name, value in choice.values.items():
        expr = expr.replace(name, value)
    return expr
