"""Alarms that ring: a Prometheus with the rules in a hurry, an Alertmanager behind it, and a pager."""

import json
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

import yaml
from hurry import hurry
from pager import Pager

from redrive_testbed.places import REPOSITORY
from redrive_testbed.prometheus import run_alertmanager, run_prometheus

RULES = REPOSITORY / "charts" / "redrive" / "alarms" / "rules.yaml"

_DIRECT = build_opener(ProxyHandler({}))


@dataclass(frozen=True)
class Bells:
    """Where Prometheus listens, and who is called."""

    prometheus: str
    pager: Pager

    def ask(self, question):
        """Ask the HTTP API of Prometheus."""
        with _DIRECT.open(f"{self.prometheus}/api/v1/{question}", timeout=10) as answer:
            return json.load(answer)["data"]

    def values(self, expr):
        """Give the values that an expression has now, one for each series."""
        return [float(one["value"][1]) for one in self.ask(f"query?{urlencode({'query': expr})}")["result"]]

    def targets(self):
        """Say of each target that is scraped by which job that is, and whether it answers."""
        return [(one["scrapePool"], one["health"]) for one in self.ask("targets?state=active")["activeTargets"]]


@contextmanager
def hung_up(programs, folder, scrape_configs, *, times):
    """Have bells that hear what is scraped, with rules that are so many times as fast."""
    rules = folder / "rules.yaml"
    rules.write_text(json.dumps(hurry(yaml.safe_load(RULES.read_text()), times)))
    pager = Pager()
    try:
        with (
            run_alertmanager(programs, folder, _tell(pager.url)) as alertmanager,
            run_prometheus(programs, folder, _listen(alertmanager, rules, scrape_configs)) as prometheus,
        ):
            yield Bells(prometheus, pager)
    finally:
        pager.close()


def _tell(url):
    # Each alarm by itself, at once, and once.
    route = {"group_by": ["..."], "group_wait": "0s", "group_interval": "1s", "repeat_interval": "1h"}
    webhook = {"url": url, "send_resolved": True}
    return {"route": {"receiver": "pager", **route}, "receivers": [{"name": "pager", "webhook_configs": [webhook]}]}


def _listen(alertmanager, rules, scrape_configs):
    once_a_second = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    targets = [{"targets": [alertmanager.removeprefix("http://")]}]
    return {
        "global": once_a_second,
        "rule_files": [str(rules)],
        "alerting": {"alertmanagers": [{"static_configs": targets}]},
        "scrape_configs": scrape_configs,
    }
